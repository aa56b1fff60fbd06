"""What a network reads and predicts, and the loss of its predictions.

Shape letters: B batch, N positions, S tokens of the source, R numbers of a loader's row, P
predictions a position, M predicted tokens, V vocabulary.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from archfit.model.layers import can_fuse
from archfit.spec import Architecture, Input


class Batch(NamedTuple):
    """What a network reads and should predict."""

    inputs_BS: Tensor
    targets_BM: Tensor
    places_BM: Tensor | None  # positions that it predicts, where these are not all


def batch_of(rows_BR: Int[Tensor, "B R"], architecture: Architecture) -> Batch:
    """The rows of a loader taken apart.

    A decoder's row is read but for its last position, and predicted but for its first. An encoder's
    is what it sees, the places it predicts, and what stood there.
    """
    if architecture.objective == "masked":
        hidden = (rows_BR.shape[1] - architecture.context) // 2
        seen, places, targets = rows_BR.split((architecture.context, hidden, hidden), dim=1)
        return Batch(seen, targets, places)
    size = architecture.input.tokens_per_position
    return Batch(rows_BR[:, :-size], rows_BR[:, size:], None)


def token_losses(
    logits_BNP: Float[Tensor, "B N P"], targets_BS: Int[Tensor, "B S"], given: Input
) -> Float[Tensor, " M"]:
    """-ln p of each token, B S of them, in float32."""
    logits_MV = logits_BNP.reshape(-1, given.vocab)  # a position predicts each of its tokens
    targets_M = targets_BS.reshape(-1)
    if can_fuse(logits_MV):
        from archfit.model.row_kernels import fused_cross_entropy

        return fused_cross_entropy(logits_MV, targets_M)
    with torch.autocast(logits_MV.device.type, enabled=False):
        losses_M: Tensor = _CrossEntropy.apply(logits_MV.float(), targets_M)  # type: ignore[no-untyped-call]  # torch's
        return losses_M


class _CrossEntropy(torch.autograd.Function):
    """F.cross_entropy without reduction; its gradient reads the logits once, torch's four times."""

    @staticmethod
    def forward(ctx: Any, logits_MV: Tensor, targets_M: Tensor) -> Tensor:
        log_p_MV = logits_MV.log_softmax(-1)
        ctx.save_for_backward(log_p_MV, targets_M)
        return -log_p_MV.gather(1, targets_M[:, None])[:, 0]

    @staticmethod
    def backward(ctx: Any, d_losses_M: Tensor) -> tuple[Tensor, None]:
        """(p - [v is the target]) d_loss."""
        log_p_MV, targets_M = ctx.saved_tensors
        d_losses_M1 = d_losses_M[:, None]
        d_logits_MV = log_p_MV.exp().mul_(d_losses_M1)
        return d_logits_MV.scatter_add_(1, targets_M[:, None], -d_losses_M1), None
