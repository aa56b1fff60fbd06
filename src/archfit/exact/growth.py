"""The measured rank over depth and width, beside what the papers and we can prove about it.

One head, balanced partition, two positions and twice the width, from where on more of them add
nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from archfit.exact.cost import estimate
from archfit.exact.experiment import Experiment
from archfit.exact.inputs import Continuous, Partition
from archfit.exact.network import Network
from archfit.theory.continuous import (
    deep_upper_formula,
    every_depth_upper_bound,
    lower_bound,
    strong_lower_bound,
)
from archfit.theory.statistics import statistics_upper_bound_short

DEPTHS = range(1, 6)
WIDTHS = range(2, 9)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """What is known without measuring; lower bounds begin at two layers."""

    statistics: int  # proved
    every_depth: int  # proved: theorem 1 of the papers
    deep: Fraction  # the papers' theorem 2: disputed
    lower: int | None
    strong_lower: int | None


def growth_experiments(device: str, seconds: float, gigabytes: float) -> tuple[Experiment, ...]:
    """As many as fit into the time together, the quickest first; ordered by depth and width."""
    costs = [(estimate(case, device), case) for case in _all_cases()]
    chosen, spent = [], 0.0
    for cost, case in sorted(costs, key=lambda pair: pair[0].seconds):
        spent += cost.seconds
        if spent > seconds or cost.gigabytes > gigabytes:
            break
        chosen.append(case)
    return tuple(sorted(chosen, key=_order))


def growth_bounds(depth: int, width: int, positions: int) -> Bounds:
    """Of the network with one head, balanced."""
    half = positions // 2
    has_lower = depth >= 2
    return Bounds(
        statistics=statistics_upper_bound_short(depth, width, half, positions - half),
        every_depth=every_depth_upper_bound(depth, width, 1),
        deep=deep_upper_formula(depth, width),
        lower=lower_bound(depth, width, 1) if has_lower else None,
        strong_lower=strong_lower_bound(depth, width, 1) if has_lower else None,
    )


def _all_cases() -> Iterator[Experiment]:
    for depth in DEPTHS:
        for width in WIDTHS:
            for positions in (2, 2 * width):
                yield _case(depth, width, positions)


def _case(depth: int, width: int, positions: int) -> Experiment:
    half = positions // 2
    return Experiment(
        network=Network(
            depth=depth,
            width=width,
            heads=1,
            head_dim=width,
            has_residual=False,
            is_causal=False,
        ),
        inputs=Continuous(rank=width),
        position_rank=0,
        partition=Partition(
            inside=tuple(range(half)), outside=tuple(range(half, positions)), output=0
        ),
        entry=0,
    )


def _order(case: Experiment) -> tuple[int, int, int]:
    return case.network.depth, case.network.width, len(case.partition.inside)
