"""Shapes for a request: on the law, within a depth, and rounded to what hardware likes."""

import math
from dataclasses import dataclass

from archfit.plan.law import WEIGHTS, IdealShape, solve
from archfit.plan.request import BlockParams, PlanRequest
from archfit.spec.counting import Parts
from archfit.spec.search import bisect_rising

HEAD_DIMS = (128, 64, 32, 16, 8)
USUAL = 64
WIDE = 1024  # from here on heads of 128
NEAR = 1.5  # widths that are tried lie within this factor of the ideal one
TILES = ((128.0, 64), (32.0, 16), (0.0, 8))  # ideal width from which the multiple is taken


class BudgetTooSmall(ValueError):
    """Not even one layer of the least width can be paid."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundedShape:
    """A depth, a width and heads that can be built."""

    depth: int
    width: int
    heads: int
    head_dim: int

    @property
    def block_params(self) -> int:
        """12 L d^2."""
        return WEIGHTS * self.depth * self.width**2


def cost(request: PlanRequest, depth: float, width: float) -> float:
    """What a shape takes of the budget."""
    sizes = request.sizes(depth, width)
    return sizes.block_matrices if isinstance(request.budget, BlockParams) else sizes.total


def parts(request: PlanRequest, shape: RoundedShape) -> Parts:
    """All parameters of a rounded shape by where they are."""
    sizes = request.sizes(shape.depth, shape.width)
    return Parts(
        blocks=int(sizes.block_matrices),
        biases_and_norms=int(sizes.biases_and_norms),
        embedding=int(sizes.embedding),
        total=int(sizes.total),
    )


def ideal_for(request: PlanRequest, rank_limit: float) -> IdealShape:
    """The shape on the law that the budget buys, for an input of at most this rank."""
    budget = request.budget.params
    return solve(lambda shape: cost(request, shape.depth, shape.width), budget, rank_limit)


def within(request: PlanRequest, ideal: IdealShape) -> IdealShape:
    """The ideal shape, or the one of the deepest depth allowed that the budget buys."""
    depth, budget = request.max_depth, request.budget.params
    if ideal.depth <= depth:
        return ideal
    width = bisect_rising(lambda width: cost(request, depth, width), budget, 0.0, 1e10)
    return IdealShape(depth=depth, width=width)


def rounded_for(request: PlanRequest, ideal: IdealShape) -> RoundedShape:
    """The shape on the grid that uses the budget best and stays close to the ideal proportions."""
    ideal = within(request, ideal)
    multiple = request.multiple_of or usual_multiple(ideal.width)
    if _affordable_depth(request, multiple) < 1:
        raise BudgetTooSmall(
            f"the budget does not pay for one layer of width {multiple}; use a larger budget, a "
            "smaller vocabulary, --rank, --tied or a smaller --multiple-of"
        )
    candidates = [
        (depth, width, affordable)
        for width in _widths(ideal.width, multiple)
        for affordable in (_affordable_depth(request, width),)
        for depth in _depths(affordable, request.max_depth)
    ]
    depth, width, _ = min(
        candidates,
        key=lambda shape: (
            abs(math.log(shape[0] / shape[2]))  # of the budget missed
            + 0.5 * abs(math.log(shape[1] / ideal.width))  # away from the ideal width
        ),
    )
    head_dim = usual_head_dim(width, is_even=request.block == "llama")
    return RoundedShape(depth=depth, width=width, heads=width // head_dim, head_dim=head_dim)


def _affordable_depth(request: PlanRequest, width: int) -> float:
    """How many layers of this width the budget pays for."""
    without, layer = (cost(request, depth, width) for depth in (0, 1))
    return (request.budget.params - without) / (layer - without)


def usual_multiple(width: float) -> int:
    """64 where the width allows it without going far off, less for the narrowest."""
    return next(multiple for least, multiple in TILES if width >= least)


def usual_head_dim(width: int, *, is_even: bool = False) -> int:
    """128 for wide networks, 64 for others, a smaller power of two where neither divides.

    A width that none divides is one that the user asked for: the divisor nearest to 64 then, of
    the even ones where rotary positions need that.
    """
    likely = HEAD_DIMS if width >= WIDE else HEAD_DIMS[1:]
    fitting = [size for size in likely if width % size == 0]
    several = [size for size in fitting if width // size >= 2]
    if fitting:
        return (several or fitting)[0]
    low = (size for size in range(1, math.isqrt(width) + 1) if width % size == 0)
    divisors = [divisor for size in low for divisor in (size, width // size)]
    divisors = [divisor for divisor in divisors if not (is_even and divisor % 2)]
    return min(divisors, key=lambda size: abs(math.log(size / USUAL)))


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
