"""What archfit's own runs found about depth, for questions of their size and kind."""

import math
from dataclasses import dataclass

from archfit.evidence.points import Point, best_depths

SIZES = (110_000, 6_000_000)  # block parameters
BYTES = (200, 257)  # vocabularies of text that is read byte by byte
SOURCE = "docs/evidence.md"
SEEN_IN = "0.11M to 6M block parameters, 1 to 8 layers, English, 33M tokens"
SMALL_VOCABULARIES = (
    "archfit's own runs of 0.8M parameters on DNA, proteins and pixels: 32 layers of width 46 were "
    "worse than 4 of 128 on all three, and no repair was better beyond doubt"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BestDepths:
    """The best of the depths that were trained at one size, and those as good as it."""

    low: float
    high: float
    says: str

    def __str__(self) -> str:
        ends = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        return f"{ends} layers: {self.says}"


def has_runs_of_size(block_params: float) -> bool:
    """Whether the size is one of those that were trained, or between them."""
    return SIZES[0] <= block_params <= SIZES[1]


def best_depths_of_text(block_params: float, vocab: int) -> BestDepths | None:
    """What was found at the nearest size; None where no text of this size or kind was trained."""
    if vocab < BYTES[0] or not has_runs_of_size(block_params):
        return None

    def distance(point: Point) -> float:
        return abs(math.log(point.at / block_params))

    point = min(best_depths(vocab), key=distance)
    if point.low is None or point.high is None:
        return None
    data, depths = ("bytes", "2 and 8") if vocab <= BYTES[1] else ("BPE", "1, 2, 4 and 8")
    says = (
        f"the best of {depths} layers at {point.at / 1e6:.2f}M, and those that cannot be told from "
        f"it (English, {data})"
    )
    return BestDepths(low=point.low, high=point.high, says=says)
