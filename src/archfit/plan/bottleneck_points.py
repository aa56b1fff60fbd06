"""What a bottleneck was measured to cost: points of archfit's runs and of Wies et al. 2021.

Our runs: both ends of an interval are straight in the logarithm of the ratio. A point that is only
a limit ("at least") has no curve towards it: what lies before it is at least what its neighbour is.
Of a low rank there are curves at 2, 6 and 8 layers. What a rank wastes grows with the width, and at
one ratio of rank to width it falls with the rank (docs/evidence.md, rank-or-ratio), so that each
curve bounds questions about other ranks and widths from one side or from both.

The paper gives three numbers, each read off a figure and given as "about". Between the points of
attention two curves are drawn, straight in the ratio and straight in its logarithm, and the
interval spans both. For the rank there is one point: it bounds every larger ratio from above, and
the curve that falls fastest, the logarithmic one, is the lower end.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from archfit.evidence.points import (
    Point,
    attention_curve,
    rank_curve,
    rank_of_tokens_curve,
    rank_series,
)
from archfit.spec.estimate import Estimate

READING = 0.05  # the numbers are "about": what a reader of the figures could be off
RANK_POINT = (16 / 680, 0.25)  # 5.1, figure 2, 12 layers: r / d_x
ATTENTION_POINTS = ((1.0, 0.0), (4.0, 0.25), (16.0, 0.45))  # 5.3: H d_a / d_x
SAME = 1.005  # ratios closer than this are the same

Ends = tuple[float, float]  # of an interval of shares; 1 where nothing bounds it from above


FREE = Point(
    at=1.0, estimate=Estimate(value=0.0, low=0.0, high=0.0)
)  # without a bottleneck nothing is lost
DEPTHS = (2, 6, 8)  # layers that curves of ranks were measured at
WIDTH = 256  # of the networks of 6 layers


def is_same(ratio: float, other: float) -> bool:
    """Whether two ratios cannot be told apart."""
    return max(ratio, other) / min(ratio, other) < SAME


def paper_rank_ends(ratio: float) -> Ends:
    """Redundant share of a network of 12 layers at rank / width = `ratio`, below 1."""
    at, share = RANK_POINT
    if is_same(ratio, at):
        return share - READING, share + READING
    if ratio < at:
        return share - READING, 1.0
    logarithmic = share * math.log(ratio) / math.log(at)
    return max(0.0, logarithmic - READING), share + READING


def paper_attention_ends(ratio: float) -> Ends:
    """Redundant share of 12 to 24 layers at heads x head_dim / width = `ratio`, above 1."""
    for at, share in ATTENTION_POINTS[1:]:
        if is_same(ratio, at):
            return share - READING, share + READING
    last, most = ATTENTION_POINTS[-1]
    if ratio > last:
        return most - READING, 1.0
    (x0, y0), (x1, y1) = next(
        pair for pair in itertools.pairwise(ATTENTION_POINTS) if ratio < pair[1][0]
    )
    straight = y0 + (y1 - y0) * (ratio - x0) / (x1 - x0)
    logarithmic = y0 + (y1 - y0) * math.log(ratio / x0) / math.log(x1 / x0)
    low, high = sorted((straight, logarithmic))
    return max(0.0, low - READING), high + READING


@dataclass(frozen=True, kw_only=True, slots=True)
class RankQuestion:
    """A question: what does this rank cost a network of this width?"""

    rank: float
    width: float

    @property
    def ratio(self) -> float:
        """Rank over width."""
        return self.rank / self.width


@dataclass(frozen=True, kw_only=True, slots=True)
class _OfWidth:
    """Many ranks at one width; points from the mildest to the worst, as everywhere here."""

    width: int
    points: tuple[Point, ...]

    def bounds(self, question: RankQuestion) -> Ends:
        """By its ratio and by its rank: the milder of them is a lower end, the worse an upper."""
        by_rank = min(1.0, question.rank / self.width)
        milder, worse = max(question.ratio, by_rank), min(question.ratio, by_rank)
        return _ends(milder, self.points)[0], _ends(worse, self.points)[1]

    def has(self, question: RankQuestion) -> bool:
        """Whether the question is one of its points."""
        return is_same(question.width, self.width) and is_on(question.ratio, self.points)


@dataclass(frozen=True, kw_only=True, slots=True)
class _OfRank:
    """One rank at many widths."""

    rank: int
    points: tuple[Point, ...]

    def bounds(self, question: RankQuestion) -> Ends:
        """An upper end for larger ranks, a lower end for smaller ones, both for its own."""
        low, high = _ends(question.ratio, self.points)
        if is_same(question.rank, self.rank):
            return low, high
        return (low, 1.0) if question.rank < self.rank else (0.0, high)

    def has(self, question: RankQuestion) -> bool:
        """Whether the question is one of its points."""
        return is_same(question.rank, self.rank) and is_on(question.ratio, self.points)


def measured_rank_ends(question: RankQuestion, depth: float) -> Ends:
    """Redundant share up to 8 layers, for ratios below 1.

    It falls with depth: between depths that were trained the deeper ones give the lower end and the
    shallower ones the upper, which fewer layers than any do not have.
    """
    if round(depth) in DEPTHS:
        return _ends_at(round(depth), question)
    ends = {known: _ends_at(known, question) for known in DEPTHS}
    high = min((high for known, (_, high) in ends.items() if known < depth), default=1.0)
    return min(high, max(low for known, (low, _) in ends.items() if known > depth)), high


def is_measured_rank(question: RankQuestion, depth: float) -> bool:
    """Whether such a network was trained: its depth, its rank and its width."""
    return round(depth) in DEPTHS and any(curve.has(question) for curve in _curves(round(depth)))


def measured_attention_ends(ratio: float) -> Ends:
    """Redundant share of 3 or 6 layers at heads x head_dim / width = `ratio`, above 1."""
    return _ends(ratio, (FREE, *attention_curve()))


def nearest(curve: tuple[Point, ...], ratio: float) -> Point:
    """The point whose ratio is nearest."""
    return min(curve, key=lambda point: abs(math.log(ratio / point.at)))


def is_on(ratio: float, points: Sequence[Point]) -> bool:
    """Whether one of the points was measured at this ratio."""
    return any(is_same(ratio, point.at) for point in points)


def ends_of(point: Point) -> Ends:
    """The interval of a point as shares: nothing below 0, and 1 where no upper end is known."""
    low, high = point.estimate.low, point.estimate.high
    return max(0.0, low or 0.0), 1.0 if high is None else max(0.0, high)


def _ends_at(depth: int, question: RankQuestion) -> Ends:
    found = [curve.bounds(question) for curve in _curves(depth)]
    high = min(high for _, high in found)
    return min(high, max(low for low, _ in found)), high


def _curves(depth: int) -> tuple[_OfWidth | _OfRank, ...]:
    if depth == 6:
        pairs = zip(rank_curve(), rank_of_tokens_curve(), strict=True)
        points = _rising([_spanned(*pair) for pair in pairs])
        return (_OfWidth(width=WIDTH, points=points),)
    series = rank_series(depth).items()
    return tuple(_OfRank(rank=rank, points=_rising(points)) for rank, points in series)


def _spanned(first: Point, second: Point) -> Point:
    """Positions capped too, or tokens alone: a point that holds both intervals."""
    both = (first.estimate, second.estimate)
    lows = [estimate.low for estimate in both if estimate.low is not None]
    highs = [estimate.high for estimate in both if estimate.high is not None]
    high = max(highs) if len(highs) == len(both) else None
    estimate = Estimate(value=first.estimate.value, low=min(lows, default=None), high=high)
    return Point(at=first.at, estimate=estimate)


def _rising(points: Sequence[Point]) -> tuple[Point, ...]:
    """From no bottleneck on, as wide as it takes for both ends to rise, as the truth does."""
    mildest_first = sorted(points, key=lambda point: -point.at)
    lows = list(itertools.accumulate((ends_of(p)[0] for p in reversed(mildest_first)), min))
    highs = itertools.accumulate((ends_of(point)[1] for point in mildest_first), max)
    ends = zip(mildest_first, reversed(lows), highs, strict=True)
    return FREE, *(
        Point(
            at=point.at,
            estimate=replace(
                point.estimate, low=low, high=None if point.estimate.high is None else high
            ),
        )
        for point, low, high in ends
    )


def _ends(ratio: float, mildest_first: tuple[Point, ...]) -> Ends:
    """On the curve that begins without a bottleneck and ends at the worst that was measured."""
    for point in mildest_first:
        if is_same(ratio, point.at):
            return ends_of(point)
    distance = abs(math.log(ratio))
    for milder, worse in itertools.pairwise(mildest_first):
        if distance < abs(math.log(worse.at)):
            return _between(distance, milder, worse)
    return ends_of(mildest_first[-1])[0], 1.0


def _between(distance: float, milder: Point, worse: Point) -> Ends:
    (low, high), (worse_low, worse_high) = ends_of(milder), ends_of(worse)
    if worse.estimate.value is None and worse.estimate.high is None:
        return low, 1.0
    start, end = abs(math.log(milder.at)), abs(math.log(worse.at))
    part = (distance - start) / (end - start)
    return low + part * (worse_low - low), high + part * (worse_high - high)
