"""Numbers out of a config that anybody may have written.

A refusal never prints a value whole: it may be a number of a million digits or a list nested
without end.
"""

from collections.abc import Mapping, Sequence

from archfit.spec.checks import MOST

Document = Mapping[str, object]
MOST_LAYERS_OF_A_STEM = 64


def first_present(document: Document, keys: Sequence[str]) -> str | None:
    """The first of several spellings that a config has, null included."""
    return next((key for key in keys if key in document), None)


def whole(key: str, value: object, *, least: int = 1) -> int:
    """`value` as a whole number from `least` to 10^12."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{key}={shown(value)} is not a whole number; use {least} or more")
    if not least <= value <= MOST:
        raise ValueError(f"{key}={shown(value)} is not in {least}..10^12, sizes of any network")
    return value


def flag(key: str, value: object) -> bool:
    """`value` as true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{key}={shown(value)} is neither true nor false; use one of the two")
    return value


def pair(key: str, value: object) -> tuple[int, int]:
    """A side as a whole number, or height and width as a list of two."""
    if isinstance(value, list | tuple) and len(value) == 2:
        return whole(f"{key}[0]", value[0]), whole(f"{key}[1]", value[1])
    if isinstance(value, list | tuple):
        raise ValueError(f"{key} is {shown(value)}; use one side, or a list of height and width")
    side = whole(key, value)
    return side, side


def wholes(key: str, value: object) -> tuple[int, ...]:
    """A short list of whole numbers."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"{key}={shown(value)} is no list; use one number for each convolution")
    if not 1 <= len(value) <= MOST_LAYERS_OF_A_STEM:
        raise ValueError(f"{key} has {len(value)} entries; use 1 to {MOST_LAYERS_OF_A_STEM}")
    return tuple(whole(f"{key}[{at}]", part) for at, part in enumerate(value))


def part(document: Document, key: str) -> Document | None:
    """The object under `key`, None where there is none."""
    value = document.get(key)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError(f"{key}={shown(value)} is no object; a part of a config is one")
    return value


def shown(value: object) -> str:
    """A value in a few characters, whatever it is."""
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else f"{value[:37]}...")
    if isinstance(value, Mapping):
        return f"an object of {len(value)} keys"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) > MOST:
        return "a number above 10^12" if value > 0 else "a number below -10^12"
    return f"{value!r:.40}"
