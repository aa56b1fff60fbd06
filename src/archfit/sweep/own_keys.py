"""The keys of a sweep file and what their values may be: those of a run, as `archfit train` has."""

import difflib
from collections.abc import Callable, Iterable
from typing import TypeAlias, get_args, get_type_hints

from archfit.spec.asked import AskedRun
from archfit.spec.checks import MOST
from archfit.spec.sizes import parse_size
from archfit.sweep.own_file import shown

Value: TypeAlias = str | int | float

BLOCK_PARAMS, DATA, MATCH = "block_params", "data", "match"
TOP = ("name", "question", "seeds", "base", "grid", "list")
LONGEST_WORD = 200  # characters of a label or a choice


def whole(value: object) -> int:
    """A whole number: written as one, or as the command line takes it ("2M")."""
    if isinstance(value, str) and len(value) <= LONGEST_WORD:
        value = parse_size(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 2e6
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f'{shown(value)} is not a whole number; write one, such as 12 or "2M"')
    if abs(value) > MOST:
        raise ValueError(f"{shown(value)} is over 10^12, more than any network; use 10^12 or less")
    return value


def real(value: object) -> float:
    """A finite number; 0 and 0.0 are the same run, so that it is always a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{shown(value)} is not a number; write one, such as 0.001")
    if not abs(value) <= MOST:  # NaN is in no range
        raise ValueError(f"{shown(value)} is not a number up to 10^12; write one, such as 0.001")
    return float(value)


def word(value: object) -> str:
    """A short text."""
    if not isinstance(value, str) or not value.isprintable() or not value.strip():
        raise ValueError(f'{shown(value)} is not a word; write one in quotes, such as "softmax"')
    if len(value) > LONGEST_WORD:
        raise ValueError(f"{shown(value)} is over {LONGEST_WORD} characters; write a short word")
    return value


def _head(value: object) -> Value:
    """full or tied as they are, anything else as a size."""
    if value in ("full", "tied"):
        return word(value)
    try:
        return whole(value)
    except ValueError as problem:
        raise ValueError(
            f"{shown(value)} is unknown; use full, tied, or an inner size"
        ) from problem


def _readers() -> dict[str, Callable[[object], Value]]:
    """For each key of a run what reads its value, by the type that `AskedRun` gives it."""
    kinds: dict[type, Callable[[object], Value]] = {int: whole, float: real, str: word}
    hints = get_type_hints(AskedRun)
    readers = {
        name: next(kinds[kind] for kind in get_args(hint) or (hint,) if kind in kinds)
        for name, hint in hints.items()
    }
    return readers | {"head": _head}


READERS = _readers() | {DATA: word}
ROW_READERS = READERS | {BLOCK_PARAMS: whole, MATCH: word}


def read_value(key: str, value: object) -> Value:
    """The value of a key, checked for its type."""
    try:
        return ROW_READERS[key](value)
    except ValueError as problem:
        raise ValueError(f"{key}={problem}") from problem


def unknown_key(key: str, known: Iterable[str], where: str) -> str:
    """What to say about a key that `where` does not have: its home, or the nearest one."""
    start = f"{shown(key)} is no key of {where}"
    if key in READERS:
        return f"{start} but of a run; put it into [base], [[grid]] or [[list]]"
    if key in (MATCH, BLOCK_PARAMS):
        return f"{start}; put it into a [[grid]] or [[list]] that matches sizes"
    if key in TOP:
        return f"{start}; put it before the first table"
    names = sorted(known)
    nearest = difflib.get_close_matches(key[:LONGEST_WORD], names, n=1)
    if nearest:
        return f"{start}; the nearest is {nearest[0]}"
    return f"{start}; use one of {', '.join(names)}"
