"""The Triton kernel of attention's gradient over a context that fits one tile.

All scores of a head are one tile, made once for queries, keys and values alike, and a head is read
in chunks of columns: at heads of 240 it takes less than half the time of the kernels for contexts
of any length. Shape letters: B batch, N positions, H heads, K head_dim.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.head_tiles import LOG2_E, SIZES, HeadShape
from archfit.model.tiles import alignment, power_of_two

LONGEST, NARROWEST = 128, 129  # positions of a tile; columns of a head
LONGEST_CHUNK = 64  # columns
WARPS, STAGES = 8, 2


@triton.jit
@no_type_check
def _store_columns(rows, sums, values, row, column, positions, head_dim, stride):
    """Write some columns, and if asked their sums: a program's share of the gradient of a bias.

    Rows beyond the context are zeros.
    """
    inside = (row < positions)[:, None] & (column < head_dim)[None, :]
    tl.store(rows + row[:, None] * stride + column[None, :], values, inside)
    if sums is not None:
        tl.store(sums + column, tl.sum(values, 0), column < head_dim)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _tile_backward(
    qk, qkv, log_sums, d_out, d_qkv, sums, scale, positions, heads, head_dim, read_heads,
    CAUSAL: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    head_dim = head_dim // ALIGN * ALIGN
    batch, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    inner, read = heads * head_dim, read_heads * head_dim
    stride = 3 * inner
    row = tl.arange(0, BLOCK)
    queries = qk + batch * positions * read + head * head_dim
    keys = queries + inner
    values = qkv + batch * positions * stride + head * head_dim + 2 * inner
    d_out += batch * positions * inner + head * head_dim
    d_qkv += batch * positions * stride + head * head_dim
    key_sums, value_sums = sums, sums
    if sums is not None:
        sums += batch * stride + head * head_dim
        key_sums, value_sums = sums + inner, sums + 2 * inner
    scores = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, head_dim, CHUNK):
        column = first + tl.arange(0, CHUNK)
        inside = (row < positions)[:, None] & (column < head_dim)[None, :]
        at = row[:, None] * read + column[None, :]
        query, key = tl.load(queries + at, inside, 0.0), tl.load(keys + at, inside, 0.0)
        scores = tl.dot(query, tl.trans(key), scores)
    seen = row[:, None] >= row[None, :] if CAUSAL else (row < positions)[None, :]
    log_sum = tl.load(
        log_sums + tl.program_id(0).to(tl.int64) * positions + row, row < positions, 0.0
    )
    powers = tl.exp2(scores * (scale * LOG2_E) - log_sum[:, None])
    weights = tl.where(seen & (row < positions)[:, None], powers, 0.0)
    narrow = tl.trans(weights.to(qkv.dtype.element_ty))
    d_weights = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, head_dim, CHUNK):
        column = first + tl.arange(0, CHUNK)
        inside = (row < positions)[:, None] & (column < head_dim)[None, :]
        slope = tl.load(d_out + row[:, None] * inner + column[None, :], inside, 0.0)
        value = tl.load(values + row[:, None] * stride + column[None, :], inside, 0.0)
        d_weights = tl.dot(slope, tl.trans(value), d_weights)
        d_value = tl.dot(narrow, slope)
        _store_columns(
            d_qkv + 2 * inner, value_sums, d_value, row, column, positions, head_dim, stride
        )
    level = tl.sum(weights * d_weights, 1)
    d_scores = (weights * (d_weights - level[:, None]) * scale).to(qkv.dtype.element_ty)
    turned = tl.trans(d_scores)
    for first in range(0, head_dim, CHUNK):
        column = first + tl.arange(0, CHUNK)
        inside = (row < positions)[:, None] & (column < head_dim)[None, :]
        at = row[:, None] * read + column[None, :]
        d_query = tl.dot(d_scores, tl.load(keys + at, inside, 0.0))
        _store_columns(d_qkv, sums, d_query, row, column, positions, head_dim, stride)
        d_key = tl.dot(turned, tl.load(queries + at, inside, 0.0))
        _store_columns(d_qkv + inner, key_sums, d_key, row, column, positions, head_dim, stride)


def fits_one_tile(shape: HeadShape) -> bool:
    """Whether the kernel is for such heads; none that share keys and values."""
    is_wide = shape.head_dim >= NARROWEST
    return is_wide and shape.positions <= LONGEST and shape.groups == shape.heads


def tile_backward(
    qk_BNHK: Tensor,
    qkv_BNHK: Tensor,
    log_sums: Tensor,
    d_out: Tensor,
    scale: float,
    shape: HeadShape,
    sums: Tensor | None,
) -> Tensor:
    """The gradient of what was read, like `qkv`; `sums` takes those of its columns, row by row."""
    d_qkv = torch.empty_like(qkv_BNHK)
    _tile_backward[(len(qkv_BNHK) * shape.heads,)](
        qk_BNHK, qkv_BNHK, log_sums, d_out, d_qkv, sums, scale,
        shape.positions, shape.heads, shape.head_dim, qk_BNHK.shape[2], CAUSAL=shape.is_causal,
        BLOCK=power_of_two(16, shape.positions),
        CHUNK=min(LONGEST_CHUNK, power_of_two(16, shape.head_dim)),
        ALIGN=alignment(shape.head_dim), num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return d_qkv
