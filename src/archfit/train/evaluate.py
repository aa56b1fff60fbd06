"""The held-out loss, in nats per token and bits per byte.

Shape letters: B rows, S tokens of a row.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from archfit.data.loader import Loader
from archfit.data.prepared import PreparedData
from archfit.spec import RunSpec
from archfit.train.hardware import ProcessGroup
from archfit.train.step import Replay, batch_losses

EVALUATION_BYTES = 1 << 30  # of a GPU's memory, for logits and hidden units


@dataclass(frozen=True, kw_only=True, slots=True)
class Heldout:
    """What an evaluation reads, and how: `rows` at a time fit into memory."""

    spec: RunSpec
    loader: Loader
    group: ProcessGroup
    rows: int


def heldout_loss(model: nn.Module, heldout: Heldout) -> float:
    """Mean nats per token over the recipe's held-out rows, each position of a row predicted."""
    batches = heldout.loader.heldout_batches(heldout.spec.recipe.evaluation_sequences)
    return _mean(model, heldout, batches, last_only=False)


class HeldoutReplay:
    """The same loss on a GPU of its own: rows stay there, and the passes are recorded once."""

    def __init__(self, model: nn.Module, heldout: Heldout) -> None:
        self.model, self.spec = model, heldout.spec
        sequences = heldout.spec.recipe.evaluation_sequences
        batches = [torch.from_numpy(rows) for rows in heldout.loader.heldout_batches(sequences)]
        rows_BR = torch.cat(batches).to(heldout.group.device, non_blocking=True)
        shape = heldout.spec.architecture
        numbers = 2 * shape.input.predictions + 3 * shape.feed_forward + 8 * shape.width
        at_once = EVALUATION_BYTES // (4 * shape.context * numbers)
        self.parts = rows_BR.split(max(1, at_once))
        self.mean = Replay(self._mean)

    def __call__(self) -> Tensor:
        """Mean nats per token, queued; there when it is made."""
        return self.mean().to("cpu", non_blocking=True)

    @torch.no_grad()
    def _mean(self) -> Tensor:
        self.model.eval()
        losses = [batch_losses(self.model, self.spec, part).double() for part in self.parts]
        self.model.train()
        return torch.cat(losses).mean()


def full_context_loss(model: nn.Module, heldout: Heldout) -> tuple[float, int]:
    """Mean nats per token when each token is predicted from a whole context, and of how many.

    A window of `context` positions moves on by one; only what follows its end is predicted.
    """
    spec, loader = heldout.spec, heldout.loader
    size = spec.architecture.input.tokens_per_position
    places = (len(loader.data.tokens("heldout")) - loader.context - 1) // size + 1
    wanted = -(-spec.recipe.full_context_tokens // size)
    starts = np.arange(min(places, wanted), dtype=np.int64) * size
    rows = loader.batch // loader.world
    firsts = range(loader.rank * rows, len(starts), loader.batch)
    windows = (loader.rows("heldout", starts[first : first + rows]) for first in firsts)
    return _mean(model, heldout, windows, last_only=True), len(starts) * size


def bits_per_byte(nats_per_token: float, data: PreparedData) -> float:
    """The same loss for a byte of the held-out content, which does not depend on the tokens."""
    heldout = data.description["heldout"]
    assert isinstance(heldout, dict)
    return nats_per_token / math.log(2) * int(heldout["tokens"]) / int(heldout["bytes"])


def _mean(
    model: nn.Module, heldout: Heldout, batches: Iterable[NDArray[np.int64]], *, last_only: bool
) -> float:
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for tokens_BS, is_counted in _parts(batches, heldout):
            on_device = tokens_BS.to(heldout.group.device)
            losses = batch_losses(model, heldout.spec, on_device, last_only=last_only)
            if is_counted:
                total += float(losses.double().sum() if not losses.is_mps else losses.sum())
                count += losses.numel()
    model.train()
    total, tokens = heldout.group.sums([total, float(count)])
    return total / tokens


def _parts(batches: Iterable[NDArray[np.int64]], heldout: Heldout) -> Iterator[tuple[Tensor, bool]]:
    """Rows that fit into memory, and whether they count.

    A pass through a sharded network needs every process of the group, so one that has no rows left
    goes on with a row that does not count until all are done.
    """
    parts = (part for batch in batches for part in torch.from_numpy(batch).split(heldout.rows))
    idle_BS = torch.from_numpy(heldout.loader.rows("heldout", np.zeros(1, np.int64)))
    while True:
        part_BS = next(parts, None)
        (busy,) = heldout.group.sums([float(part_BS is not None)])
        if not busy:
            return
        yield (idle_BS, False) if part_BS is None else (part_BS, True)
