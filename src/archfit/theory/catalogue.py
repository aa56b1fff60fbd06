"""Every quantity by its name in the notation of the papers, with its status and source.

A quantity is one function with `@catalogued(name)`, `@certified(name)` or, with its logarithm,
`@factored(name, …)` in one of MODULES, and its row in resources/quantities.toml. Its inputs are its
parameters, read as `INPUTS` says of each.
"""

import difflib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, partial
from importlib import import_module
from inspect import Parameter, signature
from itertools import pairwise
from typing import Any, Literal, TypeAlias, cast

from archfit.spec.errors import InvalidValue, refusal, refuse_if
from archfit.spec.packed import packed_table
from archfit.theory import causal_bounds, witness_formula
from archfit.theory.inputs import ALIASES, INPUTS, LETTERS, Kind, Reader, check_sizes
from archfit.theory.reals import flint

Status: TypeAlias = Literal["proved", "derived", "disputed"]
Number: TypeAlias = int | Fraction | Decimal
Value: TypeAlias = Number | Mapping[str, Number] | list[int]
Json: TypeAlias = "int | str | bool | list[Json] | dict[str, Json] | None"

ANALYSED = "analysed network (linear attention; no softmax, norm or feed-forward)"
NETWORK, CAUSAL_NETWORK = f"unmasked {ANALYSED}", f"causal {ANALYSED}"
NETWORKS = {"none": NETWORK, "causal": CAUSAL_NETWORK, "any": ANALYSED}  # by their mask
LARGEST_JSON_INTEGER = 2**53
MOST_DIGITS_READ = 4300  # Python reads no longer integers unless it is told to


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A quantity of the catalogue."""

    name: str
    function: Callable[..., object]
    read: Reader  # of what the function gives

    @property
    def row(self) -> Mapping[str, Any]:
        """What it rests on; a logarithm shares the row of its quantity."""
        row: Mapping[str, Any] = packed_table("quantities.toml")[self.name.removesuffix("_log3")]
        return row

    @property
    def status_line(self) -> str:
        """How far to trust it, with the conditions or the reason."""
        return str(self.row["status"])

    @property
    def status(self) -> Status:
        """How far to trust it, in a word."""
        word = self.status_line.partition(" ")[0].rstrip(",")
        return cast("Status", word)

    @property
    def meaning(self) -> str:
        """What comes back, in a line; empty where Python was told to drop docstrings (-OO)."""
        said = self.row.get("log3") if self.name.endswith("_log3") else None
        return said or (self.function.__doc__ or "").partition("\n")[0]

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Its inputs, by our words for them."""
        return signature(getattr(self.function, "takes", None) or self.function).parameters

    @cached_property
    def words(self) -> dict[str, str]:
        """Our word for each letter that it takes."""
        return {INPUTS[word].letter: word for word in self.parameters}

    @cached_property
    def letters(self) -> dict[str, bool]:
        """The letters that it takes, True where one must be given."""
        return {INPUTS[word].letter: p.default is p.empty for word, p in self.parameters.items()}

    def given(self, **inputs: Any) -> Callable[[], Any]:
        """What its function gives for these inputs, by our words, whenever that is asked for."""
        if takes := getattr(self.function, "takes", None):
            return partial(self.function, takes(**inputs))
        return partial(self.function, **inputs)

    def value(self, **inputs: Any) -> Any:
        """What it is for these inputs."""
        return self.read(self.given(**inputs))

    def of(self, sizes: Mapping[str, Any]) -> Any:
        """What it is for those of these sizes that it takes."""
        return self.value(**{word: sizes[word] for word in self.parameters if word in sizes})

    @property
    def takes(self) -> tuple[str, ...]:
        """The letters as a person reads them: in brackets where one may be left out."""
        return tuple(at if needed else f"[{at}]" for at, needed in self.letters.items())


MODULES = (
    *("arithmetic", "continuous_bounds", "vocabulary_bounds", "statistics_bounds"),
    *("causal_bounds", "witness_formula", "thresholds"),
)
ENTRIES = {
    name: Entry(name=name, function=value, read=read)
    for module in MODULES
    for value in vars(import_module(f"archfit.theory.{module}")).values()
    if callable(value)
    for name, read in getattr(value, "readers", {}).items()
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """One value of the theory, with what it was computed from and how far to trust it."""

    name: str
    inputs: Mapping[str, object]
    value: Value
    status: Status
    status_line: str  # the status with its reason or conditions
    source: str
    network: str


def quantity(name: str, **inputs: object) -> Quantity:
    """The quantity of this name, for example quantity("ub_thm1", L=2, d_x=6, H=3)."""
    entry = ENTRIES.get(name)
    if entry is None:
        close = difflib.get_close_matches(name, ENTRIES, n=1, cutoff=0.4)
        hint = f"did you mean {close[0]}? " if close else ""
        raise refusal("unknown-quantity", name=repr(name), hint=hint)
    inputs = {
        letter if letter in entry.letters else ALIASES.get(letter, letter): value
        for letter, value in inputs.items()
        if value is not None or entry.letters.get(letter)
    }
    _check_names(entry, inputs)
    words = entry.words
    try:
        given = {words[letter]: value for letter, value in inputs.items()}
        given = {word: READERS[INPUTS[word].kind](word, value) for word, value in given.items()}
        value = entry.value(**given)
    except InvalidValue as problem:
        raise problem.named(LETTERS) from problem
    assert isinstance(value, int | Fraction | Decimal | dict | list)
    is_disputed = tuple(entry.row.get("disputed_with", ())) in given.items()
    return Quantity(
        name=name,
        inputs={LETTERS[word]: value for word, value in given.items()},
        value=value,
        status="disputed" if is_disputed else entry.status,
        status_line=entry.status_line,
        source=entry.row["source"],
        network=NETWORKS[entry.row.get("mask", "none")],
    )


def _check_names(entry: Entry, inputs: Mapping[str, object]) -> None:
    takes = ", ".join(entry.takes)
    for letter in inputs:
        if letter not in entry.letters:
            hint = f" ({letter} is written {LETTERS[letter]})" if letter in LETTERS else ""
            said = f"{letter!r}{hint}"
            raise refusal("unknown-input", name=entry.name, letter=said, takes=takes)
    missing = ", ".join(at for at, needed in entry.letters.items() if needed and at not in inputs)
    refuse_if(bool(missing), "missing-input", name=entry.name, missing=missing, takes=takes)


def _whole_number(word: str, value: object) -> int:
    """The integer that an input means, which may have come as 2.0 or as 1e3."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # 1e999999999 is a Decimal of one digit, and no integer to have.
    if isinstance(value, Decimal) and value.adjusted() < MOST_DIGITS_READ:
        value = int(value) if value == value.to_integral_value() else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise refusal("not-whole", value, word=word, example=f"as {{{word}}}=3")
    check_sizes(**{word: value})
    return value


def as_plan(word: str, value: object) -> witness_formula.Plan:
    """The plan that a list of lists of pairs, or the word example, stands for."""
    if value == "example":
        return witness_formula.example_plan()
    problem = "has another shape"
    with suppress(TypeError, ValueError):
        plan = tuple(tuple((p, q) for p, q in layer) for layer in value)  # type: ignore[attr-defined]  # suppressed
        if all(type(n) is int for layer in plan for pair in layer for n in pair):
            return plan
        problem = "holds something that is no whole number"
    raise refusal("not-a-plan", value, word=word, problem=problem)


def _instance(kind: type, name: str) -> Callable[[str, object], object]:
    """A reader of words or flags, which refuses by this name what is none."""

    def read(word: str, value: object) -> object:
        refuse_if(not isinstance(value, kind), name, value, word=word)
        return value

    return read


def _numbers(word: str, value: object) -> list[int]:
    """Whole numbers, one a layer: a list, a single one, or the text 3,1,0."""
    listed: Any = value.split(",") if isinstance(value, str) else value
    numbers: list[Any] = listed if isinstance(listed, list) else [listed]
    with suppress(ValueError):
        numbers = [int(part) if isinstance(part, str) else part for part in numbers]
    are_sizes = all(type(part) is int and part >= 0 for part in numbers) and numbers
    refuse_if(not are_sizes, "not-numbers", value, word=word)
    return numbers


def as_segments(word: str, value: object) -> list[causal_bounds.Segment]:
    """Sides in order with their positions, as a list of pairs or the text A:3,B (B: any number)."""
    pairs: Any = value
    if isinstance(value, str):
        parts = (part.partition(":") for part in value.split(","))
        pairs = [(side, int(n) if n.isdecimal() else n or None) for side, _, n in parts]
    problem = "has another shape"
    with suppress(TypeError, ValueError):
        found = [(side, n) for side, n in pairs]
        problem = "does not alternate between A and B"
        sides = pairwise(side for side, _ in found)
        are_sizes = all(n is None or (type(n) is int and n >= 1) for _, n in found)
        if len(found) > 1 and are_sizes and all({*pair} == {"A", "B"} for pair in sides):
            return found
    raise refusal("not-segments", value, word=word, problem=problem)


# How each kind of input is read; one more kind is one more reader.
READERS: dict[Kind, Callable[[str, object], object]] = {
    "whole": _whole_number,
    "word": _instance(str, "not-a-word"),
    "plan": as_plan,
    "flag": _instance(bool, "not-a-flag"),
    "numbers": _numbers,
    "segments": as_segments,
}


def as_json_value(value: object) -> Json:
    """Integers above 2^53 and reals as decimal strings, fractions as "p/q", values by fields.

    flint writes integers of any length, which `str` alone refuses.
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Fraction) and value.denominator != 1:
        return str(flint.fmpq(value.numerator, value.denominator))
    if isinstance(value, Fraction | int) and not isinstance(value, bool):
        whole = int(value)
        return whole if abs(whole) <= LARGEST_JSON_INTEGER else str(flint.fmpz(whole))
    if isinstance(value, Mapping):
        return {str(key): as_json_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json_value(part) for part in value]
    return value if value is None or isinstance(value, bool) else str(value)
