"""Attention by the kernels of attention_kernels.py, as a function with a gradient.

row_kernels.py says when kernels are used. Shape letters: B batch, N positions, H heads (in `qkv`:
queries of all heads, keys of all groups, values of all groups), K head_dim.
"""

import torch
from torch import Tensor

from archfit.model.attention_kernels import attention_backward, attention_forward
from archfit.model.head_tiles import HeadShape
from archfit.model.tiles import Work, Zeros, share_sums


class _FusedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv_BNHK, bias, angles, scale, shape):
        qkv_BNHK = qkv_BNHK.contiguous()
        kept = attention_forward(qkv_BNHK, angles, scale, shape)
        ctx.save_for_backward(qkv_BNHK, angles, *kept)
        ctx.scale, ctx.shape, ctx.shares = scale, shape, getattr(bias, "shares", None)
        return kept[0]

    @staticmethod
    def backward(ctx, d_out):
        qkv_BNHK, angles, *kept = ctx.saved_tensors
        d_qkv, sums = attention_backward(
            qkv_BNHK, angles, tuple(kept), d_out.contiguous(), ctx.scale, ctx.shape, ctx.shares
        )
        d_bias = None if sums is None or sums is ctx.shares else share_sums(sums).flatten()
        return d_qkv, d_bias, None, None, None


def fused_attention(
    qkv_BNHK: Tensor,
    bias: Tensor | None,
    heads: int,
    scale: float,
    angles: Tensor | None,
    *,
    is_causal: bool,
) -> Tensor:
    """softmax(scale q k^T) v of every head, B N H K; with angles, queries and keys are turned.

    `bias` is the one that `qkv` has in it. Its gradient is made here, where the gradient of `qkv`
    is at hand, so the projection must not make it, too.
    """
    _, positions, all_heads, head_dim = qkv_BNHK.shape
    shape = HeadShape(
        positions=positions,
        heads=heads,
        groups=(all_heads - heads) // 2,
        head_dim=head_dim,
        is_causal=is_causal,
        is_turned=angles is not None,
        has_bias=bias is not None,
    )
    return _FusedAttention.apply(qkv_BNHK, bias, angles, scale, shape)


def attention_work(shape: HeadShape, zeros: Zeros) -> Work:
    """A run each way."""
    positions, heads, head_dim = shape.positions, shape.heads, shape.head_dim
    qkv = zeros(1, positions, heads + 2 * shape.groups, head_dim)
    angles = zeros(2, positions, head_dim // 2).float() if shape.is_turned else None
    out, log_sums = zeros(1, positions, heads, head_dim), zeros(1, heads, positions).float()
    qk = zeros(1, positions, heads + shape.groups, head_dim) if shape.is_turned else qkv
    tiles = [shape.tile(is_halved=is_halved) for is_halved in (False, shape.is_turned)]
    flags = shape.is_causal, shape.is_turned, shape.has_bias
    key = "attention", *flags, *(tile[name] for tile in tiles for name in ("A", "B", "ALIGN"))
    kept = out, qk, log_sums
    return {
        (*key, 0): lambda: attention_forward(qkv, angles, 1.0, shape),
        (*key, 1): lambda: attention_backward(qkv, angles, kept, out, 1.0, shape, None),
    }
