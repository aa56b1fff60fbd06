"""What a bottleneck was measured to cost: the share of parameters that a network could do without.

The papers give three numbers, each read off a figure and given as "about". Between them two
curves are drawn, straight in the ratio and straight in its logarithm; the interval spans both.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Literal

READING = 0.05  # the numbers are "about": what a reader of the figures could be off
RANK_POINTS = ((16 / 680, 0.25), (1.0, 0.0))  # Wies et al. 2021, 5.1: r / d_x
ATTENTION_POINTS = ((1.0, 0.0), (4.0, 0.25), (16.0, 0.45))  # 5.3: H d_a / d_x
SAME = 1.005  # ratios closer than this are the same


@dataclass(frozen=True, kw_only=True, slots=True)
class Redundancy:
    """Share of the parameters that is not needed, as an interval."""

    low: float
    high: float
    basis: Literal["measured", "interpolated", "beyond what was measured"]

    @property
    def middle(self) -> float:
        """For an order of severity; beyond the measurements it is what is supported."""
        return self.low if self.high == 1 else (self.low + self.high) / 2

    def __str__(self) -> str:
        if self.high == 1:
            return f"at least {self.low:.0%}"
        return f"{self.low:.0%} to {self.high:.0%}"


def rank_redundancy(ratio: float) -> Redundancy:
    """For an embedding of rank `ratio` times the width.

    Measured at r / d_x = 16 / 680 (12 layers, text): as good as a network 25 % smaller. Without a
    bottleneck nothing is lost. Source: Wies et al. 2021, section 5.1, figure 2.
    """
    return _between(ratio, RANK_POINTS, worst=RANK_POINTS[0])


def attention_redundancy(ratio: float) -> Redundancy:
    """For heads that are together `ratio` times as wide as the stream.

    Measured at 4 (25 %) and 16 (45 %) on 30M to 70M parameters. Source: Wies et al. 2021, 5.3.
    """
    return _between(ratio, ATTENTION_POINTS, worst=ATTENTION_POINTS[-1])


def _between(
    ratio: float, points: tuple[tuple[float, float], ...], worst: tuple[float, float]
) -> Redundancy:
    for at, share in points:
        if max(at, ratio) / min(at, ratio) < SAME:
            return _interval(share, share, "measured")
    if not points[0][0] < ratio < points[-1][0]:
        if (ratio > worst[0]) == (worst is points[-1]):  # past the worst end
            return Redundancy(low=worst[1] - READING, high=1.0, basis="beyond what was measured")
        return Redundancy(low=0.0, high=0.0, basis="measured")
    (x0, y0), (x1, y1) = next(
        pair for pair in itertools.pairwise(points) if pair[0][0] < ratio < pair[1][0]
    )
    straight = y0 + (y1 - y0) * (ratio - x0) / (x1 - x0)
    logarithmic = y0 + (y1 - y0) * math.log(ratio / x0) / math.log(x1 / x0)
    low, high = sorted((straight, logarithmic))
    return _interval(low, high, "interpolated")


def _interval(low: float, high: float, basis: Literal["measured", "interpolated"]) -> Redundancy:
    if high == 0:
        return Redundancy(low=0.0, high=0.0, basis=basis)
    return Redundancy(
        low=round(max(0.0, low - READING), 3), high=round(high + READING, 3), basis=basis
    )
