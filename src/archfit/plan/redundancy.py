"""What a bottleneck was measured to cost: the share of parameters that a network could do without.

archfit's own runs are of shallow networks, those of Wies et al. 2021 of deeper ones, and the two
do not agree: redundancy fell with depth in our runs, and wide attention cost them less than us. A
network as shallow as ours is answered from our runs; a deeper one from both.
"""

import math
from dataclasses import dataclass
from typing import Literal

from archfit.evidence.points import (
    ATTENTION_SETTING,
    RANK_SETTING,
    Point,
    attention_curve,
    rank_by_depth,
    rank_curve,
)
from archfit.plan.bottleneck_points import (
    ATTENTION_POINTS,
    DEPTHS,
    RANK_POINT,
    SAME,
    Ends,
    RankQuestion,
    ends_of,
    is_measured_rank,
    is_on,
    is_same,
    measured_attention_ends,
    measured_rank_ends,
    nearest,
    paper_attention_ends,
    paper_rank_ends,
)

PAPER_DEPTH, PAPER_RANK = 12, 16  # of the paper's point
OWN_RATIO = 1 / 16  # from here on our runs bound the cost from above
ATTENTION_DEPTHS = (3, 6)

Basis = Literal[
    "no bottleneck",
    "measured by archfit",
    "between measurements of archfit",
    "archfit's and the paper's measurements",
    "measured in the paper",
    "between measurements of the paper",
    "beyond what was measured",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Redundancy:
    """Share of the parameters that is not needed, as an interval."""

    low: float
    high: float
    basis: Basis
    source: str  # the nearest of our points with its setting, and the paper's beside it

    @property
    def middle(self) -> float:
        """For an order of severity; beyond the measurements it is what is supported."""
        return self.low if self.high == 1 else (self.low + self.high) / 2

    def as_json(self) -> dict[str, object]:
        """The interval as JSON, with what it rests on."""
        return {"low": self.low, "high": self.high, "basis": self.basis}

    def __str__(self) -> str:
        if self.high == 1:
            return f"at least {self.low:.0%}"
        return f"{self.low:.0%} to {self.high:.0%}"


def rank_redundancy(rank: float, width: float, depth: float | None) -> Redundancy:
    """For an embedding of this rank; a depth that is not known counts as deep.

    Up to 8 layers: our runs at 2, 6 and 8, and between them. Deeper: their upper ends, since
    redundancy fell with depth, and from 12 layers on the paper's point for every larger ratio and
    rank; the lower end is the lowest.
    """
    question = RankQuestion(rank=rank, width=width)
    source = _rank_source(question.ratio)
    if question.ratio * SAME > 1:
        return _redundancy((0.0, 0.0), "no bottleneck", source)
    if depth is None or depth > DEPTHS[-1]:
        return _deep_rank(question, math.inf if depth is None else depth, source)
    ends = measured_rank_ends(question, depth)
    basis = _own_basis(is_measured=is_measured_rank(question, depth), is_beyond=ends[1] == 1)
    return _redundancy(ends, basis, source)


def _deep_rank(question: RankQuestion, depth: float, source: str) -> Redundancy:
    low, high = paper_rank_ends(question.ratio)
    if depth < PAPER_DEPTH or question.rank * SAME < PAPER_RANK:
        high = 1.0  # shallower networks and smaller ranks may waste more than the paper's
    ours = [measured_rank_ends(question, known) for known in DEPTHS[1:]]
    is_ours = question.ratio * SAME >= OWN_RATIO
    if is_ours:
        low, high = min(low, *(end for end, _ in ours)), min(high, *(end for _, end in ours))
    return _redundancy((low, high), _deep_rank_basis(question.ratio, high, is_ours=is_ours), source)


def attention_redundancy(ratio: float, depth: float | None) -> Redundancy:
    """For heads that are together `ratio` times as wide as the stream; no depth counts as deep.

    Up to 6 layers: our curve. Deeper: from the lower of our end and the paper's to the higher,
    since they disagree and size, depth or length of training may be the reason.
    """
    source = _attention_source(ratio)
    if ratio < SAME:
        return _redundancy((0.0, 0.0), "no bottleneck", source)
    is_beyond = ratio > attention_curve()[-1].at * SAME
    ours = measured_attention_ends(ratio)
    if depth is not None and depth <= ATTENTION_DEPTHS[-1]:
        is_beyond = is_beyond or round(depth) < ATTENTION_DEPTHS[0]
        is_measured = round(depth) in ATTENTION_DEPTHS and is_on(ratio, attention_curve())
        return _redundancy(ours, _own_basis(is_measured=is_measured, is_beyond=is_beyond), source)
    paper = paper_attention_ends(ratio)
    ends = (min(ours[0], paper[0]), max(ours[1], paper[1]))
    both: Basis = "archfit's and the paper's measurements"
    return _redundancy(ends, "beyond what was measured" if is_beyond else both, source)


def _redundancy(ends: Ends, basis: Basis, source: str) -> Redundancy:
    return Redundancy(low=round(ends[0], 3), high=round(ends[1], 3), basis=basis, source=source)


def _own_basis(*, is_measured: bool, is_beyond: bool) -> Basis:
    if is_beyond:
        return "beyond what was measured"
    return "measured by archfit" if is_measured else "between measurements of archfit"


def _deep_rank_basis(ratio: float, high: float, *, is_ours: bool) -> Basis:
    """Whose measurements made the ends."""
    if high == 1:
        return "beyond what was measured"
    if is_ours:
        return "archfit's and the paper's measurements"
    is_point = is_same(ratio, RANK_POINT[0])
    return "measured in the paper" if is_point else "between measurements of the paper"


def _rank_source(ratio: float) -> str:
    by_depth = ", ".join(f"{_amount(point)} at {shape}" for shape, point in rank_by_depth())
    at, share = RANK_POINT
    return (
        f"archfit's own runs ({RANK_SETTING}): {_nearest(rank_curve(), ratio)}; rank 16 wastes "
        f"{by_depth}, and at one ratio more than rank 64; Wies et al. 2021, 5.1 (12 layers): about "
        f"{100 * share:.0f} % at ratio {at:.3g}"
    )


def _attention_source(ratio: float) -> str:
    points = " and ".join(f"{100 * share:.0f} % at {at:g}" for at, share in ATTENTION_POINTS[1:])
    return (
        f"archfit's own runs ({ATTENTION_SETTING}): {_nearest(attention_curve(), ratio)}; Wies et "
        f"al. 2021, 5.3 (12 to 24 layers, 30M to 70M): about {points}"
    )


def _nearest(curve: tuple[Point, ...], ratio: float) -> str:
    point = nearest(curve, ratio)
    return f"{_amount(point)} at ratio {point.at:.3g}"


def _amount(point: Point) -> str:
    """What was measured, with its interval, or the limit that it is."""
    low, high = (f"{100 * end:.0f}" for end in ends_of(point))
    is_open = point.estimate.high is None
    if point.estimate.value is None:
        return f"at least {low} %" if is_open else f"at most {high} %"
    ends = f"{low} or more" if is_open else f"{low} to {high}"
    return f"{100 * point.estimate.value:.0f} % ({ends})"
