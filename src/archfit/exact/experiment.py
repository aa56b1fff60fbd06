"""What is measured: a network, what it reads, how its positions are divided, and what is proved."""

import importlib.util
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, SupportsInt

from archfit.spec.errors import check_at_least, refusal, refuse_if
from archfit.theory import causal_bounds as masked
from archfit.theory import statistics_bounds as statistics
from archfit.theory.arithmetic import interaction_count, symmetric_entries
from archfit.theory.bounds import bounds_report
from archfit.theory.continuous_bounds import every_depth_upper_bound, sphere_lower_bound
from archfit.theory.shape import Shape
from archfit.theory.witness_formula import causal_chain_lower_bound, most_chains

MOST_DIGITS = 18  # bounds that a matrix could have as its rank
WIDEST = 64  # sums over the width stay exact
DEEPEST = 7  # one coordinate more and it is out of reach
LARGEST_TABLE = 1_000_000  # tokens
MOST_INNER = 1_000_000  # heads times head_dim
MOST_LISTED = 1 << 13  # fillings of a side that are all listed; of more, as many are drawn
MOST_POSITIONS = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """The positions on the side of the output, and the others; both in order."""

    inside: tuple[int, ...]
    outside: tuple[int, ...]
    output: int


def divided(positions: int, side: Sequence[int], output: int) -> Partition:
    """Positions divided into `side` and the rest, the output in either."""
    refuse_if(positions < 2, "indivisible", positions)
    refuse_if(positions > MOST_POSITIONS, "too-many-positions", positions, most=MOST_POSITIONS)
    last, rest = positions - 1, tuple(place for place in range(positions) if place not in side)
    refuse_if(not 0 <= output <= last, "no-such-output", at=output, last=last)
    inside, outside = (tuple(side), rest) if output in side else (rest, tuple(side))
    if not (inside and outside) or len(inside + outside) > positions:
        raise refusal("sides-do-not-cover", inside=inside, outside=outside, last=last)
    return Partition(inside=inside, outside=outside, output=output)


def fillings(vocab: int, positions: int, has_own: bool, ordered: bool) -> int:
    """How many ways there are to fill a side with tokens."""
    if ordered:
        return int(vocab ** min(positions, 64))
    free = positions - has_own
    return math.comb(vocab + free - 1, free) * (vocab if has_own else 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A network of linear attention alone, what it reads, and how its positions are divided."""

    depth: int
    width: int
    heads: int
    head_dim: int
    residual: bool
    causal: bool
    rank: int  # of what a position reads, mapped to the width by one matrix
    vocab: int | None = None  # tokens; None: any vector of so many coordinates (also: a patch)
    position_rank: int = 0  # r_e; 0 without positional vectors
    partition: Partition

    def __post_init__(self) -> None:
        check_at_least(1, **self.sizes)
        width, rank, vocab = self.width, self.rank, self.vocab
        refuse_if(width > WIDEST, "unmeasurable-width", width, most=WIDEST)
        refuse_if(self.depth > DEEPEST, "unmeasurable-depth", self.depth, most=DEEPEST)
        is_over, most = self.heads * self.head_dim > MOST_INNER, f"{MOST_INNER:,}"
        refuse_if(is_over, "too-many-dimensions", self.heads, head_dim=self.head_dim, most=most)
        check_at_least(1, rank=rank)
        if vocab is not None:
            check_at_least(2, vocab=vocab)
            refuse_if(rank > vocab, "rank-over-tokens", rank, vocab=vocab)
            refuse_if(vocab > LARGEST_TABLE, "too-many-tokens", vocab, most=f"{LARGEST_TABLE:,}")
        refuse_if(rank > width, "rank-over-width", rank, width=width)

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes of the network by their names."""
        return {name: getattr(self, name) for name in ("depth", "width", "heads", "head_dim")}

    @property
    def multiplications(self) -> int:
        """Products of residues for a pair; under a mask, for all positions after the first run."""
        d = self.width
        layer = 2 * d**3 + d * symmetric_entries(d)
        layer += d * d * symmetric_entries(d) // 5  # a product by BLAS
        seen = sum(length or 0 for _, length in self.segments[1:]) if self.causal else 1
        return (d * d + (self.depth - 1) * layer) * max(1, seen)

    @property
    def has_order(self) -> bool:
        """Whether it matters which position holds what."""
        return self.causal or self.position_rank > 0

    @property
    def segments(self) -> tuple[masked.Segment, ...]:
        """The positions that the output sees, in order, by runs of one side: B is the output's."""
        partition, inside = self.partition, set(self.partition.inside)
        seen = len(inside) + len(partition.outside)
        if self.causal:
            seen = partition.output + 1
        runs = groupby(range(seen), key=inside.__contains__)
        return tuple(("B" if own else "A", len(list(run))) for own, run in runs)

    @property
    def token_fillings(self) -> tuple[int, int] | None:
        """The ways to fill either side with tokens; None of continuous inputs."""
        if self.vocab is None:
            return None
        inside, outside = len(self.partition.inside), len(self.partition.outside)
        own = fillings(self.vocab, inside, True, self.has_order)
        return own, fillings(self.vocab, outside, False, self.has_order)

    @property
    def lists_all(self) -> bool:
        """Whether every filling of both sides with tokens is among the samples."""
        ways = self.token_fillings
        return ways is not None and max(ways) <= MOST_LISTED

    @property
    def minor_degree(self) -> int:
        """Degree of one output in all that is drawn at random: inputs with their table, weights."""
        return 2 * int(3**self.depth) + 4 * interaction_count(self.depth)


def upper_bound(experiment: Experiment) -> int:
    """The best proved upper bound."""
    bounds = _causal_upper_bounds if experiment.causal else _upper_bounds
    return min(map(int, bounds(experiment)))


def _upper_bounds(experiment: Experiment) -> Iterator[SupportsInt]:
    partition, C = experiment.partition, interaction_count(experiment.depth)
    L, d, h, d_a = experiment.depth, experiment.width, experiment.heads, experiment.head_dim
    r, r_e, vocab = experiment.rank, experiment.position_rank, experiment.vocab
    sides = len(partition.inside), len(partition.outside)
    yield statistics.statistics_upper_bound(L, d)
    is_rank = (h * (d_a + 1)).bit_length() * C < 3 * MOST_DIGITS
    if is_rank and not experiment.residual:  # its proof has none
        yield every_depth_upper_bound(L, d, h, d_a)
    if vocab is not None:
        if not r_e:
            yield statistics.statistics_upper_bound_vocabulary(L, vocab, r, *sides)
        yield vocab ** min(*sides, 64)
    elif not r_e or r == d:
        yield statistics.statistics_upper_bound(L, r)
        with suppress(ValueError):  # a sum too long for this depth: the other stands
            yield sum(degree_bounds(experiment))
    else:
        yield statistics.statistics_upper_bound_positions(L, r, r_e)


def _causal_upper_bounds(experiment: Experiment) -> Iterator[SupportsInt]:
    """Those of the segments up to the output; positional vectors only restrict more inputs."""
    vocab, segments = experiment.vocab, experiment.segments
    if len(segments) == 1:  # the output sees one side alone
        yield 1
        return
    for tokens in {None, None if experiment.position_rank else vocab}:
        net = _segmented(experiment, tokens)
        yield masked.causal_segments_upper_bound(net)
        if len(segments) == 2:
            yield masked.causal_prefix_upper_bound(net)
    if vocab is not None:
        seen = [sum(n or 0 for side, n in segments if side == name) for name in "AB"]
        yield vocab ** min(*seen, 64)


def _segmented(experiment: Experiment, vocab: int | None = None) -> masked.SegmentedNetwork:
    """The network as the causal bounds take it; positional vectors add to the rank of inputs."""
    rank = experiment.rank + experiment.position_rank
    sizes = experiment.sizes | {"embedding_rank": rank, "residual": experiment.residual}
    return masked.SegmentedNetwork(**sizes, vocab=vocab, segments=experiment.segments)


def degree_bounds(experiment: Experiment) -> tuple[int, ...]:
    """Bounds on the parts of a homogeneous output, by half its degree inside."""
    if experiment.causal:
        outside, inside = masked.side_series(_segmented(experiment))
        return tuple(map(min, reversed(outside), inside))
    sides = len(experiment.partition.inside), len(experiment.partition.outside)
    one_head = experiment.heads == 1 and not experiment.residual
    return statistics.degree_upper_bounds(
        experiment.depth, experiment.rank, *sides, one_head=one_head
    )


def lower_bound(experiment: Experiment) -> int | None:
    """The best proved lower bound for almost all weights, where one is known."""
    return max(map(int, _lower_bounds(experiment)), default=None)


def _lower_bounds(experiment: Experiment) -> Iterator[SupportsInt]:
    """That for any mask, the chain of a prefix, and what `bounds` knows of halves without a mask.

    The last is decided by certified logarithms, so not without python-flint (a bare GPU machine).
    """
    depth, rank, segments = experiment.depth, experiment.rank, experiment.segments
    half, more = len(experiment.partition.outside), ("residual", "vocab", "rank", "position_rank")
    sizes = experiment.sizes | {name: getattr(experiment, name) for name in more}
    shape = Shape(**sizes, positions=2 * half)
    h, b = shape.blocks
    if experiment.vocab is None and depth > 1 and len(segments) > 1:
        if b > 1 and rank > 1:
            yield sphere_lower_bound(depth, h * b, h, rank)
        has_prefix = experiment.causal and len(segments) == 2
        net = replace(_segmented(experiment), embedding_rank=rank) if has_prefix else None
        if net is not None and (chains := most_chains(net)):
            yield causal_chain_lower_bound(depth, chains)
    has_halves = not experiment.causal and len(experiment.partition.inside) == half
    if has_halves and importlib.util.find_spec("flint") is not None:
        yield bounds_report(shape).lower.exact or 1
