"""How kernels of attention read, turn and write the rows of a head.

A head is one or two tiles: its first `half` columns in one of width A, the others in one of width
B, or all in the first if B is 0. Rotary positions turn coordinate i together with i + K/2, so where
they are turned a head is halved; elsewhere it is cut so that little of the tiles is empty: 72
columns are 64 and 16, not 128.
"""

from dataclasses import dataclass
from typing import no_type_check

import triton
import triton.language as tl

from archfit.model.tiles import alignment, power_of_two
from archfit.spec import Architecture, Rotary

SIZES = [
    "positions", "heads", "groups", "head_dim", "true_head_dim", "half", "sine",
    "read_heads",
]  # fmt: skip


LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
LEAST_TO_CUT = 64  # columns of a first tile; below it, one tile is as fast, and fewer are compiled


def cut(columns: int) -> tuple[int, int]:
    """Columns of both tiles; fewer than 16 are no product."""
    whole = power_of_two(16, columns)
    first = whole // 2
    if first < LEAST_TO_CUT:
        return whole, 0
    rest = power_of_two(16, columns - first)
    return (first, rest) if first + rest < whole else (whole, 0)


@dataclass(frozen=True, kw_only=True)
class HeadShape:
    """What decides the kernels of attention and their tiles."""

    positions: int
    heads: int
    groups: int  # that share keys and values
    head_dim: int
    true_head_dim: int  # the rest are zeros (padding.py)
    is_causal: bool
    is_turned: bool
    is_normed: bool  # queries and keys, before they are turned
    has_bias: bool  # in the projection; its gradient is the sum of that of all rows

    @classmethod
    def of(cls, architecture: Architecture) -> "HeadShape":
        """That of a network which reads a whole context."""
        return cls(
            positions=architecture.context,
            heads=architecture.heads,
            groups=architecture.key_value_heads,
            head_dim=architecture.head_dim,
            true_head_dim=architecture.head_dim,
            is_causal=architecture.is_causal,
            is_turned=isinstance(architecture.positions, Rotary),
            is_normed=architecture.qk_norm,
            has_bias=architecture.block == "gpt2",
        )

    @property
    def columns(self) -> int:
        """Of the tiles of a head that is not turned."""
        return sum(cut(self.head_dim))

    def tile(self, *, is_halved: bool) -> dict[str, int]:
        """The arguments of kernels that cut a head where it is turned, or where it suits them."""
        if is_halved:
            half = self.head_dim // 2
            parts = (power_of_two(16, half),) * 2
        else:
            parts = cut(self.head_dim)
            half = min(self.head_dim, parts[0])
        sizes = {"positions": self.positions, "heads": self.heads, "groups": self.groups}
        sizes |= {"head_dim": self.head_dim, "half": half}
        return {**sizes, "A": parts[0], "B": parts[1], "ALIGN": alignment(self.head_dim, half)}


@triton.jit
@no_type_check
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
@no_type_check
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
@no_type_check
def empty_head(ROWS: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    """Zeros to add to."""
    a = tl.zeros((ROWS, A), tl.float32)
    b = a
    if B > 0:
        b = tl.zeros((ROWS, B), tl.float32)
    return a, b


@triton.jit
@no_type_check
def products(x_a, x_b, y_a, y_b, B: tl.constexpr):
    """x y^T of whole rows."""
    made = tl.dot(x_a, tl.trans(y_a))
    if B > 0:
        made = tl.dot(x_b, tl.trans(y_b), made)
    return made


@triton.jit
@no_type_check
def added(total_a, total_b, weights, x_a, x_b, B: tl.constexpr):
    """total + weights x."""
    total_a = tl.dot(weights, x_a, total_a)
    if B > 0:
        total_b = tl.dot(weights, x_b, total_b)
    return total_a, total_b


@triton.jit
@no_type_check
def turned(a, b, angles, row, positions, half, sine, A: tl.constexpr, BACK: tl.constexpr):
    """Both halves turned by the angles of their positions, or back."""
    column = tl.arange(0, A)
    at = angles + row[:, None] * half + column[None, :]
    inside = (row < positions)[:, None] & (column < half)[None, :]
    cos, sin = tl.load(at, inside, 0.0), tl.load(at + sine, inside, 0.0)
    if BACK:
        sin = -sin
    return a * cos - b * sin, b * cos + a * sin
