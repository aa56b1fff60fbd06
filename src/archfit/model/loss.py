"""The next-token loss.

Shape letters: B batch, N positions, S tokens of the source, P predictions a position.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from archfit.model.affine import can_fuse
from archfit.spec import Input


def inputs_and_targets(
    tokens_BS: Int[Tensor, "B S"], given: Input
) -> tuple[Int[Tensor, "B S1"], Int[Tensor, "B S1"]]:
    """All tokens but those of the last position, and all but those of the first."""
    size = given.tokens_per_position
    return tokens_BS[:, :-size], tokens_BS[:, size:]


def token_losses(
    logits_BNP: Float[Tensor, "B N P"], targets_BS: Int[Tensor, "B S"], given: Input
) -> Float[Tensor, " M"]:
    """-ln p of each token, B S of them, in float32."""
    logits_MV = logits_BNP.reshape(-1, given.vocab)  # a position predicts each of its tokens
    targets_M = targets_BS.reshape(-1)
    if can_fuse(logits_MV):
        from archfit.model.kernels import fused_cross_entropy

        return fused_cross_entropy(logits_MV, targets_M)
    with torch.autocast(logits_MV.device.type, enabled=False):
        return F.cross_entropy(logits_MV.float(), targets_M, reduction="none")
