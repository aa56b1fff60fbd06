"""What a bottleneck was measured to cost: the share of parameters that a network could do without.

archfit's own runs are of shallow networks, those of Wies et al. 2021 of deeper ones, and the two
do not agree: redundancy fell with depth in our runs, and wide attention cost them less than us. A
network as shallow as ours is answered from our runs; a deeper one from both. Wide attention is two
questions: where hidden units go with it, as in T5 and the paper's networks, and where they do not.

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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from archfit.fit.evidence_points import Point, points_of
from archfit.spec.packed import packed_table

WORDS = packed_table("advise_sentences.toml")["redundancy"]
READING = 0.05  # the numbers are "about": what a reader of the figures could be off
# The paper's ratios and shares, from no bottleneck on.
RANK_POINTS = ((1.0, 0.0), (16 / 680, 0.25))  # 5.1, figure 2, 12 layers: r / d_x
ATTENTION_POINTS = ((1.0, 0.0), (4.0, 0.25), (16.0, 0.45))  # 5.3: H d_a / d_x
SAME = 1.005  # ratios closer than this are the same
Ends = tuple[float, float]  # of an interval of shares; 1 where nothing bounds it from above
DEPTHS = (2, 6, 8)  # layers that curves of ranks were measured at
WIDTH = 256  # of the networks of 6 layers
RANKS = (16, 64)  # of those of 2 and of 8
PAPER_DEPTH, PAPER_RANK = 12, 16  # of the paper's point
OWN_RATIO = 1 / 16  # from here on our runs bound the cost from above
ATTENTION_DEPTHS = {False: (3, 6), True: (6, 12)}  # by whether hidden units go with attention

Basis = Literal[
    "no bottleneck",
    "measured by archfit",
    "between measurements of archfit",
    "archfit's and the paper's measurements",
    "measured in the paper",
    "between measurements of the paper",
    "beyond what was measured",
]
OWN: dict[bool, Basis] = {  # by whether it was measured
    True: "measured by archfit",
    False: "between measurements of archfit",
}


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

    def __str__(self) -> str:
        if self.high == 1:
            return f"at least {100 * self.low:.0f} %"
        return f"{100 * self.low:.0f} to {100 * self.high:.0f} %"


class Knot(NamedTuple):
    """A point of a curve: its ratio, and its interval."""

    at: float
    low: float
    high: float
    is_limit: bool  # that has no curve towards it


def rank_redundancy(rank: float, width: float, depth: float | None) -> Redundancy:
    """For an embedding of this rank; a depth that is not known counts as deep.

    Up to 8 layers: our runs at 2, 6 and 8, and between them. Deeper: their upper ends, since
    redundancy fell with depth, and from 12 layers on the paper's point for every larger ratio and
    rank; the lower end is the lowest.
    """
    source = _rank_source(rank / width)
    if rank / width * SAME > 1:
        return _redundancy((0.0, 0.0), "no bottleneck", source)
    if depth is None or depth > DEPTHS[-1]:
        return _deep_rank(rank, width, math.inf if depth is None else depth, source)
    ends, known = _rank_ends(rank, width, depth), round(depth)
    is_trained = known in DEPTHS and any(is_own for _, is_own in _bounds(known, rank, width))
    return _redundancy(ends, OWN[is_trained], source, is_beyond=ends[1] == 1)


def _deep_rank(rank: float, width: float, depth: float, source: str) -> Redundancy:
    """From the paper's point and, where the ratio is one of ours, our runs at 6 and 8 layers."""
    ratio, (at, share) = rank / width, RANK_POINTS[-1]
    low, high = _paper_ends(ratio, RANK_POINTS)
    high = share + READING if high < 1 else 1.0
    if depth < PAPER_DEPTH or rank * SAME < PAPER_RANK:
        high = 1.0  # shallower networks and smaller ranks may waste more than the paper's
    is_read = _is_same(ratio, at)
    basis: Basis = "measured in the paper" if is_read else "between measurements of the paper"
    if ratio * SAME >= OWN_RATIO:
        basis = "archfit's and the paper's measurements"
        lows, highs = zip(*(_rank_ends(rank, width, known) for known in DEPTHS[1:]), strict=True)
        low, high = min(low, *lows), min(high, *highs)
    return _redundancy((low, high), basis, source, is_beyond=high == 1)


def attention_redundancy(ratio: float, depth: float | None, *, like_t5: bool) -> Redundancy:
    """For heads that are together `ratio` times as wide as the stream; no depth counts as deep.

    `like_t5`: hidden units go with the attention. As shallow as our runs: our curve. Deeper: from
    the lower of our end and the paper's to the higher, since they disagree and size, depth or
    length of training may be the reason.
    """
    finding = "attention" if like_t5 else "wide-attention"
    points, depths = points_of(finding), ATTENTION_DEPTHS[like_t5]
    shares = (f"{100 * part:.0f} % at {at:g} times the width" for at, part in ATTENTION_POINTS[1:])
    near = _nearest(points, ratio)
    told = {"shares": " and ".join(shares), "amount": _amount(near), "near": near.at}
    source = WORDS["attention"].format(runs=WORDS["runs"][finding], **told)
    if ratio < SAME:
        return _redundancy((0.0, 0.0), "no bottleneck", source)
    ours = _ends(ratio, _curve(map(_knot, points)))
    is_beyond = ratio > ATTENTION_POINTS[-1][0] * SAME
    if depth is not None and depth <= depths[-1]:
        is_measured = round(depth) in depths and _is_same(ratio, near.at)
        is_beyond = is_beyond or round(depth) < depths[0]
        return _redundancy(ours, OWN[is_measured], source, is_beyond=is_beyond)
    paper = _paper_ends(ratio, ATTENTION_POINTS)
    ends = min(ours[0], paper[0]), max(ours[1], paper[1])
    return _redundancy(ends, "archfit's and the paper's measurements", source, is_beyond=is_beyond)


def _redundancy(ends: Ends, basis: Basis, source: str, *, is_beyond: bool = False) -> Redundancy:
    known: Basis = "beyond what was measured" if is_beyond else basis
    return Redundancy(low=round(ends[0], 3), high=round(ends[1], 3), basis=known, source=source)


def _rank_source(ratio: float) -> str:
    by_depth = (
        f"{_amount(one)} with {one.what.replace(' x ', ' layers of width ')}"
        for one in points_of("rank-and-depth")
    )
    near, (at, share) = _nearest(points_of("rank"), ratio), RANK_POINTS[-1]
    numbers = {"share": 100 * share, "at": 100 * at, "near": 100 * near.at}
    return str(WORDS["rank"].format(amount=_amount(near), by_depth=", ".join(by_depth), **numbers))


def _nearest(curve: tuple[Point, ...], ratio: float) -> Point:
    return min(curve, key=lambda point: abs(math.log(ratio / point.at)))


def _amount(point: Point) -> str:
    """What was measured, with its interval, or the limit that it is."""
    knot, is_open = _knot(point), point.estimate.high is None
    low, high = f"{100 * knot.low:.0f}", f"{100 * knot.high:.0f}"
    if point.estimate.value is None:
        return f"at least {low} %" if is_open else f"at most {high} %"
    ends = f"{low} or more" if is_open else f"{low} to {high}"
    return f"{100 * point.estimate.value:.0f} % ({ends})"


def _is_same(ratio: float, other: float) -> bool:
    """Whether two ratios cannot be told apart."""
    return max(ratio, other) / min(ratio, other) < SAME


def _paper_ends(ratio: float, points: Sequence[tuple[float, float]]) -> Ends:
    """Redundant share of 12 layers and more by two curves between the paper's points."""
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if _is_same(ratio, x1):
            return y1 - READING, y1 + READING
        if abs(math.log(ratio)) < abs(math.log(x1)):
            straight = y0 + (y1 - y0) * (ratio - x0) / (x1 - x0)
            logarithmic = y0 + (y1 - y0) * math.log(ratio / x0) / math.log(x1 / x0)
            low, high = sorted((straight, logarithmic))
            return max(0.0, low - READING), high + READING
    return points[-1][1] - READING, 1.0


def _rank_ends(rank: float, width: float, depth: float) -> Ends:
    """Redundant share by our runs of up to 8 layers, for ratios below 1.

    It falls with depth: between depths that were trained the deeper ones give the lower end and the
    shallower ones the upper, which fewer layers than any do not have.
    """

    def trained(known: int) -> Ends:
        lows, highs = zip(*(ends for ends, _ in _bounds(known, rank, width)), strict=True)
        return min(max(lows), *highs), min(highs)

    if round(depth) in DEPTHS:
        return trained(round(depth))
    high = min((trained(known)[1] for known in DEPTHS if known < depth), default=1.0)
    return min(high, max(trained(known)[0] for known in DEPTHS if known > depth)), high


@cache
def _curves(depth: int) -> dict[int | None, tuple[Knot, ...]]:
    """Of our runs of so many layers: of width 256 at 6 (no rank), else of each of RANKS."""
    if depth == 6:  # positions capped too, or tokens alone: intervals hold both
        pairs = zip(points_of("rank"), points_of("rank-of-tokens"), strict=True)
        return {None: _curve(_knot(*pair) for pair in pairs)}
    series = {rank: points_of("rank-or-ratio", f"{depth} layers, rank {rank}") for rank in RANKS}
    return {rank: _curve(map(_knot, points)) for rank, points in series.items()}


def _bounds(depth: int, rank: float, width: float) -> Iterator[tuple[Ends, bool]]:
    """What each curve of a depth says of a rank, and whether that is one of its points.

    A curve of one width: by the ratio and by the rank, the milder of which is a lower end, the
    worse an upper. Of one rank: an upper end for larger ranks, a lower end for smaller ones, both
    for its own.
    """
    ratio = rank / width
    for own, curve in _curves(depth).items():
        worse, milder = sorted((ratio, ratio if own else min(1.0, rank / WIDTH)))
        low, high = _ends(milder, curve)[0], _ends(worse, curve)[1]
        is_own = _is_same(rank, own) if own else _is_same(width, WIDTH)
        if own and not is_own:
            low, high = (low, 1.0) if rank < own else (0.0, high)
        yield (low, high), is_own and any(_is_same(ratio, knot.at) for knot in curve)


def _knot(*points: Point) -> Knot:
    """Measurements at one ratio, as an interval that holds them: no share is below 0."""
    estimates = [point.estimate for point in points]
    highs = [1.0 if each.high is None else max(0.0, each.high) for each in estimates]
    lows = [max(0.0, each.low or 0.0) for each in estimates]
    is_limit = estimates[0].value is None and max(highs) == 1
    return Knot(points[0].at, min(lows), max(highs), is_limit)


def _curve(knots: Iterable[Knot]) -> tuple[Knot, ...]:
    """From no bottleneck on, as wide as it takes for both ends to rise, as the truth does."""
    mildest_first = sorted(knots, key=lambda knot: abs(math.log(knot.at)))
    lows = [*itertools.accumulate((knot.low for knot in reversed(mildest_first)), min)][::-1]
    highs = itertools.accumulate((knot.high for knot in mildest_first), max)
    wide = zip(mildest_first, lows, highs, strict=True)
    free = Knot(1.0, 0.0, 0.0, is_limit=False)
    return (free, *(knot._replace(low=low, high=high) for knot, low, high in wide))


def _ends(ratio: float, curve: Sequence[Knot]) -> Ends:
    """On a curve that begins without a bottleneck and ends at the worst that was measured."""
    for knot in curve:
        if _is_same(ratio, knot.at):
            return knot.low, knot.high
    distance = abs(math.log(ratio))
    for milder, worse in itertools.pairwise(curve):
        start, end = abs(math.log(milder.at)), abs(math.log(worse.at))
        if distance < end:
            if worse.is_limit:
                return milder.low, 1.0
            part = (distance - start) / (end - start)
            low, high = worse.low - milder.low, worse.high - milder.high
            return milder.low + part * low, milder.high + part * high
    return curve[-1].low, 1.0
