"""What archfit's own runs measured a bottleneck to cost, and what lies between their points.

Both ends of the interval are straight in the logarithm of the ratio. A point that is only a limit
("at least") has no curve towards it: what lies before it is at least what its neighbour is.
"""

import itertools
import math

from archfit.evidence.points import Point, attention_curve, rank_curve
from archfit.plan.paper_points import Ends, is_same

FREE = Point(at=1.0, value=0.0, low=0.0, high=0.0)  # without a bottleneck nothing is lost


def own_rank_ends(ratio: float) -> Ends:
    """Redundant share of a network of 6 layers at rank / width = `ratio`, below 1."""
    return _ends(ratio, (FREE, *reversed(rank_curve())))


def own_attention_ends(ratio: float) -> Ends:
    """Redundant share of 3 or 6 layers at heads x head_dim / width = `ratio`, above 1."""
    return _ends(ratio, (FREE, *attention_curve()))


def nearest(curve: tuple[Point, ...], ratio: float) -> Point:
    """The point whose ratio is nearest."""
    return min(curve, key=lambda point: abs(math.log(ratio / point.at)))


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
    if worse.value is None and worse.high is None:
        return low, 1.0
    start, end = abs(math.log(milder.at)), abs(math.log(worse.at))
    part = (distance - start) / (end - start)
    return low + part * (worse_low - low), high + part * (worse_high - high)


def ends_of(point: Point) -> Ends:
    """The interval of a point as shares: nothing below 0, and 1 where no upper end is known."""
    return max(0.0, point.low or 0.0), 1.0 if point.high is None else max(0.0, point.high)
