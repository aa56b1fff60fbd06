"""The layers of a network: products with a bias, norms, attention, feed-forward, tables, losses.

Where a GPU and Triton are there, a kernel of a `_kernels.py` stands in for what plain torch says
beside its call.

Shape letters: B batch, N positions, D width, H heads, K head_dim, R rows, I inner size, T tokens of
a patch; S tokens of the source, P predictions a position, M predicted tokens, V vocabulary.
"""

import importlib.util
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from archfit.model.parametrisation import Parametrisation
from archfit.spec import Architecture, Factorised, Full, Linear, Rotary, parts

HAS_TRITON = importlib.util.find_spec("triton") is not None
WIDEST_FUSED_HEAD = 512  # that our kernels of attention take
WIDEST_TORCH_HEAD = 256  # that torch's fast ones take
ROWS_MULTIPLE = 8  # rows of a bfloat16 product that tensor cores take without a slow path
NORM_EPSILON = 1e-5
ROTARY_BASE = 10_000.0  # Llama's
Stream = Float[Tensor, "B N D"]


def can_fuse(x: Tensor) -> bool:
    """Whether Triton's kernels may be used on it."""
    return x.is_cuda and HAS_TRITON


def can_fuse_products(x: Tensor) -> bool:
    """Whether those with products in them may: they are made for autocast."""
    return can_fuse(x) and torch.is_autocast_enabled("cuda")


class BlockSettings(NamedTuple):
    """What decides every block of a network."""

    architecture: Architecture
    numbers: Parametrisation
    dropout: float
    inside: Architecture  # the network asked for; what is wider here are zeros (padding.py)


class Branch(NamedTuple):
    """What a layer adds to the stream: a product, and its bias where that is not yet in it.

    On a GPU the next norm adds the bias, because backwards it has the gradient at hand that the
    bias's is a sum of.
    """

    product_BND: Tensor
    bias_D: Tensor | None = None

    def whole(self) -> Stream:
        """The sum of both."""
        if self.bias_D is None:
            return self.product_BND
        return self.product_BND + self.bias_D.to(self.product_BND.dtype)


class AddNorm(nn.Module):
    """x + branch_multiplier branch, and the norm of that sum: GPT-2's, or Llama's RMS norm."""

    def __init__(self, settings: BlockSettings) -> None:
        super().__init__()
        shape = settings.architecture
        self.weight = nn.Parameter(torch.ones(shape.width))
        self.bias = nn.Parameter(torch.zeros(shape.width)) if shape.block == "gpt2" else None
        self.branch_multiplier = settings.numbers.residual_multiplier
        self.true_width = settings.inside.width

    def forward(self, x_BND: Stream, branch: Branch | None) -> tuple[Stream, Stream]:
        """The stream with the branch added, and its norm."""
        if can_fuse(x_BND):
            from archfit.model.row_kernels import fused_add_norm

            product_BND, bias_D = (None, None) if branch is None else branch
            return fused_add_norm(
                x_BND, product_BND, bias_D, self.weight, self.bias,
                self.branch_multiplier, self.true_width,
            )  # fmt: skip
        if branch is not None:
            scale, branch_BND = self.branch_multiplier, branch.whole()
            x_BND = x_BND + (branch_BND if scale == 1 else scale * branch_BND)
        if self.bias is None:
            return x_BND, F.rms_norm(x_BND, self.weight.shape, self.weight, NORM_EPSILON)
        return x_BND, F.layer_norm(x_BND, self.weight.shape, self.weight, self.bias, NORM_EPSILON)


class Attention(nn.Module):
    """Mix positions: softmax(q k^T score_multiplier) v, under a causal mask in a decoder.

    In a block of Llama queries and keys are turned by their positions, and several heads may share
    keys and values.
    """

    def __init__(self, settings: BlockSettings) -> None:
        super().__init__()
        shape = settings.architecture
        self.heads, self.groups, self.head_dim = shape.heads, shape.key_value_heads, shape.head_dim
        self.true_head_dim, self.is_causal = settings.inside.head_dim, shape.is_causal
        self.score_multiplier, self.dropout = settings.numbers.score_multiplier, settings.dropout
        has_bias = shape.block == "gpt2"
        inner = self.heads * self.head_dim  # H K, free of D
        self.qkv = nn.Linear(shape.width, inner + 2 * self.groups * self.head_dim, bias=has_bias)
        self.out = nn.Linear(inner, shape.width, bias=has_bias)
        self.query_norm = HeadNorm(self.head_dim) if shape.qk_norm else None
        self.key_norm = HeadNorm(self.head_dim) if shape.qk_norm else None
        self.rotation = None
        if isinstance(shape.positions, Rotary):
            self.rotation = Rotation(shape.context, self.head_dim, self.true_head_dim)

    def forward(self, x_BND: Stream) -> Branch:
        """Return what attention adds to the residual stream."""
        is_plain = not (self.training and self.dropout) and self.head_dim <= WIDEST_FUSED_HEAD
        if is_plain and can_fuse_products(x_BND):
            return self._fused_attention(x_BND)
        surplus = head_padding(self.head_dim) if x_BND.is_cuda and self.rotation is None else 0
        return Branch(self._padded_attention(x_BND, surplus))

    def _fused_attention(self, x_BND: Stream) -> Branch:
        from archfit.model.attention_kernels import fused_attention
        from archfit.model.product_kernels import fused_product
        from archfit.model.rotary_kernels import Turn

        bias, turn = self.qkv.bias, None
        qkv_BNHK = fused_product(x_BND, self.qkv.weight, bias).unflatten(-1, (-1, self.head_dim))
        if self.rotation is not None:
            norms = [norm.weight for norm in (self.query_norm, self.key_norm) if norm is not None]
            turn = Turn(self.rotation.angles_2NK[:, : x_BND.shape[1]], *norms)
        y_BNHK = fused_attention(
            qkv_BNHK, bias, self.heads, self.score_multiplier, turn,
            is_causal=self.is_causal, true_head_dim=self.true_head_dim,
        )  # fmt: skip
        return Branch(fused_product(y_BNHK.flatten(2), self.out.weight), self.out.bias)

    def _padded_attention(self, x_BND: Stream, surplus: int) -> Stream:
        """Torch's attention over heads with `surplus` zero coordinates. They are added to the
        weights, where that costs less than in the activations, and change nothing."""
        split = (self.heads + 2 * self.groups, self.head_dim)
        weight: Tensor = self.qkv.weight
        bias: Tensor | None = self.qkv.bias
        weight_DHK: Tensor = self.out.weight.unflatten(1, (self.heads, self.head_dim))
        if surplus:
            weight = F.pad(weight.unflatten(0, split), (0, 0, 0, surplus)).flatten(0, 1)
            bias = None if bias is None else F.pad(bias.unflatten(0, split), (0, surplus)).flatten()
            weight_DHK = F.pad(weight_DHK, (0, surplus))
        qkv_BNHK: Tensor = F.linear(x_BND, weight, bias).unflatten(-1, (split[0], -1))
        # Taken apart before they are transposed: the gradients then go back in one copy, not two.
        sizes = (self.heads, self.groups, self.groups)
        q_BHNK, k_BHNK, v_BHNK = (part.transpose(1, 2) for part in qkv_BNHK.split(sizes, dim=2))
        if self.query_norm is not None and self.key_norm is not None:
            q_BHNK, k_BHNK = self.query_norm(q_BHNK), self.key_norm(k_BHNK)
        if self.rotation is not None:
            q_BHNK, k_BHNK = self.rotation(q_BHNK), self.rotation(k_BHNK)
        dropout, scale = self.dropout if self.training else 0.0, self.score_multiplier
        is_shared = self.groups != self.heads  # several heads have one of keys and values
        y_BHNK = F.scaled_dot_product_attention(
            q_BHNK, k_BHNK, v_BHNK, None, dropout, self.is_causal, scale=scale, enable_gqa=is_shared
        )
        return F.linear(y_BHNK.transpose(1, 2).flatten(2), weight_DHK.flatten(1), self.out.bias)


class HeadNorm(nn.Module):
    """The RMS norm of each head's queries or keys, with one scale for all heads (Qwen3)."""

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(head_dim))

    def forward(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... K"]:
        """x / rms(x) * weight, in the precision of x."""
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), NORM_EPSILON)


class Rotation(nn.Module):
    """Turn coordinate i and i + K/2 of a vector at position n by the angle n base^(-2i/K)."""

    def __init__(self, context: int, head_dim: int, true_head_dim: int) -> None:
        super().__init__()
        pairs = torch.arange(0, head_dim, 2, dtype=torch.float64)  # the last may be zeros
        rates = ROTARY_BASE ** (-pairs / true_head_dim)
        angles_NK = torch.arange(context, dtype=torch.float64)[:, None] * rates
        both_2NK = torch.stack((angles_NK.cos(), angles_NK.sin()))
        self.register_buffer("angles_2NK", both_2NK.float(), persistent=False)
        self.angles_2NK: Tensor

    def forward(self, x_BHNK: Float[Tensor, "B H N K"]) -> Float[Tensor, "B H N K"]:
        """Every position turned by its own angles."""
        angles_2NK = self.angles_2NK[:, : x_BHNK.shape[2]]
        cos_NK, sin_NK = angles_2NK.to(x_BHNK.dtype).repeat(1, 1, 2)
        a, b = x_BHNK.chunk(2, dim=-1)
        turned_BHNK: Tensor = x_BHNK * cos_NK + torch.cat((-b, a), dim=-1) * sin_NK
        return turned_BHNK


def head_padding(head_dim: int) -> int:
    """Zeros that bring a head to a size that GPU kernels are fast at.

    A multiple of 64 if that adds at most a quarter (52 to 64, 240 to 256), else one of 8.
    """
    to_64 = -head_dim % 64
    return to_64 if 4 * to_64 <= head_dim and head_dim <= WIDEST_TORCH_HEAD else -head_dim % 8


class LinearAttention(nn.Module):
    """The analysed layer, sum_h W^O_h W^V_h Y Y^T (W^K_h)^T W^Q_h Y (Levine et al. 2020, eq. 3).

    No softmax, no scale, no bias; with a causal mask a position sees itself and those before it.
    """

    def __init__(self, architecture: Architecture, attention: Linear) -> None:
        super().__init__()
        self.heads, self.causal = architecture.heads, attention.causal
        inner = architecture.heads * architecture.head_dim
        self.qkv = nn.Linear(architecture.width, 3 * inner, bias=False)
        self.out = nn.Linear(inner, architecture.width, bias=False)

    def forward(self, x_BND: Stream) -> Stream:
        """Return the layer's output, without the residual."""
        qkv_BN3HK: Tensor = self.qkv(x_BND).unflatten(-1, (3, self.heads, -1))
        q_BHNK, k_BHNK, v_BHNK = qkv_BN3HK.transpose(1, 3).unbind(2)
        score_BHNN = q_BHNK @ k_BHNK.transpose(-2, -1)
        if self.causal:
            score_BHNN = score_BHNN.tril()
        y_BND: Tensor = self.out((score_BHNN @ v_BHNK).transpose(1, 2).flatten(2))
        return y_BND


class FeedForward(nn.Module):
    """down(gelu(up(x))), or down(silu(gate(x)) up(x)), whose gate and up are one matrix."""

    def __init__(self, width: int, hidden: int, *, is_gated: bool) -> None:
        super().__init__()
        self.is_gated = is_gated
        self.up = nn.Linear(width, 2 * hidden if is_gated else hidden, bias=not is_gated)
        self.down = nn.Linear(hidden, width, bias=not is_gated)

    def forward(self, x_BND: Stream) -> Branch:
        """Return what the layer adds to the residual stream."""
        if can_fuse_products(x_BND):
            from archfit.model.feed_forward_kernels import fused_feed_forward

            y_BND = fused_feed_forward(x_BND, self.up.weight, self.up.bias, self.down.weight)
            # The next block reads this bias, and a sharded block takes its own back before that.
            return Branch(y_BND, None if self.down.bias is None else self.down.bias.clone())
        if self.is_gated:  # two products: halves of one would be copied on their way back
            gate, up = (F.linear(x_BND, half) for half in self.up.weight.chunk(2))
            return Branch(self.down(F.silu(gate) * up))
        return Branch(self.down(F.gelu(self.up(x_BND))))


class RowTable(nn.Module):
    """A (rows x width) matrix, or the product of a (rows x inner) and an (inner x width) one."""

    def __init__(self, rows: int, width: int, table: Full | Factorised) -> None:
        super().__init__()
        inner = table.inner if isinstance(table, Factorised) else width
        self.rows_RI = nn.Parameter(torch.empty(rows, inner))
        self.mix_ID = None
        if isinstance(table, Factorised):
            self.mix_ID = nn.Parameter(torch.empty(inner, width))

    def matrix(self) -> Float[Tensor, "R D"]:
        """The whole table, multiplied out in its own precision: a factor in bfloat16 would make
        a factorised table coarser than a full one."""
        if self.mix_ID is None:
            return self.rows_RI
        with torch.autocast(self.rows_RI.device.type, enabled=False):
            return self.rows_RI @ self.mix_ID

    def look_up(self, ids_BNT: Int[Tensor, "B N T"]) -> Stream:
        """The sum of the rows of each T ids, never stored one by one."""
        few = ids_BNT.shape[2] == 1 and ids_BNT.numel() < len(self.rows_RI)
        if self.mix_ID is None or not few:
            return look_up_sums(ids_BNT, self.matrix())
        with torch.autocast(self.rows_RI.device.type, enabled=False):
            return look_up_sums(ids_BNT, self.rows_RI) @ self.mix_ID

    def project(self, h_BND: Stream) -> Float[Tensor, "B N R"]:
        """The product of each vector with every row: h times the transposed table."""
        rows_RI, in_BNI = self.rows_RI, h_BND
        if self.mix_ID is not None:
            in_BNI = F.linear(h_BND, self.mix_ID)
        surplus = -len(rows_RI) % ROWS_MULTIPLE if rows_RI.is_cuda else 0
        if not surplus:  # a slice that keeps everything would still copy the gradient
            return F.linear(in_BNI, rows_RI)
        return F.linear(in_BNI, F.pad(rows_RI, (0, 0, 0, surplus)))[..., :-surplus]


def look_up_sums(ids_BNT: Int[Tensor, "B N T"], table_RD: Float[Tensor, "R D"]) -> Stream:
    """The sum of the table's rows of each T ids."""
    look_up = plain_look_up
    if can_fuse(table_RD):
        from archfit.model.product_kernels import fused_look_up as look_up
    sums_BND: Tensor = look_up(ids_BNT.flatten(0, 1), table_RD).unflatten(0, ids_BNT.shape[:2])
    return sums_BND


def plain_look_up(
    ids_MT: Int[Tensor, "M T"], table_RD: Float[Tensor, "R D"]
) -> Float[Tensor, "M D"]:
    """The same of a list of ids by torch; its gradient may have another order every time."""
    if ids_MT.shape[1] == 1:
        return F.embedding(ids_MT[:, 0], table_RD)
    return F.embedding_bag(ids_MT, table_RD, mode="sum")


def batch_of(
    rows_BR: Int[Tensor, "B R"], architecture: Architecture
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The rows of a loader taken apart: what a network reads, what it should predict, and the
    positions that it predicts where these are not all.

    A decoder's row is read but for its last position, and predicted but for its first. An encoder's
    is what it sees, the places it predicts, and what stood there.
    """
    if architecture.objective == "masked":
        hidden = (rows_BR.shape[1] - architecture.context) // 2
        seen, places, targets = rows_BR.split((architecture.context, hidden, hidden), dim=1)
        return seen, targets, places
    size = architecture.input.tokens_per_position
    return rows_BR[:, :-size], rows_BR[:, size:], None


def token_losses(
    logits_BNP: Float[Tensor, "B N P"], targets_BS: Int[Tensor, "B S"], given: parts.Input
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
