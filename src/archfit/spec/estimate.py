"""A number that was measured or forecast, with the interval that it is probably in."""

from dataclasses import dataclass

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

    def overlaps(self, other: "Estimate") -> bool:
        """Whether two intervals share a number, so that they cannot be told apart."""
        below = self.low is None or other.high is None or self.low <= other.high
        return below and (other.low is None or self.high is None or other.low <= self.high)
