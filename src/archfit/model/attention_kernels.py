"""The Triton kernel of attention over a short context.

Torch copies queries, keys and values into other layouts; here they are read where the projection
left them, and all scores of a head stay in one tile. row_kernels.py says when kernels are used.

Shape letters: B batch, N positions, H heads, K head_dim.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

ATTENTION_WARPS, ATTENTION_STAGES = 8, 3  # the fastest of those tried (docs/performance.md)


@triton.jit
@no_type_check
def _attention_weights(
    queries, keys, row, stride, scale,
    POSITIONS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """softmax(scale q k^T) over the positions up to each; all of them are in one tile."""
    scores = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, HEAD_DIM, CHUNK):
        column = first + tl.arange(0, CHUNK)
        inside = (row < POSITIONS)[:, None] & (column < HEAD_DIM)[None, :]
        at = row[:, None] * stride + column[None, :]
        scores = tl.dot(
            tl.load(queries + at, inside, 0.0), tl.trans(tl.load(keys + at, inside, 0.0)), scores
        )
    scores = tl.where(row[:, None] >= row[None, :], scores * scale, float("-inf"))
    powers = tl.exp(scores - tl.max(scores, 1)[:, None])
    return powers / tl.sum(powers, 1)[:, None]


@triton.jit
@no_type_check
def _attention_forward(
    qkv, out, scale,
    HEADS: tl.constexpr, POSITIONS: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    batch, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    inner = HEADS * HEAD_DIM
    row = tl.arange(0, BLOCK)
    queries = qkv + batch.to(tl.int64) * POSITIONS * 3 * inner + head * HEAD_DIM
    out += batch.to(tl.int64) * POSITIONS * inner + head * HEAD_DIM
    weights = _attention_weights(
        queries, queries + inner, row, 3 * inner, scale, POSITIONS, HEAD_DIM, BLOCK, CHUNK
    ).to(out.dtype.element_ty)
    for first in range(0, HEAD_DIM, CHUNK):
        column = first + tl.arange(0, CHUNK)
        inside = (row < POSITIONS)[:, None] & (column < HEAD_DIM)[None, :]
        at = row[:, None] * 3 * inner + column[None, :]
        mixed = tl.dot(weights, tl.load(queries + 2 * inner + at, inside, 0.0))
        tl.store(out + row[:, None] * inner + column[None, :], mixed, inside)


@triton.jit
@no_type_check
def _attention_backward(
    qkv, d_out, d_qkv, scale,
    HEADS: tl.constexpr, POSITIONS: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    batch, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    inner = HEADS * HEAD_DIM
    row = tl.arange(0, BLOCK)
    offset = batch.to(tl.int64) * POSITIONS * 3 * inner + head * HEAD_DIM
    queries, d_queries = qkv + offset, d_qkv + offset
    d_out += batch.to(tl.int64) * POSITIONS * inner + head * HEAD_DIM
    weights = _attention_weights(
        queries, queries + inner, row, 3 * inner, scale, POSITIONS, HEAD_DIM, BLOCK, CHUNK
    )
    narrow = weights.to(d_qkv.dtype.element_ty)
    d_weights = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, HEAD_DIM, CHUNK):
        column = first + tl.arange(0, CHUNK)
        inside = (row < POSITIONS)[:, None] & (column < HEAD_DIM)[None, :]
        at = row[:, None] * 3 * inner + column[None, :]
        d_mixed = tl.load(d_out + row[:, None] * inner + column[None, :], inside, 0.0)
        values = tl.load(queries + 2 * inner + at, inside, 0.0)
        d_weights = tl.dot(d_mixed, tl.trans(values), d_weights)
        d_values = tl.dot(tl.trans(narrow), d_mixed)
        tl.store(d_queries + 2 * inner + at, d_values, inside)
    level = tl.sum(weights * d_weights, 1)
    d_scores = (weights * (d_weights - level[:, None]) * scale).to(d_qkv.dtype.element_ty)
    for first in range(0, HEAD_DIM, CHUNK):
        column = first + tl.arange(0, CHUNK)
        inside = (row < POSITIONS)[:, None] & (column < HEAD_DIM)[None, :]
        at = row[:, None] * 3 * inner + column[None, :]
        tl.store(
            d_queries + at, tl.dot(d_scores, tl.load(queries + inner + at, inside, 0.0)), inside
        )
        d_keys = tl.dot(tl.trans(d_scores), tl.load(queries + at, inside, 0.0))
        tl.store(d_queries + inner + at, d_keys, inside)


def _attention_tile(positions: int, heads: int, head_dim: int) -> dict[str, int]:
    return {
        "HEADS": heads,
        "POSITIONS": positions,
        "HEAD_DIM": head_dim,
        "BLOCK": max(16, triton.next_power_of_2(positions)),
        "CHUNK": min(64, max(16, triton.next_power_of_2(head_dim))),
        "num_warps": ATTENTION_WARPS,
        "num_stages": ATTENTION_STAGES,
    }


def attention_forward(qkv_BN3HK, scale):
    """softmax(scale q k^T) v of every head."""
    batch, positions, _, heads, head_dim = qkv_BN3HK.shape
    out = qkv_BN3HK.new_empty(batch, positions, heads, head_dim)
    tile = _attention_tile(positions, heads, head_dim)
    _attention_forward[(batch * heads,)](qkv_BN3HK, out, scale, **tile)
    return out


def attention_backward(qkv_BN3HK, d_out, scale):
    """The gradient of queries, keys and values; the weights are computed once more."""
    batch, positions, _, heads, head_dim = qkv_BN3HK.shape
    d_qkv = torch.empty_like(qkv_BN3HK)
    tile = _attention_tile(positions, heads, head_dim)
    _attention_backward[(batch * heads,)](qkv_BN3HK, d_out, d_qkv, scale, **tile)
    return d_qkv


class _FusedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv_BN3HK, scale):
        qkv_BN3HK = qkv_BN3HK.contiguous()
        ctx.save_for_backward(qkv_BN3HK)
        ctx.scale = scale
        return attention_forward(qkv_BN3HK, scale)

    @staticmethod
    def backward(ctx, d_out):
        (qkv_BN3HK,) = ctx.saved_tensors
        return attention_backward(qkv_BN3HK, d_out.contiguous(), ctx.scale), None


def fused_attention(qkv_BN3HK: Tensor, scale: float) -> Tensor:
    """Causal softmax attention over a context that fits one tile, B N H K."""
    return _FusedAttention.apply(qkv_BN3HK, scale)
