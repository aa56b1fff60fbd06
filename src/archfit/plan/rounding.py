"""Shapes that hardware likes, near the ideal one."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from archfit.plan.law import WEIGHTS, IdealShape

HEAD_DIMS = (128, 64, 32, 16, 8)
USUAL = 64
WIDE = 1024  # from here on heads of 128
NEAR = 1.5  # widths that are tried lie within this factor of the ideal one
TILES = ((128.0, 64), (32.0, 16), (0.0, 8))  # ideal width from which the multiple is taken


class BudgetTooSmall(ValueError):
    """Not even one layer of the least width can be paid."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundedShape:
    """Whole numbers."""

    depth: int
    width: int
    heads: int
    head_dim: int

    @property
    def block_params(self) -> int:
        """12 L d^2."""
        return WEIGHTS * self.depth * self.width**2


def rounded_shape(
    ideal: IdealShape,
    affordable_depth: Callable[[int], float],
    *,
    multiple_of: int | None,
    max_depth: int,
) -> RoundedShape:
    """The shape on the grid that uses the budget best and stays close to the ideal proportions.

    `affordable_depth` says how many layers of a width the budget pays for.
    """
    multiple = usual_multiple(ideal.width) if multiple_of is None else multiple_of
    if affordable_depth(multiple) < 1:
        raise BudgetTooSmall(
            f"the budget does not pay for one layer of width {multiple}; use a larger budget, a "
            "smaller vocabulary, --rank, --tied or a smaller --multiple-of"
        )
    candidates = [
        (depth, width, affordable)
        for width in _widths(ideal.width, multiple)
        for affordable in (affordable_depth(width),)
        for depth in _depths(affordable, max_depth)
    ]
    depth, width, _ = min(
        candidates,
        key=lambda shape: (
            abs(math.log(shape[0] / shape[2]))  # of the budget missed
            + 0.5 * abs(math.log(shape[1] / ideal.width))  # away from the ideal width
        ),
    )
    head_dim = usual_head_dim(width)
    return RoundedShape(depth=depth, width=width, heads=width // head_dim, head_dim=head_dim)


def usual_multiple(width: float) -> int:
    """64 where the width allows it without going far off, less for the narrowest."""
    return next(multiple for least, multiple in TILES if width >= least)


def usual_head_dim(width: int) -> int:
    """128 for wide networks, 64 for others, a smaller power of two where neither divides.

    A width that none divides is one that the user asked for: the divisor nearest to 64 then.
    """
    likely = HEAD_DIMS if width >= WIDE else HEAD_DIMS[1:]
    fitting = [size for size in likely if width % size == 0]
    several = [size for size in fitting if width // size >= 2]
    return (several or fitting or [_divisor_near(USUAL, width)])[0]


def _divisor_near(goal: int, number: int) -> int:
    low = (size for size in range(1, math.isqrt(number) + 1) if number % size == 0)
    divisors = [size for one in low for size in (one, number // one)]
    return min(divisors, key=lambda size: abs(math.log(size / goal)))


def _widths(ideal: float, multiple: int) -> list[int]:
    """Multiples near the ideal width, its neighbours on the grid among them."""
    least = max(1, math.ceil(ideal / NEAR / multiple))
    most = math.floor(ideal * NEAR / multiple)
    step = max(1, (most - least) // 1000)  # a thousand widths are close enough together
    neighbours = {max(1, math.floor(ideal / multiple)), max(1, math.ceil(ideal / multiple))}
    return [multiple * count for count in neighbours | set(range(least, most + 1, step))]


def _depths(affordable: float, max_depth: int) -> list[int]:
    """The whole depths around what the budget pays for."""
    if affordable < 0.5:  # a whole layer would cost twice the budget
        return []
    near = {max(1, math.floor(affordable)), max(1, math.ceil(affordable))}
    return sorted({min(depth, max_depth) for depth in near})
