"""What is measured, and what is proved about it beforehand."""

import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from archfit.exact.inputs import (
    MOST_LISTED,
    Continuous,
    Inputs,
    Partition,
    Vocabulary,
    fillings,
)
from archfit.exact.network import Network
from archfit.theory.arithmetic import interaction_count
from archfit.theory.bounds import Shape, bounds_report
from archfit.theory.continuous import every_depth_upper_bound
from archfit.theory.statistics import (
    degree_upper_bounds,
    statistics_upper_bound,
    statistics_upper_bound_positions,
    statistics_upper_bound_short,
    statistics_upper_bound_vocabulary,
)

MOST_DIGITS = 18  # bounds that a matrix could have as its rank
WIDEST = 64  # sums over the width stay exact
DEEPEST = 7  # one coordinate more and it is out of reach
LARGEST_TABLE = 1_000_000  # tokens
MOST_INNER = 1_000_000  # heads times head_dim


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A network, what it reads, how its positions are divided, and which output is looked at."""

    network: Network
    inputs: Inputs
    position_rank: int  # r_e; 0 without positional vectors
    partition: Partition
    entry: int  # coordinate of the output

    def __post_init__(self) -> None:
        if self.network.width > WIDEST:
            raise ValueError(
                f"width={self.network.width} is over {WIDEST}, and no rank of that size can be "
                "measured; use a smaller width"
            )
        if self.network.depth > DEEPEST:
            raise ValueError(
                f"depth={self.network.depth} is over {DEEPEST}, and no rank of that size can be "
                "measured; use less depth"
            )
        _check_storable(self.network, self.inputs)
        if self.inputs.rank > self.network.width:
            raise ValueError(
                f"rank={self.inputs.rank} is above width={self.network.width}; vectors of that "
                "width have no more rank"
            )
        if not 0 <= self.entry < self.network.width:
            raise ValueError(
                f"entry={self.entry} is not in 0..{self.network.width - 1}, the coordinates of "
                "the output"
            )

    @property
    def is_homogeneous(self) -> bool:
        """Whether the matrix splits by degree."""
        network = self.network
        plain = not network.is_causal and not network.has_residual and not self.position_rank
        return plain and isinstance(self.inputs, Continuous)

    @property
    def has_order(self) -> bool:
        """Whether it matters which position holds what."""
        return self.network.is_causal or self.position_rank > 0

    @property
    def lists_all(self) -> bool:
        """Whether every filling of both sides with tokens is among the samples."""
        if isinstance(self.inputs, Continuous):
            return False
        vocab, ordered, partition = self.inputs.vocab, self.has_order, self.partition
        return (
            fillings(vocab, len(partition.inside), True, ordered) <= MOST_LISTED
            and fillings(vocab, len(partition.outside), False, ordered) <= MOST_LISTED
        )

    @property
    def minor_degree(self) -> int:
        """Degree of one output in all that is drawn at random: inputs with their table, weights."""
        inputs: int = 3**self.network.depth
        return 2 * inputs + 4 * interaction_count(self.network.depth)


def _check_storable(network: Network, inputs: Inputs) -> None:
    if isinstance(inputs, Vocabulary) and inputs.vocab > LARGEST_TABLE:
        raise ValueError(
            f"vocab={inputs.vocab} is over {LARGEST_TABLE:,}; no rank needs so many tokens, use "
            "fewer"
        )
    if network.heads * network.head_dim > MOST_INNER:
        raise ValueError(
            f"heads={network.heads} of {network.head_dim} are over {MOST_INNER:,} dimensions; "
            f"more than width^2 heads add nothing, use fewer"
        )


def upper_bound(experiment: Experiment) -> int | None:
    """The best proved upper bound; None under a causal mask, where none is known."""
    if experiment.network.is_causal:
        return None
    return min(_upper_bounds(experiment))


def _upper_bounds(experiment: Experiment) -> Iterator[int]:
    network, inputs = experiment.network, experiment.inputs
    inside, outside = len(experiment.partition.inside), len(experiment.partition.outside)
    yield statistics_upper_bound(network.depth, network.width)
    every_depth = network.heads * (network.head_dim + 1)
    is_small = every_depth.bit_length() * interaction_count(network.depth) < 3 * MOST_DIGITS
    if is_small and not network.has_residual:  # its proof has none
        yield every_depth_upper_bound(network.depth, network.width, network.heads, network.head_dim)
    if isinstance(inputs, Vocabulary):
        if experiment.position_rank == 0:
            yield statistics_upper_bound_vocabulary(
                network.depth, inputs.vocab, inputs.rank, inside, outside
            )
        yield inputs.vocab ** min(inside, outside, 64)
    elif experiment.position_rank == 0 or inputs.rank == network.width:
        yield statistics_upper_bound(network.depth, inputs.rank)
        with suppress(ValueError):  # a sum too long for this depth: the other stands
            yield statistics_upper_bound_short(network.depth, inputs.rank, inside, outside)
    else:
        yield statistics_upper_bound_positions(network.depth, inputs.rank, experiment.position_rank)


def degree_bounds(experiment: Experiment) -> tuple[int, ...]:
    """Bounds on the parts of a homogeneous output, by their degree in S_P."""
    inside, outside = len(experiment.partition.inside), len(experiment.partition.outside)
    return degree_upper_bounds(experiment.network.depth, experiment.inputs.rank, inside, outside)


def lower_bound(experiment: Experiment) -> int | None:
    """The best proved lower bound for almost all weights, where one is known.

    All of them are for balanced partitions without a mask. Which is best is decided by certified
    logarithms, so that without python-flint (a bare GPU machine) none is given.
    """
    network, partition, inputs = experiment.network, experiment.partition, experiment.inputs
    if network.is_causal or len(partition.inside) != len(partition.outside):
        return None
    if importlib.util.find_spec("flint") is None:
        return None
    shape = Shape(
        depth=network.depth,
        width=network.width,
        heads=network.heads,
        head_dim=network.head_dim,
        positions=2 * len(partition.inside),
        vocab=inputs.vocab if isinstance(inputs, Vocabulary) else None,
        rank=inputs.rank,
        position_rank=experiment.position_rank,
        residual=network.has_residual,
    )
    exact = bounds_report(shape).lower.exact
    return None if exact is None else int(exact)
