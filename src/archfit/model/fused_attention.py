"""Attention by our kernels, as a function with a gradient.

row_kernels.py says when kernels are used. Shape letters: B batch, N positions, H heads (in `qkv`:
queries of all heads, keys of all groups, values of all groups), K head_dim.
"""

import torch
from torch import Tensor

from archfit.model.attention_kernels import attention_backward, attention_forward
from archfit.model.head_tiles import HeadShape
from archfit.model.rotary_kernels import Turn, turn_back, turned_heads
from archfit.model.tile_attention_kernels import fits_one_tile
from archfit.model.tiles import Work, Zeros, power_of_two, share_sums


class _FusedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv_BNHK, bias, angles, query_weight, key_weight, scale, shape):
        qkv_BNHK, qk_BNHK, turn = qkv_BNHK.contiguous(), None, None
        if angles is not None:
            turn = Turn(angles, query_weight, key_weight)
            qk_BNHK = turned_heads(qkv_BNHK, turn, shape)
        made = attention_forward(qkv_BNHK if qk_BNHK is None else qk_BNHK, qkv_BNHK, scale, shape)
        ctx.save_for_backward(qkv_BNHK, qk_BNHK, *made)
        ctx.scale, ctx.shape, ctx.turn = scale, shape, turn
        ctx.shares = [getattr(weight, "shares", None) for weight in (bias, query_weight)]
        return made[0]

    @staticmethod
    def backward(ctx, d_out):
        qkv_BNHK, qk_BNHK, *made = ctx.saved_tensors
        for_bias, for_norms = ctx.shares
        d_qkv, sums = attention_backward(
            qkv_BNHK if qk_BNHK is None else qk_BNHK, qkv_BNHK, tuple(made),
            d_out.contiguous(), ctx.scale, ctx.shape, for_bias,
        )  # fmt: skip
        d_bias = None if sums is None or sums is for_bias else share_sums(sums).flatten()
        sums, d_norms = None, (None, None)
        if ctx.turn is not None:
            sums = turn_back(d_qkv, qkv_BNHK, ctx.turn, ctx.shape, for_norms)
        if sums is not None and sums is not for_norms:
            d_norms = tuple(share_sums(sums))
        return d_qkv, d_bias, None, *d_norms, None, None


def fused_attention(
    qkv_BNHK: Tensor,
    bias: Tensor | None,
    heads: int,
    scale: float,
    turn: Turn | None,
    *,
    is_causal: bool,
    true_head_dim: int,
) -> Tensor:
    """softmax(scale q k^T) v of every head, B N H K; queries and keys are turned if asked.

    `bias` is the one that `qkv` has in it. Its gradient is made here, where the gradient of `qkv`
    is at hand, so the projection must not make it, too.
    """
    _, positions, all_heads, head_dim = qkv_BNHK.shape
    shape = HeadShape(
        positions=positions,
        heads=heads,
        groups=(all_heads - heads) // 2,
        head_dim=head_dim,
        true_head_dim=true_head_dim,
        is_causal=is_causal,
        is_turned=turn is not None,
        is_normed=turn is not None and turn.query_weight is not None,
        has_bias=bias is not None,
    )
    return _FusedAttention.apply(qkv_BNHK, bias, *(turn or (None,) * 3), scale, shape)


def attention_work(shape: HeadShape, zeros: Zeros) -> Work:
    """A run each way."""
    positions, heads, head_dim = shape.positions, shape.heads, shape.head_dim
    qkv = zeros(1, positions, heads + 2 * shape.groups, head_dim)
    made = zeros(1, positions, heads, head_dim), zeros(1, heads, positions).float()
    tile = shape.tile(is_halved=False)
    longest = power_of_two(16, positions) if fits_one_tile(shape) else 0
    flags = longest, shape.is_causal, shape.has_bias
    key = "attention", *flags, tile["A"], tile["B"], tile["ALIGN"]
    work: Work = {
        (*key, 0): lambda: attention_forward(qkv, qkv, 1.0, shape),
        (*key, 1): lambda: attention_backward(qkv, qkv, made, made[0], 1.0, shape, None),
    }
    if shape.is_turned:
        weight = zeros(head_dim).float() if shape.is_normed else None
        turn = Turn(zeros(2, positions, head_dim // 2).float(), weight, weight)
        tile = shape.tile(is_halved=True)
        variant = "turn", shape.is_normed, tile["A"], tile["B"], tile["ALIGN"]
        work[*variant, 0] = lambda: turned_heads(qkv, turn, shape)
        work[*variant, 1] = lambda: turn_back(qkv, qkv, turn, shape, None)
    return work
