"""Triton kernels of attention over a context that fits one tile, and the door to all attention.

Torch copies queries, keys and values into other layouts; here they are read where the projection
left them. Up to 128 positions all scores of a head are one tile, forwards and backwards one kernel
each; long_attention_kernels.py has the rest.

A head is read as two halves, because rotary positions turn coordinate i together with i + K/2; what
is not turned is split wherever a tile ends. row_kernels.py says when kernels are used.

Shape letters: B batch, N positions, H heads (in `qkv`: queries of all heads, keys of all groups,
values of all groups), K head_dim.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.head_tiles import (
    SIZES,
    HeadShape,
    load_halves,
    store_halves,
    turned,
)
from archfit.model.long_attention_kernels import long_backward, long_forward
from archfit.model.tiles import Work, Zeros, power_of_two

LONGEST_TILE, LONGEST_GROUPED_TILE = 128, 64  # a group's gradients need registers of their own
WIDEST_HALF = 64
SHORT_WARPS, SHORT_STAGES = 8, 1


@triton.jit
@no_type_check
def _weights(q_a, q_b, k_a, k_b, row, positions, scale, CAUSAL: tl.constexpr):
    """softmax(scale q k^T); all positions are in one tile."""
    scores = tl.dot(q_b, tl.trans(k_b), tl.dot(q_a, tl.trans(k_a))) * scale
    seen = row[:, None] >= row[None, :] if CAUSAL else (row < positions)[None, :]
    scores = tl.where(seen, scores, float("-inf"))
    powers = tl.exp(scores - tl.max(scores, 1)[:, None])
    return powers / tl.sum(powers, 1)[:, None]


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _short_forward(
    qkv, angles, out, scale, positions, heads, groups, head_dim, half, sine,
    CAUSAL: tl.constexpr, GROUPED: tl.constexpr, BLOCK: tl.constexpr, HALF: tl.constexpr,
    ALIGN: tl.constexpr,
):  # fmt: skip
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    sine = sine // ALIGN * ALIGN
    stride, out_stride = (heads + 2 * groups) * head_dim, heads * head_dim
    batch, group = (tl.program_id(0) // groups).to(tl.int64), tl.program_id(0) % groups
    share = heads // groups if GROUPED else 1
    row = tl.arange(0, BLOCK)
    queries = qkv + batch * positions * stride
    keys = queries + (heads + group) * head_dim
    values = keys + groups * head_dim
    k_a, k_b = load_halves(keys, row, positions, stride, head_dim, half, HALF)
    k_a, k_b = turned(k_a, k_b, angles, row, positions, half, sine, HALF, False)
    v_a, v_b = load_halves(values, row, positions, stride, head_dim, half, HALF)
    for head in range(share):
        query = (group * share + head) * head_dim
        q_a, q_b = load_halves(queries + query, row, positions, stride, head_dim, half, HALF)
        q_a, q_b = turned(q_a, q_b, angles, row, positions, half, sine, HALF, False)
        weights = _weights(q_a, q_b, k_a, k_b, row, positions, scale, CAUSAL).to(v_a.dtype)
        store_halves(
            out + batch * positions * out_stride, None, query,
            tl.dot(weights, v_a), tl.dot(weights, v_b),
            row, positions, out_stride, head_dim, half, HALF,
        )  # fmt: skip


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _short_backward(
    qkv, angles, d_out, d_qkv, sums, scale, positions, heads, groups, head_dim, half, sine,
    CAUSAL: tl.constexpr, GROUPED: tl.constexpr, BLOCK: tl.constexpr, HALF: tl.constexpr,
    ALIGN: tl.constexpr,
):  # fmt: skip
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    sine = sine // ALIGN * ALIGN
    stride, out_stride = (heads + 2 * groups) * head_dim, heads * head_dim
    batch, group = (tl.program_id(0) // groups).to(tl.int64), tl.program_id(0) % groups
    share = heads // groups if GROUPED else 1
    row = tl.arange(0, BLOCK)
    first, key = batch * positions * stride, (heads + group) * head_dim
    value = key + groups * head_dim
    if sums is not None:
        sums += batch * stride
    k_a, k_b = load_halves(qkv + first + key, row, positions, stride, head_dim, half, HALF)
    k_a, k_b = turned(k_a, k_b, angles, row, positions, half, sine, HALF, False)
    v_a, v_b = load_halves(qkv + first + value, row, positions, stride, head_dim, half, HALF)
    dk_a = tl.zeros((BLOCK, HALF), tl.float32)
    dk_b, dv_a, dv_b = dk_a, dk_a, dk_a
    for head in range(share):
        query = (group * share + head) * head_dim
        q_a, q_b = load_halves(qkv + first + query, row, positions, stride, head_dim, half, HALF)
        q_a, q_b = turned(q_a, q_b, angles, row, positions, half, sine, HALF, False)
        d_mixed = d_out + batch * positions * out_stride + query
        do_a, do_b = load_halves(d_mixed, row, positions, out_stride, head_dim, half, HALF)
        weights = _weights(q_a, q_b, k_a, k_b, row, positions, scale, CAUSAL)
        d_weights = tl.dot(do_b, tl.trans(v_b), tl.dot(do_a, tl.trans(v_a)))
        level = tl.sum(weights * d_weights, 1)
        d_scores = (weights * (d_weights - level[:, None]) * scale).to(k_a.dtype)
        dq_a, dq_b = tl.dot(d_scores, k_a), tl.dot(d_scores, k_b)
        dq_a, dq_b = turned(dq_a, dq_b, angles, row, positions, half, sine, HALF, True)
        store_halves(
            d_qkv + first, sums, query, dq_a, dq_b,
            row, positions, stride, head_dim, half, HALF,
        )  # fmt: skip
        d_scores = tl.trans(d_scores)
        dk_a, dk_b = tl.dot(d_scores, q_a, dk_a), tl.dot(d_scores, q_b, dk_b)
        narrow = tl.trans(weights.to(k_a.dtype))
        dv_a, dv_b = tl.dot(narrow, do_a, dv_a), tl.dot(narrow, do_b, dv_b)
    dk_a, dk_b = turned(dk_a, dk_b, angles, row, positions, half, sine, HALF, True)
    store_halves(
        d_qkv + first, sums, key, dk_a, dk_b,
        row, positions, stride, head_dim, half, HALF,
    )  # fmt: skip
    store_halves(
        d_qkv + first, sums, value, dv_a, dv_b,
        row, positions, stride, head_dim, half, HALF,
    )  # fmt: skip


def _fits_one_tile(shape: HeadShape) -> bool:
    longest = LONGEST_TILE if shape.groups == shape.heads else LONGEST_GROUPED_TILE
    return shape.positions <= longest and shape.half_tile <= WIDEST_HALF


def _short_options(shape: HeadShape, angles: Tensor | None) -> dict[str, int]:
    sine = 0 if angles is None else angles.stride(0)
    block = power_of_two(16, shape.positions)
    flags = {"CAUSAL": shape.is_causal, "GROUPED": shape.groups != shape.heads, "BLOCK": block}
    launch = {"num_warps": SHORT_WARPS, "num_stages": SHORT_STAGES}
    return {**shape.sizes, "sine": sine, **shape.tile, **flags, **launch}


def attention_forward(
    qkv_BNHK: Tensor, angles: Tensor | None, scale: float, shape: HeadShape
) -> tuple[Tensor, ...]:
    """Attention's output, and what a long context keeps for its gradient."""
    if not _fits_one_tile(shape):
        return long_forward(qkv_BNHK, angles, scale, shape)
    out = qkv_BNHK.new_empty(*qkv_BNHK.shape[:2], shape.heads, shape.head_dim)
    _short_forward[(len(out) * shape.groups,)](
        qkv_BNHK, angles, out, scale, **_short_options(shape, angles)
    )
    return (out,)


def attention_backward(
    qkv_BNHK: Tensor,
    angles: Tensor | None,
    kept: tuple[Tensor, ...],
    d_out: Tensor,
    scale: float,
    shape: HeadShape,
) -> tuple[Tensor, Tensor | None]:
    """The gradients of `qkv` and of the bias in it; weights are computed once more."""
    if _fits_one_tile(shape):
        d_qkv = torch.empty_like(qkv_BNHK)
        sums = shape.column_sums(d_qkv, len(d_qkv))
        _short_backward[(len(d_qkv) * shape.groups,)](
            qkv_BNHK, angles, d_out, d_qkv, sums, scale, **_short_options(shape, angles)
        )
    else:
        d_qkv, sums = long_backward(qkv_BNHK, angles, kept, d_out, scale, shape)
    return d_qkv, None if sums is None else sums.sum(0).flatten()


class _FusedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv_BNHK, _bias, angles, scale, shape):
        qkv_BNHK = qkv_BNHK.contiguous()
        kept = attention_forward(qkv_BNHK, angles, scale, shape)
        ctx.save_for_backward(qkv_BNHK, angles, *(kept if len(kept) > 1 else ()))
        ctx.scale, ctx.shape = scale, shape
        return kept[0]

    @staticmethod
    def backward(ctx, d_out):
        qkv_BNHK, angles, *kept = ctx.saved_tensors
        d_qkv, d_bias = attention_backward(
            qkv_BNHK, angles, tuple(kept), d_out.contiguous(), ctx.scale, ctx.shape
        )
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
    length = power_of_two(16, positions) if _fits_one_tile(shape) else "long"
    flags = length, shape.groups == heads, shape.is_causal, shape.is_turned, shape.has_bias
    key = "attention", *flags, *shape.tile.values()
    kept = out, qk, log_sums
    return {
        (*key, 0): lambda: attention_forward(qkv, angles, 1.0, shape),
        (*key, 1): lambda: attention_backward(qkv, angles, kept, out, 1.0, shape),
    }
