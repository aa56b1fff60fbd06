"""Triton kernels of attention over contexts of any length (Dao 2023, arXiv:2307.08691).

Torch copies queries, keys and values into other layouts; here they are read where the projection
left them. Scores are made tile by tile and never stored. Backwards there are two kernels, one that
gathers the gradient of queries and one that gathers those of keys and values, so that each number
has one writer and a sum always has the same order.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.head_tiles import (
    LOG2_E,
    SIZES,
    HeadShape,
    added,
    empty_head,
    load_head,
    products,
    store_head,
)
from archfit.model.tile_attention_kernels import fits_one_tile, tile_backward

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
FORWARDS, QUERIES_BACK, KEYS_BACK = range(3)


@triton.jit
@no_type_check
def _seen(scores, query, key, positions, CAUSAL: tl.constexpr, MASKED: tl.constexpr):
    """-inf where a query may not look."""
    if MASKED:
        seen = (key < positions)[None, :]
        if CAUSAL:
            seen &= query[:, None] >= key[None, :]
        scores = tl.where(seen, scores, float("-inf"))
    return scores


@triton.jit
@no_type_check
def _mixed_in(
    largest, total, mixed_a, mixed_b, q_a, q_b, keys, values, key_stride, value_stride,
    query, start, end, positions, head_dim, half, scale,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, KEYS: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """The softmax so far, with the keys from `start` to `end` mixed in."""
    for first in range(start, end, KEYS):
        key = first + tl.arange(0, KEYS)
        k_a, k_b = load_head(keys, key, positions, key_stride, head_dim, half, A, B)
        v_a, v_b = load_head(values, key, positions, value_stride, head_dim, half, A, B)
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
    return largest, total, mixed_a, mixed_b


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _attention_forward(
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
    key = heads + head // (heads // groups)
    read, stride = read_heads * head_dim, (heads + 2 * groups) * head_dim
    qk += batch * positions * read
    qkv += batch * positions * stride
    keys, values = qk + key * head_dim, qkv + (key + groups) * head_dim
    q_a, q_b = load_head(qk + head * head_dim, query, positions, read, head_dim, half, A, B)
    largest = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    mixed_a, mixed_b = empty_head(QUERIES, A, B)
    end = tl.minimum(positions, start + QUERIES) if CAUSAL else positions
    whole = (start if CAUSAL else positions) // KEYS * KEYS  # all queries see these keys
    largest, total, mixed_a, mixed_b = _mixed_in(
        largest, total, mixed_a, mixed_b, q_a, q_b, keys, values, read, stride,
        query, 0, whole, positions, head_dim, half, scale * LOG2_E, CAUSAL, False, KEYS, A, B,
    )  # fmt: skip
    largest, total, mixed_a, mixed_b = _mixed_in(
        largest, total, mixed_a, mixed_b, q_a, q_b, keys, values, read, stride,
        query, whole, end, positions, head_dim, half, scale * LOG2_E, CAUSAL, True, KEYS, A, B,
    )  # fmt: skip
    store_head(
        out + batch * positions * heads * head_dim, None, head * head_dim,
        mixed_a / total[:, None], mixed_b / total[:, None],
        query, positions, heads * head_dim, head_dim, half, A, B,
    )  # fmt: skip
    log_sums += each.to(tl.int64) * positions
    tl.store(log_sums + query, largest + tl.log2(total), query < positions)


@triton.jit
@no_type_check
def _query_gradient(
    dq_a, dq_b, q_a, q_b, dy_a, dy_b, log_sum, level, keys, values, key_stride, value_stride,
    query, start, end, positions, head_dim, half, scale,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, OTHER: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """The gradient of queries so far, with that through the keys from `start` to `end`."""
    for first in range(start, end, OTHER):
        key = first + tl.arange(0, OTHER)
        k_a, k_b = load_head(keys, key, positions, key_stride, head_dim, half, A, B)
        v_a, v_b = load_head(values, key, positions, value_stride, head_dim, half, A, B)
        scores = products(q_a, q_b, k_a, k_b, B)
        scores = _seen(scores, query, key, positions, CAUSAL, MASKED)
        weights = tl.exp2(scores * (scale * LOG2_E) - log_sum[:, None])
        d_weights = products(dy_a, dy_b, v_a, v_b, B)
        d_scores = (weights * (d_weights - level[:, None])).to(k_a.dtype)
        dq_a, dq_b = added(dq_a, dq_b, d_scores, k_a, k_b, B)
    return dq_a, dq_b


@triton.jit(do_not_specialize=SIZES)
@no_type_check
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
    key = heads + head // (heads // groups)
    read, stride, inner = read_heads * head_dim, (heads + 2 * groups) * head_dim, heads * head_dim
    qk += batch * positions * read
    qkv += batch * positions * stride
    keys, values = qk + key * head_dim, qkv + (key + groups) * head_dim
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
    dq_a, dq_b = _query_gradient(
        dq_a, dq_b, q_a, q_b, dy_a, dy_b, log_sum, level, keys, values, read, stride,
        query, 0, whole, positions, head_dim, half, scale, CAUSAL, False, OTHER, A, B,
    )  # fmt: skip
    dq_a, dq_b = _query_gradient(
        dq_a, dq_b, q_a, q_b, dy_a, dy_b, log_sum, level, keys, values, read, stride,
        query, whole, end, positions, head_dim, half, scale, CAUSAL, True, OTHER, A, B,
    )  # fmt: skip
    if sums is not None:
        sums += (batch * blocks + block) * stride
    store_head(
        d_qkv + batch * positions * stride, sums, head * head_dim, dq_a * scale, dq_b * scale,
        query, positions, stride, head_dim, half, A, B,
    )  # fmt: skip


@triton.jit
@no_type_check
def _key_gradient(
    dk_a, dk_b, dv_a, dv_b, k_a, k_b, v_a, v_b, queries, d_mixed, log_sums, levels,
    query_stride, mixed_stride, key, start, end, positions, head_dim, half, scale,
    MASKED: tl.constexpr, OTHER: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """The gradients of keys and values so far, with those through queries from `start` to `end`.

    Beyond the end of the context queries and gradients are zeros, which add nothing.
    """
    for first in range(start, end, OTHER):
        at = first + tl.arange(0, OTHER)
        q_a, q_b = load_head(queries, at, positions, query_stride, head_dim, half, A, B)
        dy_a, dy_b = load_head(d_mixed, at, positions, mixed_stride, head_dim, half, A, B)
        log_sum = tl.load(log_sums + at, at < positions, 0.0)
        level = tl.load(levels + at, at < positions, 0.0)
        scores = products(k_a, k_b, q_a, q_b, B)
        weights = tl.exp2(scores * (scale * LOG2_E) - log_sum[None, :])
        if MASKED:
            weights = tl.where(at[None, :] >= key[:, None], weights, 0.0)
        dv_a, dv_b = added(dv_a, dv_b, weights.to(k_a.dtype), dy_a, dy_b, B)
        d_weights = products(v_a, v_b, dy_a, dy_b, B)
        d_scores = (weights * (d_weights - level[None, :])).to(k_a.dtype)
        dk_a, dk_b = added(dk_a, dk_b, d_scores, q_a, q_b, B)
    return dk_a, dk_b, dv_a, dv_b


@triton.jit(do_not_specialize=SIZES)
@no_type_check
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
        if CAUSAL:  # queries of the same tile do not see all of it
            dk_a, dk_b, dv_a, dv_b = _key_gradient(
                dk_a, dk_b, dv_a, dv_b, k_a, k_b, v_a, v_b, queries, d_mixed,
                log_sums + row, levels + row, read, inner, key, start, own_end,
                positions, head_dim, half, scale, True, OTHER, A, B,
            )  # fmt: skip
        dk_a, dk_b, dv_a, dv_b = _key_gradient(
            dk_a, dk_b, dv_a, dv_b, k_a, k_b, v_a, v_b, queries, d_mixed,
            log_sums + row, levels + row, read, inner, key, own_end, positions,
            positions, head_dim, half, scale, False, OTHER, A, B,
        )  # fmt: skip
    if sums is not None:
        sums += (batch * blocks + block) * stride
    d_qkv += batch * positions * stride
    store_head(
        d_qkv, sums, key_at, dk_a * scale, dk_b * scale,
        key, positions, stride, head_dim, half, A, B,
    )  # fmt: skip
    store_head(d_qkv, sums, value_at, dv_a, dv_b, key, positions, stride, head_dim, half, A, B)


def _tile(shape: HeadShape, kernel: int) -> tuple[int, int, dict[str, int]]:
    """Rows and others of a tile, and how it is launched."""
    known = next(tiles for columns, tiles in TILES.items() if columns >= shape.columns)
    own, other, warps, stages = known[kernel]
    return own, other, {"num_warps": warps, "num_stages": stages}


def gradient_tiles(shape: HeadShape, batch: int) -> int:
    """Tiles of rows backwards, each with a share of the bias's gradient."""
    rows = shape.positions if fits_one_tile(shape) else _tile(shape, QUERIES_BACK)[0]
    return int(batch * triton.cdiv(shape.positions, rows))


def attention_forward(
    qk_BNHK: Tensor, qkv_BNHK: Tensor, scale: float, shape: HeadShape
) -> tuple[Tensor, Tensor]:
    """Attention's output, and log2 of the sum of each query's powers; queries and keys are read
    from `qk`, which may be `qkv`."""
    batch = len(qkv_BNHK)
    out = qkv_BNHK.new_empty(batch, shape.positions, shape.heads, shape.head_dim)
    log_sums = out.new_empty(batch, shape.heads, shape.positions, dtype=torch.float32)
    queries, keys, launch = _tile(shape, FORWARDS)
    _attention_forward[(triton.cdiv(shape.positions, queries) * batch * shape.heads,)](
        qk_BNHK, qkv_BNHK, out, log_sums, scale, **shape.tile(is_halved=False),
        read_heads=qk_BNHK.shape[2], CAUSAL=shape.is_causal, QUERIES=queries, KEYS=keys, **launch,
    )  # fmt: skip
    return out, log_sums


def attention_backward(
    qk_BNHK: Tensor,
    qkv_BNHK: Tensor,
    made: tuple[Tensor, Tensor],
    d_out: Tensor,
    scale: float,
    shape: HeadShape,
    shares: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """The gradient of what was read, like `qkv`, and if that has a bias the sums of its columns
    over each tile of rows, in their place where there is one. `made` is what came out."""
    (out, log_sums), batch, sums = made, len(qkv_BNHK), shares
    if shape.has_bias and shares is None:
        tiles = gradient_tiles(shape, batch)
        sums = qkv_BNHK.new_empty(tiles, *qkv_BNHK.shape[2:], dtype=torch.float32)
    if fits_one_tile(shape):
        return tile_backward(qk_BNHK, qkv_BNHK, log_sums, d_out, scale, shape, sums), sums
    own, other, launch = _tile(shape, QUERIES_BACK)
    blocks = triton.cdiv(shape.positions, own)
    d_qkv, levels = torch.empty_like(qkv_BNHK), torch.empty_like(log_sums)
    sizes = {**shape.tile(is_halved=False), "read_heads": qk_BNHK.shape[2]}
    sizes |= {"CAUSAL": shape.is_causal, "OWN": own}
    _query_backward[(blocks * batch * shape.heads,)](
        qk_BNHK, qkv_BNHK, out, log_sums, d_out, d_qkv, levels, sums, scale,
        **sizes, OTHER=other, **launch,
    )  # fmt: skip
    _, other, launch = _tile(shape, KEYS_BACK)
    _key_backward[(blocks * batch * shape.groups,)](
        qk_BNHK, qkv_BNHK, log_sums, d_out, d_qkv, levels, sums, scale,
        **sizes, OTHER=other, **launch,
    )  # fmt: skip
    return d_qkv, sums
