"""A number that was measured or forecast, with the interval that it is probably in."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from archfit.spec.errors import InvalidValue, check_real

CONFIDENCE = 0.9  # of every interval that archfit reports, unless it says otherwise


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A value between two ends; an end that the measurements leave open is None."""

    value: float | None  # None: only the interval is known
    low: float | None
    high: float | None
    confidence: float = CONFIDENCE
    basis: str = ""  # what it rests on, in the field's words

    def __post_init__(self) -> None:
        check_real(0, 1, confidence=self.confidence)
        ends = [end for end in (self.low, self.high) if end is not None]
        if ends != sorted(ends):
            rule = f"lies above {{high}}={self.high!r}"
            raise InvalidValue("low", self.low, rule, "give the lower end first")

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    def contains(self, number: float) -> bool:
        """Whether a number lies inside; an open end holds everything on its side."""
        above = self.low is None or self.low <= number
        return above and (self.high is None or number <= self.high)

    def is_above(self, limit: float) -> bool:
        """Whether the whole interval lies above a number; one that is open below never does."""
        return self.low is not None and self.low > limit

    def is_below(self, limit: float) -> bool:
        """Whether the whole interval lies below a number; one that is open above never does."""
        return self.high is not None and self.high < limit

    def lies_above(self, other: "Estimate") -> bool:
        """Whether the two intervals are apart, this one above."""
        return other.high is not None and self.is_above(other.high)

    def rising(self, function: Callable[[float], float]) -> "Estimate":
        """The estimate of a rising function of this number, such as its exponential."""
        numbers = (self.value, self.low, self.high)
        value, low, high = (None if it is None else function(it) for it in numbers)
        return replace(self, value=value, low=low, high=high)

    def row(self, name: str = "value") -> dict[str, float | None]:
        """The part of a JSON object that says it: the value by its name, `low` and `high`."""
        return {name: self.value, "low": self.low, "high": self.high}


UNKNOWN = Estimate(value=None, low=None, high=None)  # nothing is known of the number
