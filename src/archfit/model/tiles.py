"""What the Triton kernels share: sizes of tiles, the hint that lets rows be read in vectors, how
the rows of a head, or of a narrow layer, are read and written.

A process trains hundreds of networks of different sizes, and compiling takes seconds. So widths,
heads and lengths are ordinary arguments that Triton does not specialise on (`do_not_specialize`);
only tiles, which are powers of two, and flags are compiled in.

Programs that sum the rows of a long matrix leave their shares side by side; `share_sums` adds them
up in one order, in a third of the time of torch's sum.

A head is one or two tiles: its first `half` columns in one of width A, the others in one of width
B, or all in the first if B is 0. Rotary positions turn coordinate i together with i + K/2, so where
they are turned a head is halved; elsewhere it is cut so that little of the tiles is empty: 72
columns are 64 and 16, not 128.
"""

import math
import os
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.spec import Architecture

# Products and sums are fused into one rounding, whatever the default of a Triton to come.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

SHARES, COLUMNS = 256, 16  # that a program adds up at a time
LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
LEAST_TO_CUT = 64  # columns of a first tile; below it, one tile is as fast, and fewer are compiled
HEAD_SIZES = [
    "positions", "heads", "groups", "head_dim", "true_head_dim", "half", "sine", "read_heads",
]  # fmt: skip


def alignment(*lengths: int) -> int:
    """The largest of 8, 2 and 1 that divides them all; 8 bfloat16 numbers are one load.

    A kernel says `width = width // ALIGN * ALIGN`, from which Triton sees what divides a row;
    `tl.multiple_of` has no effect on an argument.
    """
    common = math.gcd(8, *lengths)
    return 2 if common == 4 else common


def power_of_two(least: int, length: int) -> int:
    """The least power of two that holds `length`, but no less than `least`."""
    return int(max(least, 1 << (length - 1).bit_length()))


def busy_programs(device: torch.device, per_processor: int) -> int:
    """As many as keep a GPU busy; one in Triton's interpreter, which has no processors."""
    if device.type != "cuda":
        return 1
    return per_processor * torch.cuda.get_device_properties(device).multi_processor_count


@triton.jit(do_not_specialize=["shares", "columns"])
def _share_sums(parts, sums, shares, columns, SHARES: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((SHARES, COLUMNS), tl.float32)
    for first in range(0, shares, SHARES):
        share = first + tl.arange(0, SHARES)
        inside = (share < shares)[:, None] & (column < columns)[None, :]
        total += tl.load(parts + share[:, None] * columns + column[None, :], inside, 0.0)
    tl.store(sums + column, tl.sum(total, 0), column < columns)


def share_sums(parts: Tensor) -> Tensor:
    """The sum over the first dimension, in float32."""
    sums = parts.new_empty(parts.shape[1:])
    columns = sums.numel()
    tile = {"SHARES": SHARES, "COLUMNS": COLUMNS, "num_warps": 8}
    _share_sums[(triton.cdiv(columns, COLUMNS),)](parts, sums, len(parts), columns, **tile)
    return sums


def cut(columns: int) -> tuple[int, int]:
    """Columns of both tiles; fewer than 16 are no product."""
    whole = power_of_two(16, columns)
    first = whole // 2
    if first < LEAST_TO_CUT:
        return whole, 0
    rest = power_of_two(16, columns - first)
    return (first, rest) if first + rest < whole else (whole, 0)


class HeadShape(NamedTuple):
    """What decides the kernels of attention and their tiles."""

    positions: int
    heads: int
    groups: int  # that share keys and values
    head_dim: int
    true_head_dim: int  # the rest are zeros (padding.py)
    is_causal: bool
    has_bias: bool  # in the projection; its gradient is the sum of that of all rows

    @classmethod
    def of(cls, shape: Architecture) -> "HeadShape":
        """That of a network which reads a whole context."""
        heads = shape.heads, shape.key_value_heads, shape.head_dim, shape.head_dim
        return cls(shape.context, *heads, shape.is_causal, shape.block == "gpt2")

    def tile(self, *, is_halved: bool) -> dict[str, int]:
        """The arguments of kernels that cut a head where it is turned, or where it suits them."""
        a, b = (power_of_two(16, self.head_dim // 2),) * 2 if is_halved else cut(self.head_dim)
        half = self.head_dim // 2 if is_halved else min(self.head_dim, a)
        sizes = {"positions": self.positions, "heads": self.heads, "groups": self.groups}
        tile = {"A": a, "B": b, "ALIGN": alignment(self.head_dim, half)}
        return {**sizes, "head_dim": self.head_dim, "half": half, **tile}


@triton.jit
def load_head(head, row, positions, stride, head_dim, half, A: tl.constexpr, B: tl.constexpr):
    """Rows of a head, zeros beyond its end; without a second tile it is the first once more."""
    column = tl.arange(0, A)
    inside = (row < positions)[:, None]
    a = tl.load(
        head + row[:, None] * stride + column[None, :], inside & (column < half)[None, :], 0.0
    )
    b = a
    if B > 0:
        column = half + tl.arange(0, B)
        at = head + row[:, None] * stride + column[None, :]
        b = tl.load(at, inside & (column < head_dim)[None, :], 0.0)
    return a, b


@triton.jit
def store_head(
    rows, sums, head, a, b, row, positions, stride, head_dim, half, A: tl.constexpr, B: tl.constexpr
):
    """Write rows of the head that begins at column `head`, and if asked the sums of its columns: a
    program's share of the gradient of a bias."""
    column = tl.arange(0, A)
    inside = (row < positions)[:, None]
    rows += row[:, None] * stride + head
    tl.store(rows + column[None, :], a, inside & (column < half)[None, :])
    if sums is not None:
        tl.store(sums + head + column, tl.sum(tl.where(inside, a, 0.0), 0), column < half)
    if B > 0:
        column = half + tl.arange(0, B)
        tl.store(rows + column[None, :], b, inside & (column < head_dim)[None, :])
        if sums is not None:
            tl.store(sums + head + column, tl.sum(tl.where(inside, b, 0.0), 0), column < head_dim)


@triton.jit
def empty_head(ROWS: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    """Zeros to add to."""
    a = tl.zeros((ROWS, A), tl.float32)
    b = a
    if B > 0:
        b = tl.zeros((ROWS, B), tl.float32)
    return a, b


@triton.jit
def products(x_a, x_b, y_a, y_b, B: tl.constexpr):
    """x y^T of whole rows."""
    made = tl.dot(x_a, tl.trans(y_a))
    if B > 0:
        made = tl.dot(x_b, tl.trans(y_b), made)
    return made


@triton.jit
def added(total_a, total_b, weights, x_a, x_b, B: tl.constexpr):
    """total + weights x."""
    total_a = tl.dot(weights, x_a, total_a)
    if B > 0:
        total_b = tl.dot(weights, x_b, total_b)
    return total_a, total_b
