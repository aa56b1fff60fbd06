"""Claims about separation ranks, each with the measurements that it stands or falls with.

Their sentences and networks stand in resources/rank_claims.toml.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

from archfit.exact.experiment import Experiment
from archfit.exact.measure import MeasureOptions, estimate
from archfit.spec.packed import packed_table
from archfit.theory.catalogue import ENTRIES

DEPTHS = range(1, 6)  # of the growth
WIDTHS = range(2, 9)

Ranks = Sequence[int]

# What the ranks of a group must do, by its name in the table of claims.
RULES: dict[str, Callable[[Ranks], bool]] = {
    "are equal": lambda ranks: len(set(ranks)) == 1,
    "fall": lambda ranks: all(before > after for before, after in pairwise(ranks)),
    "rise": lambda ranks: all(before < after for before, after in pairwise(ranks)),
    "level off": lambda ranks: list(ranks) == sorted(ranks) and ranks[-1] == ranks[-2],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RankClaim:
    """A statement, groups of experiments to compare, and what their ranks must do."""

    name: str
    says: str
    groups: tuple[tuple[Experiment, ...], ...]
    holds: Callable[[Ranks], bool]  # for the ranks of one group


def claims() -> tuple[RankClaim, ...]:
    """All that can be run by name."""
    found = []
    for name, claim in packed_table("rank_claims.toml").items():
        groups, holds = tuple(_group(row) for row in claim["groups"]), RULES[claim["ranks"]]
        found.append(RankClaim(name=name, says=claim["says"], groups=groups, holds=holds))
    return tuple(found)


def failures(claim: RankClaim, ranks: Sequence[Ranks]) -> tuple[int, ...]:
    """The numbers of the groups, from 0, in which it does not hold."""
    return tuple(index for index, group in enumerate(ranks) if not claim.holds(group))


def growth_experiments(device: str, seconds: float, gigabytes: float) -> tuple[Experiment, ...]:
    """The rank over depth and width, to be seen beside what can be proved about it.

    One head, balanced partition, two positions and twice the width, from where on more of them
    add nothing. As many as fit into the time together, the quickest first; ordered by depth and
    width.
    """
    cases = [
        MeasureOptions(depth=depth, width=width, positions=positions).experiment()
        for depth in DEPTHS
        for width in WIDTHS
        for positions in (2, 2 * width)
    ]
    costs = sorted(((estimate(case, device), case) for case in cases), key=lambda c: c[0].seconds)
    chosen, spent = set(), 0.0
    for cost, case in costs:
        spent += cost.seconds
        if spent > seconds or cost.gigabytes > gigabytes:
            break
        chosen.add(case)
    return tuple(case for case in cases if case in chosen)


def growth_bounds(depth: int, width: int, positions: int) -> dict[str, int | Fraction | None]:
    """Every bound on the rank of one head and halves, by its name; the last two need two layers.

    All are proved but ub_thm2, which is disputed.
    """
    half = positions // 2
    sides = {"inside": half, "outside": positions - half}
    sizes = {"depth": depth, "width": width, "heads": 1} | sides
    return {
        name: None if depth < 2 and name.startswith("lb") else ENTRIES[name].of(sizes)
        for name in ("ub_stat_N", "ub_thm1", "ub_thm2", "lb", "lb_strong")
    }


def _group(row: Mapping[str, Any]) -> tuple[Experiment, ...]:
    """The experiments of one row of the table: one for each value of its lists."""
    choices = (value if isinstance(value, list) else [value] for value in row.values())
    cases = (zip(row, chosen, strict=True) for chosen in product(*choices))
    return tuple(
        MeasureOptions(**{name: value for name, value in case if value}).experiment()
        for case in cases
    )
