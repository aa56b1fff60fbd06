"""Frozen dataclasses to JSON and back, by their types; unknown and missing keys are refused.

A field whose type is a union of dataclasses is written with a `kind` key: the `TAG` of the class,
which stays what it is when the class is renamed, so that old specs keep their hashes. Fields that a
class has learnt since are left out where they are as in `USUAL`; what else it was written without
its `shortened` leaves out, and `completed` puts it back.

JSON that anybody may have written (`parse_object`) is one object, or one sentence that says why
not.
"""

import json
import re
import types
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from archfit.spec.errors import brief, refusal, types_of_fields

Json = object  # what `json.loads` returns
Value = TypeVar("Value")
MOST_PARTS = 1_000_000  # brackets and commas; Python's objects for so many take under 300 MB
HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")  # two of them make one, an emoji for one
LONGEST_INTEGER = 20  # digits; 2^64 has as many
SCALARS = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}


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
    where = f"this {kind.__name__}"
    return from_json(kind, _parsed(text, where, parse_constant=_refuse_constant))


def parse_object(content: bytes, *, where: str, most_parts: int = MOST_PARTS) -> dict[str, object]:
    """The JSON object in `content`; NaN and infinities, which some programs write, are let in."""
    parts = sum(content.count(mark) for mark in (b"{", b"[", b","))
    if parts > most_parts:
        raise refusal("json-parts", where=where, parts=f"{parts:,}", most=f"{most_parts:,}")
    document = _parsed(content, where, parse_int=_short_integer)
    if HALF_CHARACTER.search(content):  # without the other half no terminal or file can take it
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError as problem:
            half = brief(problem.object[problem.start])
            raise refusal("half-character", where=where, half=half) from problem
    if not isinstance(document, dict):
        raise refusal("no-object", where=where, kind=type(document).__name__)
    return document


def _parsed(content: str | bytes, where: str, **hooks: Any) -> Json:
    try:
        text = content if isinstance(content, str) else content.decode()
        return json.loads(text, object_pairs_hook=_unique_keys, **hooks)
    except UnicodeDecodeError as problem:
        raise ValueError(f"{where} is not JSON: it is not UTF-8 text; write it again") from problem
    except json.JSONDecodeError as problem:
        raise ValueError(f"{where} is not JSON ({problem}); write it again") from problem
    except RecursionError:
        raise ValueError(f"{where} is nested too deeply to be one; write it again") from None
    except ValueError as problem:  # a key that stands twice, or a number that is none or too long
        raise ValueError(f"{where} cannot be used: {problem}") from problem


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {brief(twice)} stands twice; keep one")
    return document


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number; a record holds finite numbers only")


def _short_integer(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise refusal("long-integer", digits=f"{len(digits):,}", most=LONGEST_INTEGER)
    return int(digits)


# ---- by types


def _fields_to_json(value: object) -> dict[str, Json]:
    kind: Any = type(value)
    hints = types_of_fields(kind)
    document: dict[str, Json] = {}
    for field in fields(value):  # type: ignore[arg-type]  # the caller saw a dataclass
        part, hint = getattr(value, field.name), hints[field.name]
        # An int in a float field would hash differently from the float that it equals.
        is_real = hint in (float, float | None) and part is not None
        document[field.name] = written = float(part) + 0.0 if is_real else to_json(part)  # no -0.0
        if _is_tagged(hint):
            assert isinstance(written, dict)
            document[field.name] = {"kind": part.TAG} | written
    usual = getattr(kind, "USUAL", {})
    document = {key: it for key, it in document.items() if key not in usual or it != usual[key]}
    shortened = getattr(kind, "shortened", None)
    return shortened(document) if shortened else document


def _decode(hint: Any, document: Json, where: str) -> object:
    options = get_args(hint)
    if get_origin(hint) is Literal:
        if not isinstance(document, str) or document not in options:
            raise ValueError(f"{where} is {_shown(document)}; use one of {', '.join(options)}")
        return document
    if get_origin(hint) is tuple:  # tuple[part, ...]
        if not isinstance(document, list):
            raise ValueError(f"{where} is {_shown(document)}, not a list")
        return tuple(_decode(options[0], it, f"{where}[{at}]") for at, it in enumerate(document))
    if _is_tagged(hint):
        tagged = {option.TAG: option for option in options}
        mapping = dict(_as_mapping(document, where))
        chosen = tagged.get(str(mapping.pop("kind", "missing")))
        if chosen is None:
            raise ValueError(f"{where} has no known kind; use one of {', '.join(tagged)}")
        return _decode(chosen, mapping, where)
    if options:  # X | None
        (wanted,) = (part for part in options if part is not types.NoneType)
        return None if document is None else _decode(wanted, document, where)
    return (_decode_dataclass if is_dataclass(hint) else _decode_scalar)(hint, document, where)


def _decode_scalar(hint: Any, document: Json, where: str) -> object:
    if hint is float and type(document) in (int, float):
        assert isinstance(document, int | float)
        if not abs(document) < 1e300:  # NaN is not, either
            raise ValueError(f"{where} is not a finite number")
        return float(document)
    if type(document) is not hint:
        raise ValueError(f"{where} is {_shown(document)}, not {SCALARS[hint]}")
    return document


def _decode_dataclass(hint: Any, document: Json, where: str) -> object:
    hints = types_of_fields(hint)
    mapping: Mapping[str, Json] = {**getattr(hint, "USUAL", {}), **_as_mapping(document, where)}
    if hasattr(hint, "completed"):
        mapping = hint.completed(mapping)
    names = [field.name for field in fields(hint)]
    if unknown := sorted(mapping.keys() - set(names)):
        raise ValueError(f"{where} has the unknown key {unknown[0]!r}; it has {', '.join(names)}")
    if missing := [name for name in names if name not in mapping]:
        raise ValueError(f"{where} lacks {', '.join(missing)}")
    values = {name: _decode(hints[name], mapping[name], f"{where}.{name}") for name in names}
    return hint(**values)


def _is_tagged(hint: object) -> bool:
    """Whether a field's type is a union of dataclasses, which JSON must tell apart."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
    return len(options) > 1 and all(is_dataclass(option) for option in options)


def _as_mapping(document: Json, where: str) -> Mapping[str, Json]:
    if not isinstance(document, dict):
        raise ValueError(f"{where} is {_shown(document)}, not an object")
    return document


def _shown(document: Json) -> str:
    text = json.dumps(document, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."
