"""What a quantity is: its name, what it takes, what it rests on, and the sizes it accepts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from archfit.spec.errors import InvalidValue

Status: TypeAlias = Literal["proved", "derived", "disputed"]
Kind: TypeAlias = Literal["whole", "word", "plan"]
Function = TypeVar("Function", bound=Callable[..., object])


class Range(NamedTuple):
    """The whole numbers from `least` to `most` that a size may be."""

    least: int
    most: int


class Input(NamedTuple):
    """An input of the formulas: the papers' letter, the sizes allowed, and how it is read."""

    letter: str
    range: Range | None = None  # None: the formula says itself what it takes
    kind: Kind = "whole"


# A depth of 10^6 makes 3^depth half a million digits long; a width of 10^9 is a thousandfold
# any network's. Beyond them no question about a network is left.
DEPTH = Range(1, 10**6)
WIDTH = Range(1, 10**9)
COUNT = Range(1, 10**12)
SIZE = Range(108, 10**18)  # 108 = 12 log3(3) 3^2: one layer

# Our words for the papers' letters; docs/notation.md explains them.
INPUTS: dict[str, Input] = {
    "depth": Input("L", DEPTH),
    "width": Input("d_x", WIDTH),
    "heads": Input("H", WIDTH),
    "head_dim": Input("d_a", WIDTH),
    "positions": Input("N", Range(2, 10**12)),
    "vocab": Input("V", COUNT),
    "embedding_rank": Input("r", WIDTH),
    "position_rank": Input("r_e", Range(0, 10**9)),
    "inside": Input("n_P", COUNT),
    "outside": Input("n_Q", COUNT),
    "n": Input("n"),
    "k": Input("k"),
    "dimension": Input("d", Range(1, 12)),
    "degree": Input("lambda", Range(1, 81)),
    "size": Input("size", SIZE),
    "deep_depth": Input("L_deep", DEPTH),
    "deep_width": Input("d_deep", WIDTH),
    "shallow_depth": Input("L_shallow", DEPTH),
    "lower": Input("lower", kind="word"),
    "upper": Input("upper", kind="word"),
    "plan": Input("plan", kind="plan"),
    "entry": Input("entry", Range(0, 10**9)),
}
LETTERS = {word: given.letter for word, given in INPUTS.items()}


@dataclass(frozen=True, slots=True)
class Basis:
    """What a quantity rests on: how far to trust it, and where it is stated."""

    status: Status
    source: str
    remark: str = ""  # conditions after a comma, or a reason in brackets
    disputed_with: tuple[str, str] | None = None  # an input, and the value that makes it so

    @property
    def status_line(self) -> str:
        """The status with its conditions or its reason."""
        return f"{self.status}{self.remark}"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A quantity of the catalogue."""

    name: str
    basis: Basis
    function: Callable[..., object]

    @property
    def meaning(self) -> str:
        """What comes back, in a line; empty where Python was told to drop docstrings (-OO)."""
        return (self.function.__doc__ or "").partition("\n")[0]

    @cached_property
    def words(self) -> dict[str, str]:
        """Our word for each letter that it takes."""
        return {INPUTS[word].letter: word for word in signature(self.function).parameters}

    @cached_property
    def letters(self) -> dict[str, bool]:
        """The letters that it takes, True where one must be given."""
        taken = signature(self.function).parameters
        return {INPUTS[word].letter: p.default is p.empty for word, p in taken.items()}

    @property
    def takes(self) -> tuple[str, ...]:
        """The letters as a person reads them: in brackets where one may be left out."""
        return tuple(at if needed else f"[{at}]" for at, needed in self.letters.items())


def catalogued(name: str, basis: Basis) -> Callable[[Function], Function]:
    """Give a function its name in the catalogue and what it rests on; nothing else is needed."""

    def attach(function: Function) -> Function:
        entry = Entry(name=name, basis=basis, function=function)
        function.catalogue_entry = entry  # type: ignore[attr-defined]  # read by the catalogue
        return function

    return attach


def check_sizes(**sizes: int) -> None:
    """Refuse a size that is no whole number or lies outside its range, naming the nearest."""
    for name, value in sizes.items():
        least, most = INPUTS[name].range or (value, value)
        if isinstance(value, bool) or not isinstance(value, int):
            way_out = f"give one from {least} to {most}"
            raise InvalidValue(name, value, "is not a whole number", way_out)
        if not least <= value <= most:
            way_out = f"the nearest is {min(max(value, least), most)}"
            raise InvalidValue(name, value, f"is not in {least}..{most}", way_out)


def check_heads_fit(heads: int, **width: int) -> None:
    """Refuse more heads than coordinates: the network would have heads of no dimension."""
    for name, size in width.items():
        if heads > size:
            rule = f"exceeds {{{name}}}={size}, so a head has no dimension"
            raise InvalidValue("heads", heads, rule, f"use at most {size} heads")
