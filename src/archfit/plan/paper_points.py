"""What Wies et al. 2021 measured a bottleneck to cost, and what lies between their points.

The paper gives three numbers, each read off a figure and given as "about". Between the points of
attention two curves are drawn, straight in the ratio and straight in its logarithm, and the
interval spans both. For the rank there is one point: it bounds every larger ratio from above, and
the curve that falls fastest, the logarithmic one, is the lower end.
"""

import itertools
import math

READING = 0.05  # the numbers are "about": what a reader of the figures could be off
RANK_POINT = (16 / 680, 0.25)  # 5.1, figure 2, 12 layers: r / d_x
ATTENTION_POINTS = ((1.0, 0.0), (4.0, 0.25), (16.0, 0.45))  # 5.3: H d_a / d_x
SAME = 1.005  # ratios closer than this are the same

Ends = tuple[float, float]  # of an interval of shares; 1 where nothing bounds it from above


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
