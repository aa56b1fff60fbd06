"""What a finding is: the paper's sentence, our numbers with intervals, and a verdict."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["confirmed", "refuted", "undecided", "new"]  # new: no paper says anything
Unit = Literal["share", "width", "block parameters", "nats", "bits a byte", "layers", "number"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """A number with its 90 % interval; an end is None where the sizes that were trained end.

    Without a value only the ends that are there are known: at least `low`, or at most `high`.
    """

    what: str
    at: float | None  # the ratio, rank, size or number of steps that it belongs to
    value: float | None
    low: float | None
    high: float | None
    unit: Unit
    seeds: int
    series: str = ""  # the curve that it belongs to, where a finding has several

    def __str__(self) -> str:
        if self.value is not None:
            ends = (_shown(self.low, self.unit, "…"), _shown(self.high, self.unit, "…"))
            has_ends = self.low is not None or self.high is not None
            return _shown(self.value, self.unit, "") + (
                f" ({ends[0]} to {ends[1]})" if has_ends else ""
            )
        if self.low is not None:
            return f"at least {_shown(self.low, self.unit, '')}"
        return "unknown" if self.high is None else f"at most {_shown(self.high, self.unit, '')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that the runs say."""

    id: str
    question: int  # of seven
    asks: str
    paper: str  # what it says, and where
    measures: tuple[Measure, ...]
    verdict: Verdict
    because: str  # of the verdict, and what to bear in mind
    sweeps: tuple[str, ...]

    def measure(self, what: str) -> Measure:
        """The one of this name."""
        return next(one for one in self.measures if one.what == what)


def verdict_of(*, confirmed: Iterable[bool], refuted: Iterable[bool]) -> Verdict:
    """Confirmed where all that it needs holds, refuted where anything against it does."""
    if any(refuted):
        return "refuted"
    return "confirmed" if all(confirmed) else "undecided"


def is_above(measure: Measure, limit: float) -> bool:
    """Whether the whole interval lies above."""
    return measure.low is not None and measure.low > limit


def is_below(measure: Measure, limit: float) -> bool:
    """Whether the whole interval lies below."""
    return measure.high is not None and measure.high < limit


def lies_above(first: Measure, second: Measure) -> bool:
    """Whether the two intervals are apart, the first above."""
    return second.high is not None and is_above(first, second.high)


def _shown(number: float | None, unit: Unit, missing: str) -> str:
    if number is None:
        return missing
    match unit:
        case "share":
            return f"{100 * number:.1f} %"
        case "width" | "layers":
            return f"{number:,.0f}"
        case "block parameters":
            return f"{number / 1e6:.2f}M"
        case "nats" | "bits a byte":
            return f"{number:+.4f}"
        case "number":
            return f"{number:.4g}"
