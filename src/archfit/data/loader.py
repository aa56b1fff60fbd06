"""Batches for training and evaluation, read from mapped files and fixed by (seed, step) alone.

Row r of batch `step` starts at token w_r mod (tokens - context), where w_0, w_1, ... are the 64-bit
outputs of the Philox4x64-10 generator with key (seed, step), counter 0. Philox is specified down to
the bit and NumPy promises not to change its stream (unlike that of its distributions), so batches
agree between machines, NumPy versions and workers, and a resumed run sees what it would have seen.
Starts are drawn with replacement, as nanoGPT does: there is no epoch and no order to remember.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.spec.errors import InvalidValue, check_at_least

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.prepared import PreparedData
else:
    from archfit.spec import lazy_numpy as np


@dataclass(frozen=True, kw_only=True, slots=True)
class Loader:
    """Rows of context + 1 neighbouring tokens: inputs all but the last, targets all but the first.

    In data-parallel training each of `world` workers takes its rows of the same global batch.
    """

    data: PreparedData
    batch: int  # rows of the global batch
    context: int  # tokens a row predicts
    seed: int
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        check_at_least(1, batch=self.batch, context=self.context)
        if not 0 <= self.seed < 1 << 64:
            raise InvalidValue("seed", self.seed, "is not in 0..2^64-1", "use one that is")
        if not 0 <= self.rank < self.world or self.batch % self.world:
            rule = f"of {{world}}={self.world} has no equal share of {{batch}}={self.batch}"
            raise InvalidValue("rank", self.rank, rule, "use a {world} that divides the {batch}")
        for side in ("train", "heldout"):
            tokens = len(self.data.tokens(side))
            if tokens <= self.context:
                rule = f"has {tokens} tokens, too few for context={self.context}"
                raise ValueError(f"the {side} side {rule}; use a shorter context or more data")

    def starts(self, step: int) -> NDArray[np.int64]:
        """Where the rows of the whole batch `step` start in the training tokens."""
        if not 0 <= step < 1 << 64:
            raise InvalidValue("step", step, "is not in 0..2^64-1", "count steps from 0")
        generator = np.random.Philox(key=np.array([self.seed, step], np.uint64))
        places = len(self.data.tokens("train")) - self.context
        return (generator.random_raw(self.batch) % np.uint64(places)).astype(np.int64)

    def training_batch(self, step: int) -> NDArray[np.int64]:
        """This worker's rows of batch `step`, shape (batch / world, context + 1)."""
        rows = self.batch // self.world
        return self.rows("train", self.starts(step)[self.rank * rows : (self.rank + 1) * rows])

    def heldout_batches(self, most: int | None = None) -> Iterator[NDArray[np.int64]]:
        """Held-out tokens in order, each predicted once; the last incomplete row is left out.

        `most` rows or fewer, spread evenly over the side; all of them if it is not given. Worker
        `rank` takes every `world`-th batch, of `batch / world` rows or fewer at the end.
        """
        rows = self.batch // self.world
        starts = np.arange(0, len(self.data.tokens("heldout")) - self.context, self.context)
        if most is not None and most < len(starts):
            starts = starts[np.arange(most) * len(starts) // most]
        for first in range(self.rank * rows, len(starts), self.batch):
            yield self.rows("heldout", starts[first : first + rows])

    def rows(self, side: str, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of context + 1 tokens of `train` or `heldout` that start at `starts`."""
        tokens = self.data.tokens(side)
        windows = np.lib.stride_tricks.sliding_window_view(tokens, self.context + 1)
        rows = windows[starts].astype(np.int64)
        if rows.max() >= self.data.vocab:
            rule = f"holds the id {rows.max()}, and its vocabulary ends at {self.data.vocab - 1}"
            path = f"{self.data.folder}/{side}.bin"
            raise ValueError(f"{path} {rule}; prepare it again with --overwrite")
        return rows
