"""Batches for training and evaluation, read from mapped files and fixed by (seed, step) alone.

Row r of batch `step` starts at token w_r mod (tokens - context), where w_0, w_1, ... are the 64-bit
outputs of the Philox4x64-10 generator with key (seed, step), counter 0. Philox is specified down to
the bit and NumPy promises not to change its stream (unlike that of its distributions), so batches
agree between machines, NumPy versions and workers, and a resumed run sees what it would have seen.
Starts are drawn with replacement, as nanoGPT does: there is no epoch and no order to remember.

For an encoder some tokens of a row are hidden, as BERT has it: round(0.15 context) of them, drawn
without replacement; of these 80 % become the mask token, 10 % another token, 10 % stay. A row then
is the context as the network sees it, the places that were chosen, and what stood there. Choices
are those of a second Philox stream, (seed, step) with counter 2^192; held-out rows always have the
same, so that evaluations compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from archfit.data.prepared import PreparedData
from archfit.spec import lazy_numpy as np
from archfit.spec.errors import check_at_least, refuse_if
from archfit.spec.lazy_numpy import NDArray

HIDDEN_SHARE = 0.15
HIDING_COUNTER = 1 << 192
HELDOUT_KEY = (0, (1 << 64) - 1)  # of the choices in held-out rows; no training step has it


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
    mask_id: int | None = None  # the token that hides others; None where the next one is predicted
    _windows: dict[str, NDArray[np.unsignedinteger]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )  # every row of a side, mapped once

    def __post_init__(self) -> None:
        check_at_least(1, batch=self.batch, context=self.context)
        is_seed = 0 <= self.seed < 1 << 64
        refuse_if(not is_seed, "over-64-bits", self.seed, word="seed", way_out="use one that is")
        sizes = {"world": self.world, "batch": self.batch}
        is_shared = 0 <= self.rank < self.world and self.batch % self.world == 0
        refuse_if(not is_shared, "no-equal-share", self.rank, **sizes)
        for side in ("train", "heldout"):
            ids = self.data.tokens(side)
            sizes = {"tokens": len(ids), "context": self.context}
            refuse_if(len(ids) <= self.context, "short-side", side=side, **sizes)
            self._windows[side] = np.lib.stride_tricks.sliding_window_view(ids, self.context + 1)

    def starts(self, step: int) -> NDArray[np.int64]:
        """Where the rows of the whole batch `step` start in the training tokens."""
        is_step = 0 <= step < 1 << 64
        refuse_if(not is_step, "over-64-bits", step, word="step", way_out="count steps from 0")
        generator = np.random.Philox(key=np.array([self.seed, step], np.uint64))
        places = len(self._windows["train"])
        return (generator.random_raw(self.batch) % np.uint64(places)).astype(np.int64)

    def training_batch(self, step: int) -> NDArray[np.int64]:
        """This worker's rows of batch `step`, shape (batch / world, context + 1)."""
        rows = self.batch // self.world
        mine = slice(self.rank * rows, (self.rank + 1) * rows)
        tokens_BS = self.rows("train", self.starts(step)[mine])
        return self._hidden(tokens_BS, mine, self.seed, step)

    def heldout_batches(self, most: int | None = None) -> Iterator[NDArray[np.int64]]:
        """Held-out tokens in order, each predicted once; the last incomplete row is left out.

        `most` rows or fewer, spread evenly over the side; all of them if it is not given. Worker
        `rank` takes every `world`-th batch, of `batch / world` rows or fewer at the end.
        """
        rows = self.batch // self.world
        starts = np.arange(0, len(self._windows["heldout"]), self.context)
        if most is not None and most < len(starts):
            starts = starts[np.arange(most) * len(starts) // most]
        for first in range(self.rank * rows, len(starts), self.batch):
            mine = slice(first, min(first + rows, len(starts)))
            yield self._hidden(self.rows("heldout", starts[mine]), mine, *HELDOUT_KEY)

    def _hidden(self, tokens_BS: NDArray[np.int64], mine: slice, *key: int) -> NDArray[np.int64]:
        """Rows of an encoder: what it sees, the places it predicts, what stood there."""
        if self.mask_id is None:
            return tokens_BS
        tokens_BN = tokens_BS[:, : self.context]
        generator = np.random.Philox(key=np.array(key, np.uint64), counter=HIDING_COUNTER)
        draws = generator.random_raw(2 * mine.stop * self.context)
        order_BN, fate_BN = draws.reshape(-1, 2, self.context)[mine].transpose(1, 0, 2)
        hidden = max(1, round(HIDDEN_SHARE * self.context))
        places_BM = np.sort(np.argpartition(order_BN, hidden - 1)[:, :hidden])
        targets_BM = np.take_along_axis(tokens_BN, places_BM, 1)
        fate_BM = np.take_along_axis(fate_BN, places_BM, 1)
        others_BM = (fate_BM >> np.uint64(8)) % np.uint64(self.data.vocab)
        tenths_BM = fate_BM % np.uint64(10)  # 0..7 hidden, 8 another token, 9 as it was
        unhidden_BM = np.where(tenths_BM == 8, others_BM, targets_BM)
        new_BM = np.where(tenths_BM < 8, self.mask_id, unhidden_BM)
        seen_BN = tokens_BN.copy()
        np.put_along_axis(seen_BN, places_BM, new_BM.astype(np.int64), 1)
        return np.concatenate((seen_BN, places_BM, targets_BM), axis=1)

    def rows(self, side: str, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of context + 1 tokens of `train` or `heldout` that start at `starts`."""
        self.data.check_unchanged()
        self.data.shard(side).check(starts, self.context + 1)
        rows = self._windows[side][starts].astype(np.int64)
        largest, last = rows.max(), self.data.vocab - 1
        path = f"{self.data.folder}/{side}.bin"
        refuse_if(largest > last, "id-over-vocabulary", path=path, largest=largest, last=last)
        return rows
