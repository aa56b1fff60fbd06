"""Self-attention: the causal softmax one, and the linear one that the theorems speak of.

Shape letters: B batch, N positions, D width, H heads, K head_dim.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archfit.model.affine import LONGEST_TILE, Affine, affine, can_fuse
from archfit.spec import Architecture

WIDEST_FUSED_HEAD = 256  # that torch's fused attention takes


class CausalAttention(nn.Module):
    """Mix each position with those before it: softmax(q k^T score_multiplier) v."""

    def __init__(
        self, architecture: Architecture, *, score_multiplier: float, dropout: float
    ) -> None:
        super().__init__()
        self.heads, self.head_dim = architecture.heads, architecture.head_dim
        inner = self.heads * self.head_dim  # H K, free of D
        self.qkv = Affine(architecture.width, 3 * inner)
        self.out = Affine(inner, architecture.width)
        self.score_multiplier = score_multiplier
        self.dropout = dropout

    def forward(self, x_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Return what attention adds to the residual stream."""
        if self._fits_one_tile(x_BND):
            from archfit.model.kernels import fused_attention

            qkv_BN3HK: Tensor = self.qkv(x_BND).unflatten(-1, (3, self.heads, -1))
            y_BND = fused_attention(qkv_BN3HK, self.score_multiplier).flatten(2)
            out_BND: Tensor = self.out(y_BND)
            return out_BND
        surplus = head_padding(self.head_dim) if x_BND.is_cuda else 0
        return self._padded_attention(x_BND, surplus)

    def _fits_one_tile(self, x_BND: Float[Tensor, "B N D"]) -> bool:
        is_plain = not (self.training and self.dropout)
        in_autocast = can_fuse(x_BND) and torch.is_autocast_enabled("cuda")
        return in_autocast and is_plain and x_BND.shape[1] <= LONGEST_TILE

    def _padded_attention(
        self, x_BND: Float[Tensor, "B N D"], surplus: int
    ) -> Float[Tensor, "B N D"]:
        """Torch's attention over heads with `surplus` zero coordinates. They are added to the
        weights, where that costs less than in the activations, and change nothing."""
        split = (3 * self.heads, self.head_dim)
        weight: Tensor = self.qkv.weight
        bias: Tensor = self.qkv.bias
        weight_DHK: Tensor = self.out.weight.unflatten(1, (self.heads, self.head_dim))
        if surplus:
            weight = F.pad(weight.unflatten(0, split), (0, 0, 0, surplus)).flatten(0, 1)
            bias = F.pad(bias.unflatten(0, split), (0, surplus)).flatten()
            weight_DHK = F.pad(weight_DHK, (0, surplus))
        qkv_BN3HK: Tensor = affine(x_BND, weight, bias).unflatten(-1, (3, self.heads, -1))
        # Taken apart before they are transposed: the gradients then go back in one copy, not two.
        q_BHNK, k_BHNK, v_BHNK = (part.transpose(1, 2) for part in qkv_BN3HK.unbind(2))
        y_BHNK = F.scaled_dot_product_attention(
            q_BHNK,
            k_BHNK,
            v_BHNK,
            is_causal=True,
            scale=self.score_multiplier,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return affine(y_BHNK.transpose(1, 2).flatten(2), weight_DHK.flatten(1), self.out.bias)


def head_padding(head_dim: int) -> int:
    """Zeros that bring a head to a size that GPU kernels are fast at.

    A multiple of 64 if that adds at most a quarter (52 to 64, 240 to 256), else one of 8.
    """
    to_64 = -head_dim % 64
    return to_64 if 4 * to_64 <= head_dim and head_dim <= WIDEST_FUSED_HEAD else -head_dim % 8


class LinearAttention(nn.Module):
    """The analysed layer, sum_h W^O_h W^V_h Y Y^T (W^K_h)^T W^Q_h Y (Levine et al. 2020, eq. 3).

    No softmax, no scale, no bias; with a causal mask a position sees itself and those before it.
    """

    def __init__(self, architecture: Architecture, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = architecture.heads, causal
        inner = architecture.heads * architecture.head_dim
        self.qkv = nn.Linear(architecture.width, 3 * inner, bias=False)
        self.out = nn.Linear(inner, architecture.width, bias=False)

    def forward(self, x_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Return the layer's output, without the residual."""
        qkv_BN3HK: Tensor = self.qkv(x_BND).unflatten(-1, (3, self.heads, -1))
        q_BHNK, k_BHNK, v_BHNK = qkv_BN3HK.transpose(1, 3).unbind(2)
        score_BHNN = q_BHNK @ k_BHNK.transpose(-2, -1)
        if self.causal:
            score_BHNN = score_BHNN.tril()
        y_BND: Tensor = self.out((score_BHNN @ v_BHNK).transpose(1, 2).flatten(2))
        return y_BND
