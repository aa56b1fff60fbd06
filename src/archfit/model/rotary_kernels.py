"""Triton kernels that turn queries and keys by their positions, with norms of them if asked.

Each is turned once, into a copy, since every tile of keys is read by many programs; gradients are
turned back where they lie. Torch would take a dozen passes for norms, turns and their gradients.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.layers import NORM_EPSILON
from archfit.model.tiles import HEAD_SIZES, HeadShape, load_head, store_head

ROWS = 32


class Turn(NamedTuple):
    """What happens to queries and keys before they meet."""

    angles: Tensor  # cosines and sines
    query_weight: Tensor | None = None  # of norms, both or neither
    key_weight: Tensor | None = None


@triton.jit
def _unit(a, b, true_head_dim, epsilon):
    """Rows of size 1 in the mean square, and what they were multiplied by."""
    a, b = a.to(tl.float32), b.to(tl.float32)
    scale = tl.rsqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / true_head_dim + epsilon)
    return a * scale[:, None], b * scale[:, None], scale


@triton.jit
def _load_halves(vector, head_dim, half, A: tl.constexpr):
    column = tl.arange(0, A)
    a = tl.load(vector + column, column < half, 0.0)
    return a, tl.load(vector + half + column, column < head_dim - half, 0.0)


@triton.jit
def _turned(a, b, angles, row, positions, half, sine, A: tl.constexpr, BACK: tl.constexpr):
    """Both halves turned by the angles of their positions, or back."""
    column = tl.arange(0, A)
    at = angles + row[:, None] * half + column[None, :]
    inside = (row < positions)[:, None] & (column < half)[None, :]
    cos, sin = tl.load(at, inside, 0.0), tl.load(at + sine, inside, 0.0)
    if BACK:
        sin = -sin
    return a * cos - b * sin, b * cos + a * sin


@triton.jit(do_not_specialize=HEAD_SIZES)
def _turn(
    qkv, angles, query_weight, key_weight, out, epsilon, true_head_dim,
    positions, heads, groups, head_dim, half, sine,
    BLOCK: tl.constexpr, A: tl.constexpr, B: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    sine = sine // ALIGN * ALIGN
    blocks = tl.cdiv(positions, BLOCK)
    row = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    each = tl.program_id(0) // blocks
    batch, head = (each // (heads + groups)).to(tl.int64), each % (heads + groups)
    stride, out_stride = (heads + 2 * groups) * head_dim, (heads + groups) * head_dim
    qkv += batch * positions * stride + head * head_dim
    a, b = load_head(qkv, row, positions, stride, head_dim, half, A, B)
    if query_weight is not None:
        a, b, _ = _unit(a, b, true_head_dim, epsilon)
        of_query_a, of_query_b = _load_halves(query_weight, head_dim, half, A)
        of_key_a, of_key_b = _load_halves(key_weight, head_dim, half, A)
        a *= tl.where(head < heads, of_query_a, of_key_a)[None, :]
        b *= tl.where(head < heads, of_query_b, of_key_b)[None, :]
    a, b = _turned(a, b, angles, row, positions, half, sine, A, False)
    out += batch * positions * out_stride
    store_head(out, None, head * head_dim, a, b, row, positions, out_stride, head_dim, half, A, B)


@triton.jit
def _heads_back(
    d_qkv, qkv, angles, weight, sums, epsilon, true_head_dim, first, end, row,
    positions, stride, head_dim, half, sine, A: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Turn the gradients of some heads back, through their norm if there is one."""
    sum_a, sum_b = tl.zeros((A,), tl.float32), tl.zeros((B,), tl.float32)
    for head in range(first, end):
        at = head * head_dim
        d_a, d_b = load_head(d_qkv + at, row, positions, stride, head_dim, half, A, B)
        d_a, d_b = d_a.to(tl.float32), d_b.to(tl.float32)
        d_a, d_b = _turned(d_a, d_b, angles, row, positions, half, sine, A, True)
        if weight is not None:
            a, b = load_head(qkv + at, row, positions, stride, head_dim, half, A, B)
            a, b, scale = _unit(a, b, true_head_dim, epsilon)
            sum_a += tl.sum(d_a * a, 0)
            sum_b += tl.sum(d_b * b, 0)
            weight_a, weight_b = _load_halves(weight, head_dim, half, A)
            d_a, d_b = d_a * weight_a[None, :], d_b * weight_b[None, :]
            level = (tl.sum(d_a * a, 1) + tl.sum(d_b * b, 1)) / true_head_dim
            d_a = (d_a - a * level[:, None]) * scale[:, None]
            d_b = (d_b - b * level[:, None]) * scale[:, None]
        store_head(d_qkv, None, at, d_a, d_b, row, positions, stride, head_dim, half, A, B)
    if weight is not None:
        column = tl.arange(0, A)
        tl.store(sums + column, sum_a, column < half)
        tl.store(sums + half + column, sum_b, column < head_dim - half)


@triton.jit(do_not_specialize=HEAD_SIZES)
def _turn_back(
    d_qkv, qkv, angles, query_weight, key_weight, sums, epsilon, true_head_dim,
    positions, heads, groups, head_dim, half, sine,
    BLOCK: tl.constexpr, A: tl.constexpr, B: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """All heads of some rows; `sums`: a program's share of the gradients of both weights."""
    head_dim, half = head_dim // ALIGN * ALIGN, half // ALIGN * ALIGN
    sine = sine // ALIGN * ALIGN
    blocks = tl.cdiv(positions, BLOCK)
    row = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    stride = (heads + 2 * groups) * head_dim
    first = (tl.program_id(0) // blocks).to(tl.int64) * positions * stride
    d_qkv += first
    qkv += first
    if sums is not None:
        sums += tl.program_id(0) * 2 * head_dim
    _heads_back(
        d_qkv, qkv, angles, query_weight, sums, epsilon, true_head_dim, 0, heads, row,
        positions, stride, head_dim, half, sine, A, B,
    )  # fmt: skip
    if sums is not None:
        sums += head_dim
    _heads_back(
        d_qkv, qkv, angles, key_weight, sums, epsilon, true_head_dim, heads, heads + groups, row,
        positions, stride, head_dim, half, sine, A, B,
    )  # fmt: skip


def turn_tiles(shape: HeadShape, batch: int) -> int:
    """Tiles of rows, each with a share of the gradients of the norms' weights."""
    return int(batch * triton.cdiv(shape.positions, ROWS))


def turned_heads(qkv_BNHK: Tensor, turn: Turn, shape: HeadShape) -> Tensor:
    """Queries and keys, normed if asked and turned by their positions."""
    batch, heads = len(qkv_BNHK), shape.heads + shape.groups
    out = qkv_BNHK.new_empty(batch, shape.positions, heads, shape.head_dim)
    _turn[(turn_tiles(shape, batch) * heads,)](
        qkv_BNHK, *turn, out, NORM_EPSILON, shape.true_head_dim, **shape.tile(is_halved=True),
        sine=turn.angles.stride(0), BLOCK=ROWS,
    )  # fmt: skip
    return out


def turn_back(
    d_qkv_BNHK: Tensor, qkv_BNHK: Tensor, turn: Turn, shape: HeadShape, shares: Tensor | None
) -> Tensor | None:
    """Make the gradients of turned queries and keys those of `qkv`, in place; the shares of those
    of the norms' weights, in their place where there is one."""
    tiles, sums = turn_tiles(shape, len(qkv_BNHK)), shares
    if turn.query_weight is not None and shares is None:
        sums = qkv_BNHK.new_empty(tiles, 2, shape.head_dim, dtype=torch.float32)
    _turn_back[(tiles,)](
        d_qkv_BNHK, qkv_BNHK, *turn, sums, NORM_EPSILON, shape.true_head_dim,
        **shape.tile(is_halved=True), sine=turn.angles.stride(0), BLOCK=ROWS,
    )  # fmt: skip
    return sums
