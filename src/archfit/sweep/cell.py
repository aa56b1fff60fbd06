"""A cell of a named sweep before it has a seed: a network, as it is asked for, on a data set."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from archfit.spec import RunSpec
from archfit.spec.asked import AskedRun
from archfit.sweep.matching import width_for
from archfit.sweep.sweep import Corpus


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One network on one data set."""

    corpus: Corpus
    asked: AskedRun
    most_seeds: int | None = None  # as many as the sweep has

    def spec(self, seed: int) -> RunSpec:
        """The run with this seed."""
        corpus = self.corpus
        return self.asked.spec(vocab=corpus.vocab, data_hash=corpus.data_hash, seed=seed)


def seeded(cells: Iterable[Cell], seeds: Sequence[int]) -> tuple[RunSpec, ...]:
    """Every cell with every seed, all cells of a seed before the next seed.

    A sweep that is stopped has then tried everything once; within a seed the costliest go first,
    so that no long run is left for the end.
    """
    listed = list(cells)
    specs = (
        spec
        for at, seed in enumerate(seeds)
        for spec in sorted(
            (c.spec(seed) for c in listed if c.most_seeds is None or at < c.most_seeds),
            key=lambda spec: -spec.training_flops,
        )
    )
    return tuple(dict.fromkeys(specs))


def equal_size(asked: AskedRun, *, depth: int, block_params: int) -> AskedRun:
    """The network at this depth, as wide as the size allows."""
    width = width_for(block_params, depth=depth, heads=asked.heads)
    return replace(asked, depth=depth, width=width)


def equal_total(asked: AskedRun, *, vocab: int, params: int) -> AskedRun:
    """The network as it is but for its width, which all its parameters together allow."""

    def total(width: int) -> int:
        return replace(asked, width=width).architecture(vocab).params

    low = high = asked.heads
    while total(high) < params:
        low, high = high, 2 * high
    while high - low > asked.heads:
        middle = (low + high) // (2 * asked.heads) * asked.heads
        low, high = (low, middle) if total(middle) >= params else (middle, high)
    width = min((low, high), key=lambda width: abs(total(width) - params))
    return replace(asked, width=width)


def ranks_below(limit: int, ranks: Sequence[int]) -> tuple[int, ...]:
    """Those that are a limit; where a small vocabulary leaves none, the smallest there are."""
    below = tuple(rank for rank in ranks if rank < limit)
    return below or tuple(rank for rank in (1, 2, 4)[: len(ranks)] if rank < limit)
