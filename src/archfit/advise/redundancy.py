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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from archfit.fit.evidence_points import Point, points_of
from archfit.spec.estimate import Estimate

READING = 0.05  # the numbers are "about": what a reader of the figures could be off
RANK_POINT = (16 / 680, 0.25)  # 5.1, figure 2, 12 layers: r / d_x
ATTENTION_POINTS = ((1.0, 0.0), (4.0, 0.25), (16.0, 0.45))  # 5.3: H d_a / d_x
SAME = 1.005  # ratios closer than this are the same
Ends = tuple[float, float]  # of an interval of shares; 1 where nothing bounds it from above
NOTHING = Estimate(value=0.0, low=0.0, high=0.0)
FREE = Point(what="", at=1.0, estimate=NOTHING)  # without a bottleneck nothing is lost
RANK_SETTING = "6 layers, width 256, English"
ATTENTION_SETTING = "3 and 6 layers, 2.65M, English, feed-forward layers of 4 widths"
T5_SETTING = "6 and 12 layers, 2.65M, English, feed-forward layers of 4 attentions"
DEPTHS = (2, 6, 8)  # layers that curves of ranks were measured at
WIDTH = 256  # of the networks of 6 layers
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
            return f"at least {100 * self.low:.0f} %"
        return f"{100 * self.low:.0f} to {100 * self.high:.0f} %"


@dataclass(frozen=True, kw_only=True, slots=True)
class RankQuestion:
    """A question: what does this rank cost a network of this width?"""

    rank: float
    width: float

    @property
    def ratio(self) -> float:
        """Rank over width."""
        return self.rank / self.width


def rank_redundancy(rank: float, width: float, depth: float | None) -> Redundancy:
    """For an embedding of this rank; a depth that is not known counts as deep.

    Up to 8 layers: our runs at 2, 6 and 8, and between them. Deeper: their upper ends, since
    redundancy fell with depth, and from 12 layers on the paper's point for every larger ratio and
    rank; the lower end is the lowest.
    """
    question = RankQuestion(rank=rank, width=width)
    by_depth = (
        f"{_amount(one)} with {one.what.replace(' x ', ' layers of width ')}"
        for one in points_of("rank-and-depth")
    )
    at, share = RANK_POINT
    near = _nearest(points_of("rank"), question.ratio)
    source = (
        f"Wies et al. 2021 (5.1, 12 layers) found about {100 * share:.0f} % of the parameters "
        f"redundant where the rank is {100 * at:.3g} % of the width. archfit's own runs "
        f"({RANK_SETTING}): {_amount(near)} at {100 * near.at:.3g} %. It falls with depth: rank 16 "
        f"cost {', '.join(by_depth)}. At one share of the width rank 64 cost less than rank 16"
    )
    if question.ratio * SAME > 1:
        return _redundancy((0.0, 0.0), "no bottleneck", source)
    if depth is None or depth > DEPTHS[-1]:
        return _deep_rank(question, math.inf if depth is None else depth, source)
    ends, known = measured_rank_ends(question, depth), round(depth)
    is_trained = known in DEPTHS and any(curve.has(question) for curve in _curves(known))
    basis = _own_basis(is_measured=is_trained, is_beyond=ends[1] == 1)
    return _redundancy(ends, basis, source)


def _deep_rank(question: RankQuestion, depth: float, source: str) -> Redundancy:
    """From the paper's point and, where the ratio is one of ours, our runs at 6 and 8 layers."""
    low, high = paper_rank_ends(question.ratio)
    if depth < PAPER_DEPTH or question.rank * SAME < PAPER_RANK:
        high = 1.0  # shallower networks and smaller ranks may waste more than the paper's
    ours = [measured_rank_ends(question, known) for known in DEPTHS[1:]]
    is_ours = question.ratio * SAME >= OWN_RATIO
    if is_ours:
        low, high = min(low, *(end for end, _ in ours)), min(high, *(end for _, end in ours))
    basis: Basis = "between measurements of the paper"
    if high == 1:
        basis = "beyond what was measured"
    elif is_ours:
        basis = "archfit's and the paper's measurements"
    elif is_same(question.ratio, RANK_POINT[0]):
        basis = "measured in the paper"
    return _redundancy((low, high), basis, source)


def attention_redundancy(ratio: float, depth: float | None, *, like_t5: bool) -> Redundancy:
    """For heads that are together `ratio` times as wide as the stream; no depth counts as deep.

    `like_t5`: hidden units go with the attention. As shallow as our runs: our curve. Deeper: from
    the lower of our end and the paper's to the higher, since they disagree and size, depth or
    length of training may be the reason. Without a curve of ours the paper's, from 12 layers on.
    """
    curve = points_of("attention" if like_t5 else "wide-attention")
    depths = ATTENTION_DEPTHS[like_t5]
    source = _attention_source(ratio, curve, like_t5=like_t5)
    if ratio < SAME:
        return _redundancy((0.0, 0.0), "no bottleneck", source)
    paper, is_beyond = paper_attention_ends(ratio), ratio > ATTENTION_POINTS[-1][0] * SAME
    if not curve:
        is_shallow = depth is not None and depth < PAPER_DEPTH
        return _papers_attention(paper, source, ratio, is_beyond=is_beyond or is_shallow)
    ours = _ends(ratio, (FREE, *curve))
    if depth is not None and depth <= depths[-1]:
        is_beyond = is_beyond or round(depth) < depths[0]
        is_measured = round(depth) in depths and is_on(ratio, curve)
        return _redundancy(ours, _own_basis(is_measured=is_measured, is_beyond=is_beyond), source)
    ends = (min(ours[0], paper[0]), max(ours[1], paper[1]))
    both: Basis = "archfit's and the paper's measurements"
    return _redundancy(ends, "beyond what was measured" if is_beyond else both, source)


def _papers_attention(ends: Ends, source: str, ratio: float, *, is_beyond: bool) -> Redundancy:
    """From the paper's points alone."""
    basis: Basis = "between measurements of the paper"
    if is_beyond:
        basis = "beyond what was measured"
    elif any(is_same(ratio, at) for at, _ in ATTENTION_POINTS[1:]):
        basis = "measured in the paper"
    return _redundancy(ends, basis, source)


def _redundancy(ends: Ends, basis: Basis, source: str) -> Redundancy:
    return Redundancy(low=round(ends[0], 3), high=round(ends[1], 3), basis=basis, source=source)


def _own_basis(*, is_measured: bool, is_beyond: bool) -> Basis:
    if is_beyond:
        return "beyond what was measured"
    return "measured by archfit" if is_measured else "between measurements of archfit"


def _attention_source(ratio: float, curve: tuple[Point, ...], *, like_t5: bool) -> str:
    paper = " and ".join(
        f"{100 * share:.0f} % at {at:g} times the width" for at, share in ATTENTION_POINTS[1:]
    )
    source = (
        f"Wies et al. 2021 (5.3, 12 to 24 layers, 30M to 70M parameters) found about {paper} "
        "redundant"
    )
    if not curve:
        return source
    setting, near = T5_SETTING if like_t5 else ATTENTION_SETTING, _nearest(curve, ratio)
    ours = f"{_amount(near)} at {near.at:.3g} times"
    return f"{source}. archfit's own runs ({setting}): {ours}"


def _nearest(curve: tuple[Point, ...], ratio: float) -> Point:
    return min(curve, key=lambda point: abs(math.log(ratio / point.at)))


def _amount(point: Point) -> str:
    """What was measured, with its interval, or the limit that it is."""
    low, high = (f"{100 * end:.0f}" for end in ends_of(point))
    is_open = point.estimate.high is None
    if point.estimate.value is None:
        return f"at least {low} %" if is_open else f"at most {high} %"
    ends = f"{low} or more" if is_open else f"{low} to {high}"
    return f"{100 * point.estimate.value:.0f} % ({ends})"


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
class RankCurve:
    """Many ranks at one width, or one rank at many; points from the mildest to the worst."""

    curve: tuple[Point, ...]
    width: int | None = None
    rank: int | None = None

    def bounds(self, question: RankQuestion) -> Ends:
        """What it says of the question.

        Of one width: by its ratio and by its rank, the milder of which is a lower end, the worse an
        upper. Of one rank: an upper end for larger ranks, a lower end for smaller ones, both for
        its own.
        """
        if self.width is not None:
            by_rank = min(1.0, question.rank / self.width)
            milder, worse = max(question.ratio, by_rank), min(question.ratio, by_rank)
            return _ends(milder, self.curve)[0], _ends(worse, self.curve)[1]
        assert self.rank is not None
        low, high = _ends(question.ratio, self.curve)
        if is_same(question.rank, self.rank):
            return low, high
        return (low, 1.0) if question.rank < self.rank else (0.0, high)

    def has(self, question: RankQuestion) -> bool:
        """Whether the question is one of its points."""
        pairs = (question.width, self.width), (question.rank, self.rank)
        is_same_setting = all(own is None or is_same(asked, own) for asked, own in pairs)
        return is_same_setting and is_on(question.ratio, self.curve)


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


def is_on(ratio: float, curve: Sequence[Point]) -> bool:
    """Whether one of the points was measured at this ratio."""
    return any(is_same(ratio, point.at) for point in curve)


def ends_of(point: Point) -> Ends:
    """The interval of a point as shares: nothing below 0, and 1 where no upper end is known."""
    low, high = point.estimate.low, point.estimate.high
    return max(0.0, low or 0.0), 1.0 if high is None else max(0.0, high)


def _ends_at(depth: int, question: RankQuestion) -> Ends:
    found = [curve.bounds(question) for curve in _curves(depth)]
    high = min(high for _, high in found)
    return min(high, max(low for low, _ in found)), high


def _curves(depth: int) -> tuple[RankCurve, ...]:
    if depth == 6:
        pairs = zip(points_of("rank"), points_of("rank-of-tokens"), strict=True)
        return (RankCurve(width=WIDTH, curve=_rising([_spanned(*pair) for pair in pairs])),)
    series = {rank: points_of("rank-or-ratio", f"{depth} layers, rank {rank}") for rank in (16, 64)}
    return tuple(RankCurve(rank=rank, curve=_rising(curve)) for rank, curve in series.items())


def _spanned(first: Point, second: Point) -> Point:
    """Positions capped too, or tokens alone: a point that holds both intervals."""
    both = (first.estimate, second.estimate)
    lows = [estimate.low for estimate in both if estimate.low is not None]
    highs = [estimate.high for estimate in both if estimate.high is not None]
    high = max(highs) if len(highs) == len(both) else None
    estimate = Estimate(value=first.estimate.value, low=min(lows, default=None), high=high)
    return replace(first, estimate=estimate)


def _rising(curve: Sequence[Point]) -> tuple[Point, ...]:
    """From no bottleneck on, as wide as it takes for both ends to rise, as the truth does."""
    mildest_first = sorted(curve, key=lambda point: -point.at)
    lows = list(itertools.accumulate((ends_of(p)[0] for p in reversed(mildest_first)), min))
    highs = itertools.accumulate((ends_of(point)[1] for point in mildest_first), max)
    risen = [FREE]
    for point, low, high in zip(mildest_first, reversed(lows), highs, strict=True):
        end = None if point.estimate.high is None else high
        risen.append(replace(point, estimate=replace(point.estimate, low=low, high=end)))
    return tuple(risen)


def _ends(ratio: float, mildest_first: tuple[Point, ...]) -> Ends:
    """On the curve that begins without a bottleneck and ends at the worst that was measured."""
    for point in mildest_first:
        if is_same(ratio, point.at):
            return ends_of(point)
    distance = abs(math.log(ratio))
    for milder, worse in itertools.pairwise(mildest_first):
        start, end = abs(math.log(milder.at)), abs(math.log(worse.at))
        if distance < end:
            (low, high), (worse_low, worse_high) = ends_of(milder), ends_of(worse)
            if worse.estimate.value is None and worse.estimate.high is None:
                return low, 1.0
            part = (distance - start) / (end - start)
            return low + part * (worse_low - low), high + part * (worse_high - high)
    return ends_of(mildest_first[-1])[0], 1.0
