"""The layers of a network: products with a bias, norms, attention, feed-forward, tables.

Where a GPU and Triton are there, a kernel of attention_kernels.py or row_kernels.py stands in for
what plain torch says beside its call.

Shape letters: B batch, N positions, D width, H heads, K head_dim, R rows, I inner size, T tokens of
a patch.
"""

import importlib.util

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from archfit.spec import Architecture, Factorised, Full

HAS_TRITON = importlib.util.find_spec("triton") is not None
LONGEST_TILE = 128  # positions whose attention scores a GPU's processor holds at once
WIDEST_FUSED_HEAD = 256  # that torch's fused attention takes
ROWS_MULTIPLE = 8  # rows of a bfloat16 product that tensor cores take without a slow path
NORM_EPSILON = 1e-5


def can_fuse(x: Tensor) -> bool:
    """Whether Triton's kernels may be used on it."""
    return x.is_cuda and HAS_TRITON


class Affine(nn.Linear):
    """A linear layer with bias, whose gradient does not slow a GPU down."""

    def forward(self, x: Float[Tensor, "B N inputs"]) -> Float[Tensor, "B N outputs"]:
        """The product with the weight, plus the bias."""
        return affine(x, self.weight, self.bias)


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W^T + b."""
    if can_fuse(x) and torch.is_autocast_enabled("cuda"):
        from archfit.model.row_kernels import fused_affine

        return fused_affine(x, weight, bias)
    return F.linear(x, weight, bias)


class AddNorm(nn.Module):
    """x + branch_multiplier branch, and the norm of that sum."""

    def __init__(self, width: int, *, branch_multiplier: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.branch_multiplier = branch_multiplier

    def forward(
        self, x_BND: Float[Tensor, "B N D"], branch_BND: Float[Tensor, "B N D"] | None
    ) -> tuple[Float[Tensor, "B N D"], Float[Tensor, "B N D"]]:
        """The stream with the branch added, and its norm."""
        if branch_BND is not None and can_fuse(x_BND):
            from archfit.model.row_kernels import fused_add_norm

            return fused_add_norm(x_BND, branch_BND, self.weight, self.bias, self.branch_multiplier)
        if branch_BND is not None:
            scale = self.branch_multiplier
            x_BND = x_BND + (branch_BND if scale == 1 else scale * branch_BND)
        return x_BND, F.layer_norm(x_BND, self.weight.shape, self.weight, self.bias, NORM_EPSILON)


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
            from archfit.model.attention_kernels import fused_attention

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


class FeedForward(nn.Module):
    """down(gelu(up(x)))."""

    def __init__(self, width: int, multiple: int) -> None:
        super().__init__()
        self.up = Affine(width, multiple * width)
        self.down = Affine(multiple * width, width)

    def forward(self, x_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Return what the layer adds to the residual stream."""
        y_BND: Tensor = self.down(F.gelu(self.up(x_BND)))
        return y_BND


class RowTable(nn.Module):
    """A (rows x width) matrix, or the product of a (rows x inner) and an (inner x width) one."""

    def __init__(self, rows: int, width: int, table: Full | Factorised) -> None:
        super().__init__()
        inner = table.inner if isinstance(table, Factorised) else width
        self.rows_RI = nn.Parameter(torch.empty(rows, inner))
        self.mix_ID = (
            nn.Parameter(torch.empty(inner, width)) if isinstance(table, Factorised) else None
        )

    def matrix(self) -> Float[Tensor, "R D"]:
        """The whole table, multiplied out in its own precision: a factor in bfloat16 would make
        a factorised table coarser than a full one."""
        if self.mix_ID is None:
            return self.rows_RI
        with torch.autocast(self.rows_RI.device.type, enabled=False):
            return self.rows_RI @ self.mix_ID

    def look_up(self, ids_BN: Int[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        """The row of each id."""
        if self.mix_ID is None or len(self.rows_RI) <= ids_BN.numel():
            return F.embedding(ids_BN, self.matrix())
        with torch.autocast(self.rows_RI.device.type, enabled=False):
            return F.embedding(ids_BN, self.rows_RI) @ self.mix_ID

    def look_up_sums(self, ids_BNT: Int[Tensor, "B N T"]) -> Float[Tensor, "B N D"]:
        """The sum of the rows of each patch's ids, never stored one by one."""
        flat_BD = F.embedding_bag(ids_BNT.flatten(0, 1), self.matrix(), mode="sum")
        sums_BND: Tensor = flat_BD.unflatten(0, ids_BNT.shape[:2])
        return sums_BND

    def project(self, h_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N R"]:
        """The product of each vector with every row: h times the transposed table."""
        rows_RI, in_BNI = self.rows_RI, h_BND
        if self.mix_ID is not None:
            in_BNI = F.linear(h_BND, self.mix_ID)
        surplus = -len(rows_RI) % ROWS_MULTIPLE if rows_RI.is_cuda else 0
        if not surplus:  # a slice that keeps everything would still copy the gradient
            return F.linear(in_BNI, rows_RI)
        return F.linear(in_BNI, F.pad(rows_RI, (0, 0, 0, surplus)))[..., :-surplus]
