"""Quantities of the catalogue: functions under a name, and their inputs with the sizes allowed."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from archfit.spec.errors import refusal, refuse_if
from archfit.spec.packed import packed_table
from archfit.theory.reals import digits

Function = TypeVar("Function", bound=Callable[..., object])
Reader: TypeAlias = Callable[[Callable[[], Any]], object]  # of what a formula gives
Kind: TypeAlias = Literal["whole", "word", "plan", "flag", "numbers", "segments"]


class Range(NamedTuple):
    """The whole numbers from `least` to `most` that a size may be."""

    least: int
    most: int


class Input(NamedTuple):
    """An input of the formulas: the papers' letter, the sizes allowed, and how it is read."""

    letter: str
    range: Range | None = None  # None: the formula says itself what it takes
    kind: Kind = "whole"


_ROWS = packed_table("inputs.toml")
_RANGES = {word: Range(*row["range"]) for word, row in _ROWS.items() if "range" in row}
INPUTS = {word: Input(**row | {"range": _RANGES.get(word)}) for word, row in _ROWS.items()}
WIDTH, SIZE = _RANGES["width"], _RANGES["size"]
LETTERS = {word: given.letter for word, given in INPUTS.items()}
ALIASES = {"d": "d_x", "da": "d_a", "vocab": "V"}  # letters, where no other input is called so


def check_sizes(**sizes: int) -> None:
    """Refuse a size that is no whole number or lies outside its range, naming the nearest."""
    for name, value in sizes.items():
        least, most = INPUTS[name].range or (value, value)
        if type(value) is not int:
            raise refusal("not-whole", value, word=name, example=f"from {least} to {most}")
        nearest, ends = min(max(value, least), most), {"least": least, "most": most}
        refuse_if(nearest != value, "out-of-range", value, word=name, nearest=nearest, **ends)


def check_heads_fit(heads: int, **width: int) -> None:
    """Refuse more heads than coordinates: the network would have heads of no dimension."""
    for name, size in width.items():
        refuse_if(heads > size, "more-heads-than-width", heads, word=name, size=size)


def catalogued(name: str, takes: type | None = None) -> Callable[[Function], Function]:
    """Give a function its name in the catalogue, where a table says what it rests on.

    Its inputs are its parameters, or the fields of the one value that it takes.
    """
    return _named(takes, {name: lambda found: found()})


def certified(name: str, takes: type | None = None) -> Callable[[Function], Function]:
    """The same of a function that gives a ball: the catalogue has proved digits."""
    return _named(takes, {name: digits})


def factored(name: str, logarithm: str = "") -> Callable[[Function], Function]:
    """Two quantities by one formula, NAME and NAME_log3 unless it is named."""
    exact: dict[str, Reader] = {name: lambda found: found().exact()}
    return _named(None, exact | {logarithm or f"{name}_log3": lambda found: digits(found().log3)})


def _named(takes: type | None, readers: Mapping[str, Reader]) -> Callable[[Function], Function]:
    def named(function: Function) -> Function:
        function.readers = readers  # type: ignore[attr-defined]  # read by the catalogue
        function.takes = takes  # type: ignore[attr-defined]  # the same
        return function

    return named
