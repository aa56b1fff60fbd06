"""The depth and width that the papers' law gives to a number of block parameters.

    N = 12 L min(e^(a + b L), r)^2        width = min(e^(a + b L), r)

Without the limit r this is the law of Levine et al. 2020 (published version): a network is better
deepened once its width passes e^(a + b L). With it, it is that of Wies et al. 2021: width beyond
the rank r of the input gives nothing, so what is left of the budget goes into depth.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from archfit.spec.search import bisect_rising

A, B = 5.039, 0.0555  # Levine et al. 2020: ln d = a + b L
WEIGHTS = 12  # a block of width d has 12 d^2 weights
DEEPEST_TRAINED = 128  # at the sizes of the law: Sparse Transformer
DEEPEST = 1e18  # layers of width 1 that the largest budget could pay for


@dataclass(frozen=True, kw_only=True, slots=True)
class IdealShape:
    """Real numbers, before anything is rounded."""

    depth: float
    width: float

    @property
    def block_params(self) -> float:
        """12 L d^2."""
        return WEIGHTS * self.depth * self.width**2


def law_width(depth: float) -> float:
    """e^(a + b L), from which on a network of this depth is better deepened."""
    return math.exp(min(A + B * depth, 100.0))  # far past every budget, and squares stay floats


def ideal_shape(block_params: float, rank_limit: float = math.inf) -> IdealShape:
    """The shape on the law with this many block parameters."""
    return solve(lambda shape: shape.block_params, block_params, rank_limit)


def solve(
    cost: Callable[[IdealShape], float], budget: float, rank_limit: float = math.inf
) -> IdealShape:
    """The shape on the law whose `cost`, which rises with depth and width, is the budget.

    A budget below one layer on the law buys one layer that is narrower than the law says.
    """

    def on_the_law(depth: float) -> IdealShape:
        return IdealShape(depth=depth, width=min(law_width(depth), rank_limit))

    shallow = on_the_law(1)
    if cost(shallow) >= budget:
        width = bisect_rising(
            lambda w: cost(IdealShape(depth=1, width=w)), budget, 0.0, shallow.width
        )
        return IdealShape(depth=1, width=width)
    return on_the_law(bisect_rising(lambda depth: cost(on_the_law(depth)), budget, 1.0, DEEPEST))
