"""Triton kernels of attention (Dao 2023, arXiv:2307.08691).

Torch copies queries, keys and values into other layouts; here they are read where the projection
left them. Scores are made tile by tile and never stored. Backwards there are two kernels, one that
gathers the gradient of queries and one that gathers those of keys and values, so that each number
has one writer and a sum always has the same order.

Where a context fits one tile, one kernel makes all gradients: the scores of a head are made once
for queries, keys and values alike, and a head is read in chunks of columns. At heads of 240 that
takes less than half the time.

row_kernels.py says when kernels are used. Shape letters: B batch, N positions, H heads (in `qkv`:
queries of all heads, keys of all groups, values of all groups), K head_dim.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.rotary_kernels import Turn, turn_back, turned_heads
from archfit.model.tiles import (
    HEAD_SIZES,
    LOG2_E,
    HeadShape,
    added,
    alignment,
    cut,
    empty_head,
    load_head,
    power_of_two,
    products,
    share_sums,
    store_head,
)

# For heads of at most so many columns the fastest tiles of those tried on an H200
# (docs/performance.md): queries and keys of one, warps and stages forwards, then for the gradients
# of queries and for those of keys, which share rows of sums and so have equally many rows.
TILES = {
    32: ((64, 64, 4, 1), (64, 64, 4, 1), (64, 64, 4, 1)),
    64: ((64, 32, 4, 2), (64, 32, 4, 2), (64, 64, 4, 1)),
    128: ((64, 64, 4, 1), (64, 32, 4, 2), (64, 64, 4, 1)),
    256: ((64, 32, 4, 2), (32, 32, 4, 2), (32, 32, 4, 1)),
    512: ((32, 32, 8, 2), (32, 16, 8, 2), (32, 16, 8, 2)),  # fits 99 kB, what some GPUs have
}
# A context that fits one tile: its positions, the columns of a head, those of a chunk, and launch.
LONGEST, NARROWEST, LONGEST_CHUNK = 128, 129, 64
TILE_LAUNCH = {"num_warps": 8, "num_stages": 2}

Tile = tuple[int, int, int, int]


@triton.jit
def _seen(scores, query, key, positions, CAUSAL: tl.constexpr, MASKED: tl.constexpr):
    """-inf where a query may not look."""
    if MASKED:
        seen = (key < positions)[None, :]
        if CAUSAL:
            seen &= query[:, None] >= key[None, :]
        scores = tl.where(seen, scores, float("-inf"))
    return scores


@triton.jit(do_not_specialize=HEAD_SIZES)
def _forward(
    qk, qkv, out, log_sums, scale, positions, heads, groups, head_dim, half, read_heads,
    CAUSAL: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    blocks = tl.cdiv(positions, QUERIES)
    each = tl.program_id(0) // blocks
    block = blocks - 1 - tl.program_id(0) % blocks  # longest first
    batch, head = (each // heads).to(tl.int64), each % heads
    start = block * QUERIES
    query = start + tl.arange(0, QUERIES)
    shared = heads + head // (heads // groups)
    read, stride = read_heads * head_dim, (heads + 2 * groups) * head_dim
    qk += batch * positions * read
    qkv += batch * positions * stride
    keys, values = qk + shared * head_dim, qkv + (shared + groups) * head_dim
    q_a, q_b = load_head(qk + head * head_dim, query, positions, read, head_dim, half, A, B)
    largest = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    mixed_a, mixed_b = empty_head(QUERIES, A, B)
    end = tl.minimum(positions, start + QUERIES) if CAUSAL else positions
    whole = (start if CAUSAL else positions) // KEYS * KEYS  # all queries see these keys
    scale *= LOG2_E
    for MASKED in tl.static_range(2):
        for first in range(whole if MASKED else 0, end if MASKED else whole, KEYS):
            key = first + tl.arange(0, KEYS)
            k_a, k_b = load_head(keys, key, positions, read, head_dim, half, A, B)
            v_a, v_b = load_head(values, key, positions, stride, head_dim, half, A, B)
            scores = products(q_a, q_b, k_a, k_b, B)
            scores = _seen(scores, query, key, positions, CAUSAL, MASKED)
            larger = tl.maximum(largest, tl.max(scores, 1) * scale)
            powers = tl.exp2(scores * scale - larger[:, None])
            shrink = tl.exp2(largest - larger)
            total = total * shrink + tl.sum(powers, 1)
            mixed_a *= shrink[:, None]
            if B > 0:
                mixed_b *= shrink[:, None]
            mixed_a, mixed_b = added(mixed_a, mixed_b, powers.to(v_a.dtype), v_a, v_b, B)
            largest = larger
    store_head(
        out + batch * positions * heads * head_dim, None, head * head_dim,
        mixed_a / total[:, None], mixed_b / total[:, None],
        query, positions, heads * head_dim, head_dim, half, A, B,
    )  # fmt: skip
    log_sums += each.to(tl.int64) * positions
    tl.store(log_sums + query, largest + tl.log2(total), query < positions)


@triton.jit(do_not_specialize=HEAD_SIZES)
def _query_backward(
    qk, qkv, out, log_sums, d_out, d_qkv, levels, sums, scale,
    positions, heads, groups, head_dim, half, read_heads,
    CAUSAL: tl.constexpr, OWN: tl.constexpr, OTHER: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """The gradient of a tile of queries; also each query's level, the sum of d_out out."""
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    blocks = tl.cdiv(positions, OWN)
    each = tl.program_id(0) // blocks
    block = blocks - 1 - tl.program_id(0) % blocks  # longest first
    batch, head = (each // heads).to(tl.int64), each % heads
    start = block * OWN
    query = start + tl.arange(0, OWN)
    shared = heads + head // (heads // groups)
    read, stride, inner = read_heads * head_dim, (heads + 2 * groups) * head_dim, heads * head_dim
    qk += batch * positions * read
    qkv += batch * positions * stride
    keys, values = qk + shared * head_dim, qkv + (shared + groups) * head_dim
    own = batch * positions * inner + head * head_dim
    q_a, q_b = load_head(qk + head * head_dim, query, positions, read, head_dim, half, A, B)
    y_a, y_b = load_head(out + own, query, positions, inner, head_dim, half, A, B)
    dy_a, dy_b = load_head(d_out + own, query, positions, inner, head_dim, half, A, B)
    level = tl.sum(y_a.to(tl.float32) * dy_a, 1)
    if B > 0:
        level += tl.sum(y_b.to(tl.float32) * dy_b, 1)
    at = each.to(tl.int64) * positions + query
    tl.store(levels + at, level, query < positions)
    log_sum = tl.load(log_sums + at, query < positions, 0.0)
    dq_a, dq_b = empty_head(OWN, A, B)
    end = tl.minimum(positions, start + OWN) if CAUSAL else positions
    whole = (start if CAUSAL else positions) // OTHER * OTHER
    for MASKED in tl.static_range(2):
        for first in range(whole if MASKED else 0, end if MASKED else whole, OTHER):
            key = first + tl.arange(0, OTHER)
            k_a, k_b = load_head(keys, key, positions, read, head_dim, half, A, B)
            v_a, v_b = load_head(values, key, positions, stride, head_dim, half, A, B)
            scores = products(q_a, q_b, k_a, k_b, B)
            scores = _seen(scores, query, key, positions, CAUSAL, MASKED)
            weights = tl.exp2(scores * (scale * LOG2_E) - log_sum[:, None])
            d_weights = products(dy_a, dy_b, v_a, v_b, B)
            d_scores = (weights * (d_weights - level[:, None])).to(k_a.dtype)
            dq_a, dq_b = added(dq_a, dq_b, d_scores, k_a, k_b, B)
    if sums is not None:
        sums += (batch * blocks + block) * stride
    store_head(
        d_qkv + batch * positions * stride, sums, head * head_dim, dq_a * scale, dq_b * scale,
        query, positions, stride, head_dim, half, A, B,
    )  # fmt: skip


@triton.jit(do_not_specialize=HEAD_SIZES)
def _key_backward(
    qk, qkv, log_sums, d_out, d_qkv, levels, sums, scale,
    positions, heads, groups, head_dim, half, read_heads,
    CAUSAL: tl.constexpr, OWN: tl.constexpr, OTHER: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """The gradients of a tile of keys and values, summed over the heads that share them."""
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    blocks = tl.cdiv(positions, OWN)
    each, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    batch, group = (each // groups).to(tl.int64), each % groups
    share, start = heads // groups, block * OWN
    key = start + tl.arange(0, OWN)
    read, stride, inner = read_heads * head_dim, (heads + 2 * groups) * head_dim, heads * head_dim
    key_at, value_at = (heads + group) * head_dim, (heads + groups + group) * head_dim
    qk += batch * positions * read
    qkv += batch * positions * stride
    d_out += batch * positions * inner
    k_a, k_b = load_head(qk + key_at, key, positions, read, head_dim, half, A, B)
    v_a, v_b = load_head(qkv + value_at, key, positions, stride, head_dim, half, A, B)
    dk_a, dk_b = empty_head(OWN, A, B)
    dv_a, dv_b = empty_head(OWN, A, B)
    own_end = tl.minimum(positions, start + OWN) if CAUSAL else 0
    for head in range(group * share, group * share + share):
        row = (batch * heads + head) * positions
        queries, d_mixed = qk + head * head_dim, d_out + head * head_dim
        # Causally, queries of the same tile do not see all of it. Beyond the end of the context
        # queries and gradients are zeros, which add nothing.
        for OTHERS in tl.static_range(0 if CAUSAL else 1, 2):
            for first in range(
                own_end if OTHERS else start, positions if OTHERS else own_end, OTHER
            ):
                at = first + tl.arange(0, OTHER)
                q_a, q_b = load_head(queries, at, positions, read, head_dim, half, A, B)
                dy_a, dy_b = load_head(d_mixed, at, positions, inner, head_dim, half, A, B)
                log_sum = tl.load(log_sums + row + at, at < positions, 0.0)
                level = tl.load(levels + row + at, at < positions, 0.0)
                scores = products(k_a, k_b, q_a, q_b, B)
                weights = tl.exp2(scores * (scale * LOG2_E) - log_sum[None, :])
                if not OTHERS:
                    weights = tl.where(at[None, :] >= key[:, None], weights, 0.0)
                dv_a, dv_b = added(dv_a, dv_b, weights.to(k_a.dtype), dy_a, dy_b, B)
                d_weights = products(v_a, v_b, dy_a, dy_b, B)
                d_scores = (weights * (d_weights - level[None, :])).to(k_a.dtype)
                dk_a, dk_b = added(dk_a, dk_b, d_scores, q_a, q_b, B)
    if sums is not None:
        sums += (batch * blocks + block) * stride
    d_qkv += batch * positions * stride
    store_head(
        d_qkv, sums, key_at, dk_a * scale, dk_b * scale,
        key, positions, stride, head_dim, half, A, B,
    )  # fmt: skip
    store_head(d_qkv, sums, value_at, dv_a, dv_b, key, positions, stride, head_dim, half, A, B)


@triton.jit
def _store_columns(rows, sums, values, row, column, positions, head_dim, stride):
    """Write some columns, and if asked their sums: a program's share of the gradient of a bias.

    Rows beyond the context are zeros.
    """
    inside = (row < positions)[:, None] & (column < head_dim)[None, :]
    tl.store(rows + row[:, None] * stride + column[None, :], values, inside)
    if sums is not None:
        tl.store(sums + column, tl.sum(values, 0), column < head_dim)


@triton.jit(do_not_specialize=HEAD_SIZES)
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


def _tiles(shape: HeadShape) -> tuple[Tile, Tile, Tile]:
    columns = sum(cut(shape.head_dim))
    return next(tiles for most, tiles in TILES.items() if most >= columns)


def _fits_one_tile(shape: HeadShape) -> bool:
    """Whether one kernel makes all gradients; not of heads that share keys and values."""
    is_wide = shape.head_dim >= NARROWEST
    return is_wide and shape.positions <= LONGEST and shape.groups == shape.heads


def gradient_tiles(shape: HeadShape, batch: int) -> int:
    """Tiles of rows backwards, each with a share of the bias's gradient."""
    rows = shape.positions if _fits_one_tile(shape) else _tiles(shape)[1][0]
    return int(batch * triton.cdiv(shape.positions, rows))


class _FusedAttention(torch.autograd.Function):
    """The output, and for the way back log2 of the sum of each query's powers."""

    @staticmethod
    def forward(ctx, qkv_BNHK, bias, angles, query_weight, key_weight, scale, shape):
        qk_BNHK = qkv_BNHK = qkv_BNHK.contiguous()
        turn = None if angles is None else Turn(angles, query_weight, key_weight)
        if turn is not None:
            qk_BNHK = turned_heads(qkv_BNHK, turn, shape)
        batch, (queries, keys, warps, stages) = len(qkv_BNHK), _tiles(shape)[0]
        out = qkv_BNHK.new_empty(batch, shape.positions, shape.heads, shape.head_dim)
        log_sums = out.new_empty(batch, shape.heads, shape.positions, dtype=torch.float32)
        _forward[(triton.cdiv(shape.positions, queries) * batch * shape.heads,)](
            qk_BNHK, qkv_BNHK, out, log_sums, scale, **shape.tile(is_halved=False),
            read_heads=qk_BNHK.shape[2], CAUSAL=shape.is_causal, QUERIES=queries, KEYS=keys,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
        ctx.save_for_backward(qkv_BNHK, qk_BNHK, out, log_sums)
        ctx.scale, ctx.shape, ctx.turn = scale, shape, turn
        ctx.shares = [getattr(weight, "shares", None) for weight in (bias, query_weight)]
        return out

    @staticmethod
    def backward(ctx, d_out):
        """The gradient of what was read, like `qkv`; that of a bias is the sum of its columns."""
        qkv_BNHK, qk_BNHK, out, log_sums = ctx.saved_tensors
        d_out, shape, batch = d_out.contiguous(), ctx.shape, len(out)
        for_bias, for_norms = ctx.shares
        d_qkv, sums = torch.empty_like(qkv_BNHK), for_bias
        if shape.has_bias and sums is None:
            tiles = gradient_tiles(shape, batch)
            sums = qkv_BNHK.new_empty(tiles, *qkv_BNHK.shape[2:], dtype=torch.float32)
        sizes = {"read_heads": qk_BNHK.shape[2], "CAUSAL": shape.is_causal}
        if _fits_one_tile(shape):
            _tile_backward[(batch * shape.heads,)](
                qk_BNHK, qkv_BNHK, log_sums, d_out, d_qkv, sums, ctx.scale,
                shape.positions, shape.heads, shape.head_dim, **sizes,
                BLOCK=power_of_two(16, shape.positions),
                CHUNK=min(LONGEST_CHUNK, power_of_two(16, shape.head_dim)),
                ALIGN=alignment(shape.head_dim), **TILE_LAUNCH,
            )  # fmt: skip
        else:
            _, (own, keys, *query_launch), (_, queries, *key_launch) = _tiles(shape)
            blocks, levels = triton.cdiv(shape.positions, own), torch.empty_like(log_sums)
            sizes |= shape.tile(is_halved=False)
            _query_backward[(blocks * batch * shape.heads,)](
                qk_BNHK, qkv_BNHK, out, log_sums, d_out, d_qkv, levels, sums, ctx.scale, **sizes,
                OWN=own, OTHER=keys, num_warps=query_launch[0], num_stages=query_launch[1],
            )  # fmt: skip
            _key_backward[(blocks * batch * shape.groups,)](
                qk_BNHK, qkv_BNHK, log_sums, d_out, d_qkv, levels, sums, ctx.scale, **sizes,
                OWN=own, OTHER=queries, num_warps=key_launch[0], num_stages=key_launch[1],
            )  # fmt: skip
        d_bias = None if sums is for_bias else share_sums(sums).flatten()
        sums = for_norms
        if ctx.turn is not None:
            sums = turn_back(d_qkv, qkv_BNHK, ctx.turn, shape, for_norms)
        d_norms = (None, None) if sums is for_norms else share_sums(sums)
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
    sizes = positions, heads, (all_heads - heads) // 2, head_dim, true_head_dim
    shape = HeadShape(*sizes, is_causal, bias is not None)
    return _FusedAttention.apply(qkv_BNHK, bias, *(turn or (None,) * 3), scale, shape)
