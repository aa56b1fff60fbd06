"""The sizes that theory functions accept, and what is said about the others."""

import math
from typing import NamedTuple


class Range(NamedTuple):
    """The whole numbers from `least` to `most` that a size may be."""

    least: int
    most: int


# A depth of 10^6 makes 3^depth half a million digits long; a width of 10^9 is a thousandfold
# any network's. Beyond them no question about a network is left.
DEPTH = Range(1, 10**6)
WIDTH = Range(1, 10**9)
COUNT = Range(1, 10**12)

RANGES: dict[str, Range] = {
    "depth": DEPTH,
    "deep_depth": DEPTH,
    "shallow_depth": DEPTH,
    "width": WIDTH,
    "deep_width": WIDTH,
    "heads": WIDTH,
    "head_dim": WIDTH,
    "embedding_rank": WIDTH,
    "position_rank": Range(0, 10**9),
    "positions": Range(2, 10**12),
    "inside": COUNT,
    "outside": COUNT,
    "vocab": COUNT,
    "size": Range(108, 10**18),  # 108 = 12 log3(3) 3^2: one layer
    "dimension": Range(1, 12),
    "degree": Range(1, 81),
    "entry": Range(0, 10**9),
}


def check_sizes(**sizes: int) -> None:
    """Refuse a size that is no whole number or lies outside its range, naming the nearest."""
    for name, value in sizes.items():
        least, most = RANGES[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(
                f"{name}={value} is not a whole number; give one from {least} to {most}"
            )
        if not least <= value <= most:
            nearest = min(max(value, least), most)
            raise ValueError(
                f"{name}={shown(value)} is not in {least}..{most}; the nearest is {nearest}"
            )


def check_heads_fit(*, width: int, heads: int) -> None:
    """Refuse more heads than coordinates: the network would have heads of no dimension."""
    if heads > width:
        raise ValueError(
            f"heads={heads} exceeds width={width}, so a head has no dimension; "
            f"use at most {width} heads"
        )


def shown(value: int) -> str:
    """`value` as a person wants to read it in a sentence."""
    if abs(value) < 10**15:
        return str(value)
    return f"{'-' if value < 0 else ''}about 10^{math.log10(abs(value)):.0f}"
