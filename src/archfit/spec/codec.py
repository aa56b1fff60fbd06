"""Frozen dataclasses to JSON and back, by their types; unknown and missing keys are refused.

A field whose type is a union of dataclasses is written with a `kind` key: the `TAG` of the class,
which stays what it is when the class is renamed, so that old specs keep their hashes. A class that
has learnt more since may say how it is written without that (`shortened`, and `completed` to read).
"""

import json
import math
import types
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from archfit.spec.errors import brief

Json = object  # what `json.loads` returns
Value = TypeVar("Value")


def to_json(value: object) -> Json:
    """A dataclass, with all it holds, as dictionaries, lists, strings and numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        return _fields_to_json(value)
    if isinstance(value, tuple):
        return [to_json(part) for part in value]
    return value


def from_json(kind: type[Value], document: Json) -> Value:
    """The dataclass that `document` describes; a sentence says where it does not."""
    value = _decode(kind, document, kind.__name__)
    assert isinstance(value, kind)
    return value


def canonical_json(value: object) -> str:
    """JSON that is the same for equal values: sorted keys, no spaces, shortest floats."""
    return json.dumps(to_json(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def loads(kind: type[Value], text: str) -> Value:
    """The dataclass that a JSON text describes; NaN, infinities and doubled keys are refused."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=unique_keys)
    except RecursionError as problem:
        raise ValueError(f"this {kind.__name__} is nested too deeply to be one") from problem
    except json.JSONDecodeError as problem:
        raise ValueError(f"this {kind.__name__} is not JSON: {problem}") from problem
    return from_json(kind, document)


@cache
def _hints(kind: type) -> dict[str, object]:
    """The types of its fields: to find them takes longer than to read a record by them."""
    return get_type_hints(kind)


def _fields_to_json(value: object) -> dict[str, Json]:
    hints = _hints(type(value))
    document: dict[str, Json] = {}
    for field in fields(value):  # type: ignore[arg-type]  # the caller saw a dataclass
        part = getattr(value, field.name)
        # An int in a float field would hash differently from the float that it equals.
        is_real = hints[field.name] in (float, float | None) and part is not None
        document[field.name] = float(part) + 0.0 if is_real else to_json(part)  # -0.0 is 0.0
        if _is_tagged(hints[field.name]):
            document[field.name] = {"kind": _tag(type(part))} | dict(_as_mapping(to_json(part)))
    shortened = getattr(type(value), "shortened", None)
    return shortened(document) if shortened else document


def _decode(hint: object, document: Json, where: str) -> object:
    origin = get_origin(hint)
    if origin is Literal:
        return _decode_choice(hint, document, where)
    if origin in (Union, types.UnionType):
        return _decode_union(hint, document, where)
    if origin is tuple:
        return _decode_tuple(hint, document, where)
    if isinstance(hint, type) and is_dataclass(hint):
        return _decode_dataclass(hint, document, where)
    return _decode_scalar(hint, document, where)


def _decode_scalar(hint: object, document: Json, where: str) -> object:
    is_number = isinstance(document, int | float) and not isinstance(document, bool)
    if hint is float and is_number:
        assert isinstance(document, int | float)
        return _finite(document, where)
    if hint in (int, str, bool) and type(document) is hint:
        return document
    words = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
    wanted = words.get(hint, str(hint))  # type: ignore[call-overload]  # `hint` is any type
    raise ValueError(f"{where} is {_shown(document)}, not {wanted}")


def _decode_choice(hint: object, document: Json, where: str) -> object:
    if document not in get_args(hint) or not isinstance(document, str):
        raise ValueError(f"{where} is {_shown(document)}; use one of {', '.join(get_args(hint))}")
    return document


def _decode_tuple(hint: object, document: Json, where: str) -> tuple[object, ...]:
    if not isinstance(document, list):
        raise ValueError(f"{where} is {_shown(document)}, not a list")
    part, _ = get_args(hint)  # tuple[part, ...]
    return tuple(_decode(part, item, f"{where}[{at}]") for at, item in enumerate(document))


def _decode_union(hint: object, document: Json, where: str) -> object:
    if not _is_tagged(hint):  # X | None
        (wanted,) = (part for part in get_args(hint) if part is not types.NoneType)
        return None if document is None else _decode(wanted, document, where)
    options = {_tag(option): option for option in get_args(hint)}
    mapping = dict(_as_mapping(document, where))
    chosen = options.get(str(mapping.pop("kind", "missing")))
    if chosen is None:
        raise ValueError(f"{where} has no known kind; use one of {', '.join(options)}")
    return _decode(chosen, mapping, where)


def _decode_dataclass(hint: type, document: Json, where: str) -> object:
    hints = _hints(hint)
    mapping = _as_mapping(document, where)
    if hasattr(hint, "completed"):
        mapping = hint.completed(mapping)
    names = [field.name for field in fields(hint)]
    unknown = sorted(mapping.keys() - set(names))
    if unknown:
        raise ValueError(f"{where} has the unknown key {unknown[0]!r}; it has {', '.join(names)}")
    missing = [name for name in names if name not in mapping]
    if missing:
        raise ValueError(f"{where} lacks {', '.join(missing)}")
    values = {name: _decode(hints[name], mapping[name], f"{where}.{name}") for name in names}
    return hint(**values)


def _is_tagged(hint: object) -> bool:
    """Whether a field's type is a union of dataclasses, which JSON must tell apart."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
    return len(options) > 1 and all(is_dataclass(option) for option in options)


def _tag(option: type) -> str:
    return str(option.TAG)  # type: ignore[attr-defined]  # every part of a union has one


def _as_mapping(document: Json, where: str = "value") -> Mapping[str, Json]:
    if not isinstance(document, dict):
        raise ValueError(f"{where} is {_shown(document)}, not an object")
    return document


def _finite(number: int | float, where: str) -> float:
    value = float(number) if abs(number) < 1e300 else math.inf
    if not math.isfinite(value):
        raise ValueError(f"{where} is not a finite number")
    return value


def _shown(document: Json) -> str:
    text = json.dumps(document, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number; a record holds finite numbers only")


def unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The object of these keys and values; a key that stands twice is refused."""
    document = dict(pairs)
    if len(document) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {brief(twice)} stands twice; keep one")
    return document
