"""Claims about separation ranks, each with the measurements that it stands or falls with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from archfit.exact.experiment import (
    ContinuousInputs,
    Experiment,
    NetworkInputs,
    TokenInputs,
    divided,
)
from archfit.exact.measure import estimate
from archfit.exact.network import AnalysedNetwork
from archfit.theory.continuous_bounds import (
    deep_upper_formula,
    every_depth_upper_bound,
    lower_bound,
    strong_lower_bound,
)
from archfit.theory.statistics_bounds import statistics_upper_bound_short

DEPTHS = range(1, 6)  # of the growth
WIDTHS = range(2, 9)

Ranks = Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankClaim:
    """A statement, groups of experiments to compare, and what their ranks must do."""

    name: str
    says: str
    groups: tuple[tuple[Experiment, ...], ...]
    holds: Callable[[Ranks], bool]  # for the ranks of one group


def claims() -> tuple[RankClaim, ...]:
    """All that can be run by name."""
    return (
        _partition_symmetry(),
        _residuals(),
        _heads(),
        _saturation(),
        _embedding_rank(),
        _small_vocabulary(),
        _causal_mask(),
    )


def failures(claim: RankClaim, ranks: Sequence[Ranks]) -> tuple[int, ...]:
    """The numbers of the groups, from 0, in which it does not hold."""
    return tuple(index for index, group in enumerate(ranks) if not claim.holds(group))


def _partition_symmetry() -> RankClaim:
    return RankClaim(
        name="partition-symmetry",
        says="without a mask all balanced partitions have the same rank, wherever the output is",
        groups=tuple(
            tuple(
                _case(2, width, heads, positions, side=side, output=output)
                for side in sides
                for output in (0, 1)
            )
            for width, heads, positions, sides in (
                (3, 1, 4, ((0, 1), (0, 2), (0, 3))),
                (4, 2, 4, ((0, 1), (0, 2), (0, 3))),
                (2, 2, 6, ((0, 1, 2), (0, 2, 4), (0, 3, 5))),
            )
        ),
        holds=_all_equal,
    )


def _residuals() -> RankClaim:
    continuous = ((2, 2, 2, 4), (2, 3, 1, 4), (2, 3, 3, 4), (2, 4, 2, 4), (3, 2, 2, 4))
    tokens = TokenInputs(vocab=4, rank=3)
    return RankClaim(
        name="residuals",
        says="residual connections do not change the rank where heads x head_dim = width",
        groups=(
            *(
                tuple(_case(*sizes, residual=residual) for residual in (False, True))
                for sizes in continuous
            ),
            tuple(
                _case(2, 3, 1, 8, inputs=tokens, residual=residual) for residual in (False, True)
            ),
        ),
        holds=_all_equal,
    )


def _heads() -> RankClaim:
    return RankClaim(
        name="heads",
        says="more heads at the same width lower the rank, given four positions",
        groups=tuple(
            tuple(_case(depth, width, heads, positions) for heads in all_heads)
            for depth, width, positions, all_heads in (
                (2, 2, 4, (1, 2)),
                (2, 3, 4, (1, 3)),
                (2, 4, 4, (1, 2, 4)),
                (2, 6, 4, (1, 2, 3, 6)),
                (3, 2, 4, (1, 2)),
            )
        ),
        holds=lambda ranks: _falls(ranks) and len(set(ranks)) == len(ranks),
    )


def _saturation() -> RankClaim:
    return RankClaim(
        name="saturation",
        says="more positions raise the rank up to some length, never beyond 2 x width",
        groups=tuple(
            tuple(_case(depth, width, 1, positions) for positions in lengths)
            for depth, width, lengths in (
                (1, 3, (2, 4, 6, 10)),
                (2, 3, (2, 4, 6, 10)),
                (2, 4, (2, 4, 8, 12)),
                (2, 5, (2, 4, 10, 14)),
                (3, 2, (2, 4, 8)),
            )
        ),
        holds=lambda ranks: _falls(ranks[::-1]) and ranks[-1] == ranks[-2],
    )


def _embedding_rank() -> RankClaim:
    return RankClaim(
        name="embedding-rank",
        says="the rank r of the embedding caps the rank: width beyond r adds nothing",
        groups=tuple(
            tuple(_case(depth, width, 1, 4, inputs=ContinuousInputs(rank=rank)) for width in widths)
            for depth, rank, widths in (
                (2, 1, (1, 2, 4)),
                (2, 2, (2, 3, 4, 6)),
                (2, 3, (3, 4, 6)),
                (3, 2, (2, 3, 4)),
            )
        ),
        holds=_all_equal,
    )


def _small_vocabulary() -> RankClaim:
    return RankClaim(
        name="small-vocabulary",
        says="r tokens of rank r cap the rank harder than continuous inputs of rank r",
        groups=tuple(
            (
                _case(2, width, heads, positions, inputs=TokenInputs(vocab=rank, rank=rank)),
                _case(2, width, heads, positions, inputs=ContinuousInputs(rank=rank)),
            )
            for width, heads, rank, positions in (
                (3, 1, 2, 12),
                (3, 1, 3, 8),
                (3, 1, 3, 16),
                (4, 2, 4, 10),
            )
        ),
        holds=lambda ranks: ranks[0] < ranks[1],
    )


def _causal_mask() -> RankClaim:
    return RankClaim(
        name="causal-mask",
        says="under a causal mask balanced partitions differ: every second position beats halves",
        groups=tuple(
            tuple(
                _case(2, width, heads, positions, side=side, causal=True)
                for side in (tuple(range(positions // 2)), tuple(range(0, positions, 2)))
            )
            for width, heads, positions in ((2, 1, 4), (2, 1, 6), (3, 3, 4), (3, 1, 6))
        ),
        holds=lambda ranks: ranks[0] < ranks[1],
    )


def _all_equal(ranks: Ranks) -> bool:
    return len(set(ranks)) == 1


def _falls(ranks: Ranks) -> bool:
    return all(before >= after for before, after in pairwise(ranks))


@dataclass(frozen=True, kw_only=True, slots=True)
class GrowthBounds:
    """What is known without measuring; lower bounds begin at two layers."""

    statistics: int  # proved
    every_depth: int  # proved: theorem 1 of the papers
    deep: Fraction  # the papers' theorem 2: disputed
    lower: int | None
    strong_lower: int | None


def growth_experiments(device: str, seconds: float, gigabytes: float) -> tuple[Experiment, ...]:
    """The rank over depth and width, to be seen beside what can be proved about it.

    One head, balanced partition, two positions and twice the width, from where on more of them
    add nothing. As many as fit into the time together, the quickest first; ordered by depth and
    width.
    """
    cases = [
        _case(depth, width, 1, positions)
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


def growth_bounds(depth: int, width: int, positions: int) -> GrowthBounds:
    """What is proved of the network with one head and a balanced partition."""
    half = positions // 2
    has_lower = depth >= 2
    return GrowthBounds(
        statistics=statistics_upper_bound_short(depth, width, half, positions - half),
        every_depth=every_depth_upper_bound(depth, width, 1),
        deep=deep_upper_formula(depth, width),
        lower=lower_bound(depth, width, 1) if has_lower else None,
        strong_lower=strong_lower_bound(depth, width, 1) if has_lower else None,
    )


def _case(
    *sizes: int,
    side: tuple[int, ...] | None = None,
    output: int = 0,
    inputs: NetworkInputs | None = None,
    residual: bool = False,
    causal: bool = False,
) -> Experiment:
    """Depth, width, heads and positions; by default halves, any vector, output at 0 or the last."""
    depth, width, heads, positions = sizes
    return Experiment(
        network=AnalysedNetwork(
            depth=depth,
            width=width,
            heads=heads,
            head_dim=width // heads,
            has_residual=residual,
            is_causal=causal,
        ),
        inputs=ContinuousInputs(rank=width) if inputs is None else inputs,
        position_rank=0,
        partition=divided(positions, side, "last" if causal else output),
        entry=0,
    )
