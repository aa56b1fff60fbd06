"""Self-attention: the causal softmax one, and the linear one that the theorems speak of.

Shape letters: B batch, N positions, D width, H heads, K head_dim.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archfit.spec import Architecture

WIDEST_FUSED_HEAD = 256  # beyond it no fused attention kernel of a GPU takes a head


class CausalAttention(nn.Module):
    """Mix each position with those before it: softmax(q k^T score_multiplier) v."""

    def __init__(
        self, architecture: Architecture, *, score_multiplier: float, dropout: float
    ) -> None:
        super().__init__()
        self.heads, self.head_dim = architecture.heads, architecture.head_dim
        inner = self.heads * self.head_dim  # H K, free of D
        self.qkv = nn.Linear(architecture.width, 3 * inner)
        self.out = nn.Linear(inner, architecture.width)
        self.score_multiplier = score_multiplier
        self.dropout = dropout

    def forward(self, x_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Return what attention adds to the residual stream."""
        surplus = head_padding(self.head_dim) if x_BND.is_cuda else 0
        qkv_BN3HK = self._queries_keys_values(x_BND, surplus)
        mix = self._one_head_at_a_time if self._is_too_wide(x_BND) else self._fused
        y_BND = mix(qkv_BN3HK).flatten(2)
        if not surplus:
            out_BND: Tensor = self.out(y_BND)
            return out_BND
        weight_DHK = self.out.weight.unflatten(1, (self.heads, self.head_dim))
        return F.linear(y_BND, F.pad(weight_DHK, (0, surplus)).flatten(1), self.out.bias)

    def _queries_keys_values(
        self, x_BND: Float[Tensor, "B N D"], surplus: int
    ) -> Float[Tensor, "B N 3 H K"]:
        """The three projections; a `surplus` of zeros is added to the weights, where it costs less
        than in the activations."""
        if not surplus:
            plain_BN3HK: Tensor = self.qkv(x_BND).unflatten(-1, (3, self.heads, -1))
            return plain_BN3HK
        split = (3 * self.heads, self.head_dim)
        weight = F.pad(self.qkv.weight.unflatten(0, split), (0, 0, 0, surplus)).flatten(0, 1)
        bias = F.pad(self.qkv.bias.unflatten(0, split), (0, surplus)).flatten()
        padded_BN3HK: Tensor = F.linear(x_BND, weight, bias).unflatten(-1, (3, self.heads, -1))
        return padded_BN3HK

    def _is_too_wide(self, x_BND: Float[Tensor, "B N D"]) -> bool:
        return x_BND.is_cuda and self.head_dim > WIDEST_FUSED_HEAD

    def _fused(self, qkv_BN3HK: Float[Tensor, "B N 3 H K"]) -> Float[Tensor, "B N H K"]:
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
        return y_BHNK.transpose(1, 2)

    def _one_head_at_a_time(
        self, qkv_BN3HK: Float[Tensor, "B N 3 H K"]
    ) -> Float[Tensor, "B N H K"]:
        """Plain matrix products. Head by head they read the projections where they lie, all heads
        in one product would need a copy of each."""
        positions = qkv_BN3HK.shape[1]
        later_NN = torch.full((positions, positions), -torch.inf, device=qkv_BN3HK.device).triu(1)
        heads = []
        for head in range(self.heads):
            q_BNK, k_BNK, v_BNK = qkv_BN3HK[:, :, :, head].unbind(2)
            score_BNN = torch.bmm(q_BNK * self.score_multiplier, k_BNK.transpose(1, 2)) + later_NN
            weight_BNN = F.dropout(score_BNN.softmax(-1), self.dropout, self.training)
            heads.append(torch.bmm(weight_BNN.to(v_BNK.dtype), v_BNK))
        return torch.stack(heads, 2)


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
