"""Triton kernels of attention over contexts of any length (Dao 2023, arXiv:2307.08691).

Scores are made tile by tile and never stored. Backwards there are two kernels, one that gathers the
gradient of queries and one that gathers those of keys and values, so that each number has one
writer and a sum always has the same order.

Queries and keys that are to be turned are turned once, into a copy: every tile of keys is read by
many programs.
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

LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
TURNED_ROWS = 32
# Queries and keys of a tile forwards, own rows and others of one backwards, and warps of both, for
# halves of a head of at most so many columns.
TILES = {
    32: ((128, 64, 4), (128, 64, 8)),
    64: ((128, 64, 8), (128, 32, 8)),
    128: ((64, 64, 8), (64, 32, 8)),
    256: ((32, 32, 8), (32, 32, 8)),
}


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _turn(
    qkv, angles, out, positions, heads, groups, head_dim, half, sine,
    BLOCK: tl.constexpr, HALF: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    sine = sine // ALIGN * ALIGN
    blocks = tl.cdiv(positions, BLOCK)
    row = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    each = tl.program_id(0) // blocks
    batch, head = (each // (heads + groups)).to(tl.int64), each % (heads + groups) * head_dim
    stride, out_stride = (heads + 2 * groups) * head_dim, (heads + groups) * head_dim
    qkv += batch * positions * stride + head
    a, b = load_halves(qkv, row, positions, stride, head_dim, half, HALF)
    a, b = turned(a, b, angles, row, positions, half, sine, HALF, False)
    out += batch * positions * out_stride
    store_halves(out, None, head, a, b, row, positions, out_stride, head_dim, half, HALF)


@triton.jit
@no_type_check
def _scores(q_a, q_b, k_a, k_b, query, key, positions, CAUSAL: tl.constexpr, MASKED: tl.constexpr):
    """q k^T, -inf where a query may not look."""
    scores = tl.dot(q_b, tl.trans(k_b), tl.dot(q_a, tl.trans(k_a)))
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
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, KEYS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """The softmax so far, with the keys from `start` to `end` mixed in."""
    for first in range(start, end, KEYS):
        key = first + tl.arange(0, KEYS)
        k_a, k_b = load_halves(keys, key, positions, key_stride, head_dim, half, HALF)
        v_a, v_b = load_halves(values, key, positions, value_stride, head_dim, half, HALF)
        scores = _scores(q_a, q_b, k_a, k_b, query, key, positions, CAUSAL, MASKED)
        larger = tl.maximum(largest, tl.max(scores, 1) * scale)
        powers = tl.exp2(scores * scale - larger[:, None])
        shrink = tl.exp2(largest - larger)
        total = total * shrink + tl.sum(powers, 1)
        narrow = powers.to(v_a.dtype)
        mixed_a = tl.dot(narrow, v_a, mixed_a * shrink[:, None])
        mixed_b = tl.dot(narrow, v_b, mixed_b * shrink[:, None])
        largest = larger
    return largest, total, mixed_a, mixed_b


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _long_forward(
    qk, qkv, out, log_sums, scale, positions, heads, groups, head_dim, half, read_heads,
    CAUSAL: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, HALF: tl.constexpr,
    ALIGN: tl.constexpr,
):  # fmt: skip
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    blocks = tl.cdiv(positions, QUERIES)
    each, block = (
        tl.program_id(0) // blocks,
        blocks - 1 - tl.program_id(0) % blocks,
    )  # longest first
    batch, head = (each // heads).to(tl.int64), each % heads
    start = block * QUERIES
    query = start + tl.arange(0, QUERIES)
    key = heads + head // (heads // groups)
    read, stride = read_heads * head_dim, (heads + 2 * groups) * head_dim
    qk += batch * positions * read
    qkv += batch * positions * stride
    keys, values = qk + key * head_dim, qkv + (key + groups) * head_dim
    q_a, q_b = load_halves(qk + head * head_dim, query, positions, read, head_dim, half, HALF)
    largest = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    mixed_a = tl.zeros((QUERIES, HALF), tl.float32)
    mixed_b = tl.zeros((QUERIES, HALF), tl.float32)
    end = tl.minimum(positions, start + QUERIES) if CAUSAL else positions
    whole = (start if CAUSAL else positions) // KEYS * KEYS  # all queries see these keys
    largest, total, mixed_a, mixed_b = _mixed_in(
        largest, total, mixed_a, mixed_b, q_a, q_b, keys, values, read, stride,
        query, 0, whole, positions, head_dim, half, scale * LOG2_E, CAUSAL, False, KEYS, HALF,
    )  # fmt: skip
    largest, total, mixed_a, mixed_b = _mixed_in(
        largest, total, mixed_a, mixed_b, q_a, q_b, keys, values, read, stride,
        query, whole, end, positions, head_dim, half, scale * LOG2_E, CAUSAL, True, KEYS, HALF,
    )  # fmt: skip
    store_halves(
        out + batch * positions * heads * head_dim, None, head * head_dim,
        mixed_a / total[:, None], mixed_b / total[:, None],
        query, positions, heads * head_dim, head_dim, half, HALF,
    )  # fmt: skip
    log_sums += each.to(tl.int64) * positions
    tl.store(log_sums + query, largest + tl.log2(total), query < positions)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _query_backward(
    qk, qkv, angles, out, log_sums, d_out, d_qkv, levels, sums, scale,
    positions, heads, groups, head_dim, half, read_heads, sine,
    CAUSAL: tl.constexpr, OWN: tl.constexpr, OTHER: tl.constexpr, HALF: tl.constexpr,
    ALIGN: tl.constexpr,
):  # fmt: skip
    """The gradient of a tile of queries; also each query's level, the sum of d_out out."""
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    sine = sine // ALIGN * ALIGN
    blocks = tl.cdiv(positions, OWN)
    each, block = (
        tl.program_id(0) // blocks,
        blocks - 1 - tl.program_id(0) % blocks,
    )  # longest first
    batch, head = (each // heads).to(tl.int64), each % heads
    query = block * OWN + tl.arange(0, OWN)
    key = heads + head // (heads // groups)
    read, stride, inner = read_heads * head_dim, (heads + 2 * groups) * head_dim, heads * head_dim
    qk += batch * positions * read
    qkv += batch * positions * stride
    keys, values = qk + key * head_dim, qkv + (key + groups) * head_dim
    own = batch * positions * inner + head * head_dim
    q_a, q_b = load_halves(qk + head * head_dim, query, positions, read, head_dim, half, HALF)
    y_a, y_b = load_halves(out + own, query, positions, inner, head_dim, half, HALF)
    dy_a, dy_b = load_halves(d_out + own, query, positions, inner, head_dim, half, HALF)
    level = tl.sum(y_a.to(tl.float32) * dy_a, 1) + tl.sum(y_b.to(tl.float32) * dy_b, 1)
    at = each.to(tl.int64) * positions + query
    tl.store(levels + at, level, query < positions)
    log_sum = tl.load(log_sums + at, query < positions, 0.0)
    dq_a, dq_b = tl.zeros((OWN, HALF), tl.float32), tl.zeros((OWN, HALF), tl.float32)
    end = tl.minimum(positions, block * OWN + OWN) if CAUSAL else positions
    for first in range(0, end, OTHER):
        other = first + tl.arange(0, OTHER)
        k_a, k_b = load_halves(keys, other, positions, read, head_dim, half, HALF)
        v_a, v_b = load_halves(values, other, positions, stride, head_dim, half, HALF)
        scores = _scores(q_a, q_b, k_a, k_b, query, other, positions, CAUSAL, True)
        weights = tl.exp2(scores * (scale * LOG2_E) - log_sum[:, None])
        d_weights = tl.dot(dy_b, tl.trans(v_b), tl.dot(dy_a, tl.trans(v_a)))
        d_scores = (weights * (d_weights - level[:, None])).to(k_a.dtype)
        dq_a, dq_b = tl.dot(d_scores, k_a, dq_a), tl.dot(d_scores, k_b, dq_b)
    dq_a, dq_b = turned(
        dq_a * scale, dq_b * scale, angles, query, positions, half, sine, HALF, True
    )
    if sums is not None:
        sums += (batch * blocks + block) * stride
    store_halves(
        d_qkv + batch * positions * stride, sums, head * head_dim, dq_a, dq_b,
        query, positions, stride, head_dim, half, HALF,
    )  # fmt: skip


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _key_backward(
    qk, qkv, angles, log_sums, d_out, d_qkv, levels, sums, scale,
    positions, heads, groups, head_dim, half, read_heads, sine,
    CAUSAL: tl.constexpr, OWN: tl.constexpr, OTHER: tl.constexpr, HALF: tl.constexpr,
    ALIGN: tl.constexpr,
):  # fmt: skip
    """The gradients of a tile of keys and values, summed over the heads that share them."""
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    sine = sine // ALIGN * ALIGN
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
    k_a, k_b = load_halves(qk + key_at, key, positions, read, head_dim, half, HALF)
    v_a, v_b = load_halves(qkv + value_at, key, positions, stride, head_dim, half, HALF)
    dk_a, dk_b = tl.zeros((OWN, HALF), tl.float32), tl.zeros((OWN, HALF), tl.float32)
    dv_a, dv_b = tl.zeros((OWN, HALF), tl.float32), tl.zeros((OWN, HALF), tl.float32)
    for head in range(group * share, group * share + share):
        row = (batch * heads + head) * positions
        for first in range(start // OTHER * OTHER if CAUSAL else 0, positions, OTHER):
            at = first + tl.arange(0, OTHER)
            q_a, q_b = load_halves(qk + head * head_dim, at, positions, read, head_dim, half, HALF)
            dy_a, dy_b = load_halves(
                d_out + head * head_dim, at, positions, inner, head_dim, half, HALF
            )
            log_sum = tl.load(log_sums + row + at, at < positions, 0.0)
            level = tl.load(levels + row + at, at < positions, 0.0)
            scores = tl.dot(k_b, tl.trans(q_b), tl.dot(k_a, tl.trans(q_a)))
            weights = tl.exp2(scores * (scale * LOG2_E) - log_sum[None, :])
            if CAUSAL:
                weights = tl.where(at[None, :] >= key[:, None], weights, 0.0)
            narrow = weights.to(k_a.dtype)
            dv_a, dv_b = tl.dot(narrow, dy_a, dv_a), tl.dot(narrow, dy_b, dv_b)
            d_weights = tl.dot(v_b, tl.trans(dy_b), tl.dot(v_a, tl.trans(dy_a)))
            d_scores = (weights * (d_weights - level[None, :])).to(k_a.dtype)
            dk_a, dk_b = tl.dot(d_scores, q_a, dk_a), tl.dot(d_scores, q_b, dk_b)
    dk_a, dk_b = turned(dk_a * scale, dk_b * scale, angles, key, positions, half, sine, HALF, True)
    if sums is not None:
        sums += (batch * blocks + block) * stride
    d_qkv += batch * positions * stride
    store_halves(d_qkv, sums, key_at, dk_a, dk_b, key, positions, stride, head_dim, half, HALF)
    store_halves(d_qkv, sums, value_at, dv_a, dv_b, key, positions, stride, head_dim, half, HALF)


def _turned_copy(qkv_BNHK: Tensor, angles: Tensor, shape: HeadShape) -> Tensor:
    """Queries and keys turned by their positions."""
    batch, heads = len(qkv_BNHK), shape.heads + shape.groups
    out = qkv_BNHK.new_empty(batch, shape.positions, heads, shape.head_dim)
    _turn[(triton.cdiv(shape.positions, TURNED_ROWS) * batch * heads,)](
        qkv_BNHK, angles, out, **shape.sizes, sine=angles.stride(0), BLOCK=TURNED_ROWS, **shape.tile
    )
    return out


def _tile(shape: HeadShape, *, forwards: bool) -> tuple[int, int, int]:
    return TILES[max(32, shape.half_tile)][0 if forwards else 1]


def long_forward(
    qkv_BNHK: Tensor, angles: Tensor | None, scale: float, shape: HeadShape
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention's output, and what backwards also needs: turned queries and keys (`qkv` where
    nothing is turned), and log2 of the sum of each query's powers."""
    batch = len(qkv_BNHK)
    qk_BNHK = qkv_BNHK if angles is None else _turned_copy(qkv_BNHK, angles, shape)
    out = qkv_BNHK.new_empty(batch, shape.positions, shape.heads, shape.head_dim)
    log_sums = out.new_empty(batch, shape.heads, shape.positions, dtype=torch.float32)
    queries, keys, warps = _tile(shape, forwards=True)
    _long_forward[(triton.cdiv(shape.positions, queries) * batch * shape.heads,)](
        qk_BNHK, qkv_BNHK, out, log_sums, scale, **shape.sizes, read_heads=qk_BNHK.shape[2],
        CAUSAL=shape.is_causal, QUERIES=queries, KEYS=keys, **shape.tile, num_warps=warps,
        num_stages=2,
    )  # fmt: skip
    return out, qk_BNHK, log_sums


def long_backward(
    qkv_BNHK: Tensor,
    angles: Tensor | None,
    kept: tuple[Tensor, ...],
    d_out: Tensor,
    scale: float,
    shape: HeadShape,
) -> tuple[Tensor, Tensor | None]:
    """The gradient of `qkv`, and the sums of its columns over each tile of rows."""
    out, qk_BNHK, log_sums = kept
    batch, (own, other, warps) = len(qkv_BNHK), _tile(shape, forwards=False)
    blocks = triton.cdiv(shape.positions, own)
    d_qkv, levels = torch.empty_like(qkv_BNHK), torch.empty_like(log_sums)
    sums = shape.column_sums(d_qkv, batch * blocks)
    sizes = {**shape.sizes, "read_heads": qk_BNHK.shape[2]}
    sizes["sine"] = 0 if angles is None else angles.stride(0)
    tile = {**shape.tile, "CAUSAL": shape.is_causal, "OWN": own, "OTHER": other}
    rest = {**sizes, **tile, "num_warps": warps, "num_stages": 2}
    _query_backward[(blocks * batch * shape.heads,)](
        qk_BNHK, qkv_BNHK, angles, out, log_sums, d_out, d_qkv, levels, sums, scale, **rest
    )
    _key_backward[(blocks * batch * shape.groups,)](
        qk_BNHK, qkv_BNHK, angles, log_sums, d_out, d_qkv, levels, sums, scale, **rest
    )
    return d_qkv, sums
