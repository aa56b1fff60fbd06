"""The shape for a request: the depth that the prior gives, and a width and heads that hardware
likes.

The budget is met within SIZE_SLACK where that is possible, the depth that was chosen is kept within
DEPTH_SLACK or a layer, where need be DEPTH_LIMIT. From LARGE on widths and heads are multiples of
8, and heads of 64 or 128 are taken wherever the two slacks leave room for them.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from archfit.advise.budgets import Budget, TrainingMinutes
from archfit.advise.plan_request import PlanRequest
from archfit.advise.prior import DepthCost, DepthOutlook, Knowledge, family_prior
from archfit.spec.counting import NetworkSizes
from archfit.spec.search import bisect_rising, first_whole
from archfit.theory.law import WEIGHTS

HEAD_DIMS = (128, 64)
USUAL = 64
ONE_AT_MOST = 96  # from this width on there are two heads or more
ODD = 0.2  # how much further from 64 a multiple of 8 may be
WIDE = 1024  # from here on heads of 128
LARGE = 8_000_000  # parameters from which on widths and heads are multiples that hardware likes
STEPS = 40  # a width is at least so many multiples
SIZE_SLACK, DEPTH_SLACK, LAYER_SLACK = 0.03, 0.09, 0.75
DEPTH_LIMIT = 0.15  # no shape is further away, but for LAYER_SLACK
ODD_HEADS, UNLIKED_HEADS = 0.5, 2.0  # what heads of an unusual size cost, in slacks
OFF_DEPTH, OFF_SIZE, ONE_HEAD = 1.0, 10.0, 100.0  # what lies beyond a slack, and one wide head
GPU_MULTIPLE = 8  # numbers of 16 bits that the matrix units of a GPU read at once
TOO_LARGE = 1e6  # what weights that do not fit their room cost, in slacks
NEIGHBOURS = 3  # multiples to either side that are tried
LEAST_WIDTH = 16
LEAST_RATIO = 2  # of width to depth, where nobody has measured less
DEEPEST = 1 << 20  # layers: more than any budget buys at twice their width
TABLES_AT_MOST = 2  # times the blocks: networks of the atlas have tables of no more than half


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


@dataclass(frozen=True, kw_only=True, slots=True)
class BestShape:
    """A shape, the size it was chosen for, and what is known of depths there."""

    shape: RoundedShape
    params: NetworkSizes
    size: float  # by which the prior was asked
    outlook: DepthOutlook
    level: float  # bits per byte of a good network of that size
    tokens: float  # a parameter, that its depth was chosen for


def cost(request: PlanRequest, depth: float, width: float) -> float:
    """What a shape takes of the budget."""
    sizes = request.sizes(depth, width)
    return sizes.blocks if request.budget.kind == "block_params" else sizes.total


def best_shape(request: PlanRequest, knowledge: Knowledge | None = None) -> BestShape:
    """The shape of least expected loss that the budget buys."""
    known = knowledge or family_prior(request.family, request.block)
    request = replace(request, max_depth=min(request.max_depth, known.deepest))  # rounded, too
    sized, slowness, of_depth = _sized_by_time(request, known)
    multiple = sized.multiple_of or 1
    least = math.ceil(LEAST_WIDTH / multiple) * multiple  # the first of those asked for
    needed = cost(sized, 1, least)
    if needed > sized.budget.params:  # type: ignore[union-attr]
        raise BudgetTooSmall(
            f"the budget of {request.budget} does not pay for one layer of width {least}; use a "
            f"larger budget ({needed:,.0f} parameters), a smaller vocabulary or a smaller --context"
        )
    deepest, most = _deepest(sized, least), sized.max_depth
    size = _size(sized, min(8.0, deepest, most))
    found = known.outlook(size, deepest, request.trained_tokens(size), slowness, most)
    size = _size(sized, found.depth)  # tables shrink as a network deepens: look once more
    tokens = request.trained_tokens(size)
    found = known.outlook(size, deepest, tokens, slowness, most)
    sized = replace(sized, max_depth=min(most, int(deepest)))
    shape = shape_of_depth(sized, found.depth)
    shape = shape_of_depth(of_depth(shape.depth), shape.depth) if slowness else shape
    return BestShape(
        shape=shape,
        params=sized.sizes(shape.depth, shape.width),
        size=size,
        outlook=found,
        level=known.level(size),
        tokens=known.tokens_told_of(size, tokens),
    )


def _size(request: PlanRequest, depth: float) -> float:
    """The size to ask the prior by: that of all parameters, or of twice the blocks."""
    sizes = request.sizes(depth, width_of_depth(request, depth))
    return min(sizes.total, TABLES_AT_MOST * sizes.blocks)


def _deepest(request: PlanRequest, least: int) -> float:
    """The depth at which the budget leaves a width of twice the depth, and the least one."""
    budget = request.budget.params  # type: ignore[union-attr]

    def is_narrow(depth: int) -> bool:
        return cost(request, depth, float(max(least, LEAST_RATIO * depth))) > budget

    return max(1.0, first_whole(is_narrow, 1, DEEPEST) - 1.0)


def _sized_by_time(
    request: PlanRequest, known: Knowledge
) -> tuple[PlanRequest, DepthCost | None, Callable[[float], PlanRequest]]:
    """A budget of time as one of parameters: those of the depth with the least expected loss.

    And what a depth costs, since deeper networks are slower, so that they have to be smaller; and
    the parameters of other depths.
    """
    budget = request.budget
    if not isinstance(budget, TrainingMinutes):
        return request, None, lambda _: request
    vocab = request.vocabulary.size if request.vocabulary else 0

    def seconds(depth: float, width: float) -> float:
        each = budget.speed.seconds(depth=depth, width=width, vocab=vocab, context=request.context)
        return each * budget.tokens_per_param * request.sizes(depth, width).total

    @cache
    def size(depth: float) -> float:
        width = bisect_rising(lambda w: seconds(depth, w), 60 * budget.minutes, 1e-3, 1e6)
        return request.sizes(depth, width).total

    middle = size(4.0)
    slope = known.slope(middle)

    def slowness(depth: float) -> float:
        return slope * math.log(size(depth) / middle)

    def sized(depth: float) -> PlanRequest:
        if (params := round(size(depth))) < 1:
            raise BudgetTooSmall(f"{budget} train no network; use more --minutes")
        return replace(request, budget=Budget(kind="params", amount=params))

    found = known.outlook(middle, request.max_depth, budget.tokens_per_param, slowness)
    return sized(found.depth), slowness, sized


def width_of_depth(request: PlanRequest, depth: float) -> float:
    """The width that the budget leaves to a depth."""
    budget = request.budget.params  # type: ignore[union-attr]
    return bisect_rising(lambda width: cost(request, depth, width), budget, 0.0, 1e10)


def shape_of_depth(request: PlanRequest, depth: float) -> RoundedShape:
    """The shape that can be built nearest to a depth and the budget."""
    return min(_candidates(request, depth), key=lambda found: found[0])[1]


def _candidates(request: PlanRequest, wanted: float) -> Iterator[tuple[float, RoundedShape]]:
    """Shapes about a depth, and how far each is from what was asked for."""
    budget = request.budget.params  # type: ignore[union-attr]
    is_even = request.block == "llama"
    near, limit = max(LAYER_SLACK, DEPTH_SLACK * wanted), max(LAYER_SLACK, DEPTH_LIMIT * wanted)
    most = max(1, min(request.max_depth, math.floor(wanted + limit)))
    for depth in range(max(1, min(most, math.ceil(wanted - limit))), most + 1):
        ideal = width_of_depth(request, depth)
        for width in _widths(request, ideal):
            head_dim = usual_head_dim(width, is_even=is_even, is_large=budget >= LARGE)
            taken = cost(request, depth, width)
            far = _beyond(abs(taken / budget - 1) / SIZE_SLACK, OFF_SIZE)
            far += _beyond(abs(depth - wanted) / near, OFF_DEPTH)
            far += _oddness(head_dim, width, budget)
            if request.budget.kind == "bytes" and taken > budget:
                far += TOO_LARGE
            heads = width // head_dim
            yield far, RoundedShape(depth=depth, width=width, heads=heads, head_dim=head_dim)


def _widths(request: PlanRequest, ideal: float) -> Iterator[int]:
    """Those that are tried about an ideal one: usual multiples, and where heads of 64 fit into none
    of these, others that a GPU likes.

    Usual are even widths for small networks; for others a power of two that the width has often.
    """
    is_small = request.budget.params < LARGE  # type: ignore[union-attr]
    power = 1 << max(0, math.floor(math.log2(max(1.0, ideal / STEPS))))
    usual = 2 if is_small else max(GPU_MULTIPLE, min(128, power))
    for multiple in {request.multiple_of or usual, request.multiple_of or min(usual, GPU_MULTIPLE)}:
        about, least = math.floor(ideal / multiple), math.ceil(LEAST_WIDTH / multiple)
        for count in range(about - NEIGHBOURS, about + NEIGHBOURS + 2):
            yield max(least, count) * multiple


def _beyond(missed: float, much: float) -> float:
    """What a distance costs, in slacks: little within one, much beyond it."""
    return missed**2 if missed <= 1 else much * missed**4


def _oddness(head_dim: int, width: int, budget: float) -> float:
    """What an unusual size of heads costs, in slacks: in a large network more than both slacks."""
    if head_dim == width >= ONE_AT_MOST:
        return ONE_HEAD
    is_odd = head_dim % 2  # which rotary positions do not take
    if head_dim in HEAD_DIMS or width < 2 * USUAL:
        return is_odd
    return UNLIKED_HEADS * (1 + _from_usual(head_dim)) if budget >= LARGE else ODD_HEADS + is_odd


def usual_head_dim(width: int, *, is_even: bool = False, is_large: bool = False) -> int:
    """128 for wide networks, 64 for others; where neither divides, the divisor nearest to 64.

    Rotary positions need an even one, and large networks multiples of 8, where there are any.
    """
    likely = HEAD_DIMS if width >= WIDE else HEAD_DIMS[1:]
    if fitting := [size for size in likely if width % size == 0 and width // size >= 2]:
        return fitting[0]
    low = (size for size in range(1, math.isqrt(width) + 1) if width % size == 0)
    divisors = [divisor for size in low for divisor in (size, width // size)]
    divisors = [divisor for divisor in divisors if not (is_even and divisor % 2)]
    odd = math.inf if is_large and width % GPU_MULTIPLE == 0 else ODD
    return min(divisors, key=lambda size: _from_usual(size) + (odd if size % GPU_MULTIPLE else 0))


def _from_usual(head_dim: int) -> float:
    return abs(math.log(head_dim / USUAL))
