"""How kernels of attention read, turn and write the rows of a head.

A head is two tiles: its columns up to `half`, and the others. Rotary positions turn coordinate i
together with i + K/2, so a turned head is halved there.
"""

from dataclasses import dataclass
from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.tiles import alignment, power_of_two
from archfit.spec import Architecture, Rotary

SIZES = ["positions", "heads", "groups", "head_dim", "half", "sine", "read_heads"]


@dataclass(frozen=True, kw_only=True)
class HeadShape:
    """What decides the kernels of attention and their tiles."""

    positions: int
    heads: int
    groups: int  # that share keys and values
    head_dim: int
    is_causal: bool
    is_turned: bool
    has_bias: bool  # in the projection; its gradient is the sum of that of all rows

    @classmethod
    def of(cls, architecture: Architecture) -> "HeadShape":
        """That of a network which reads a whole context."""
        return cls(
            positions=architecture.context,
            heads=architecture.heads,
            groups=architecture.key_value_heads,
            head_dim=architecture.head_dim,
            is_causal=architecture.is_causal,
            is_turned=isinstance(architecture.positions, Rotary),
            has_bias=architecture.block == "gpt2",
        )

    @property
    def half_tile(self) -> int:
        """Columns of each of a head's two tiles; fewer than 16 are no product."""
        return power_of_two(16, -(-self.head_dim // 2))

    @property
    def half(self) -> int:
        """Columns of a head in its first tile."""
        return self.head_dim // 2 if self.is_turned else min(self.head_dim, self.half_tile)

    def column_sums(self, d_qkv_BNHK: Tensor, programs: int) -> Tensor | None:
        """Room for the sums of columns over each program's rows."""
        shape = programs, *d_qkv_BNHK.shape[2:]
        return d_qkv_BNHK.new_empty(shape, dtype=torch.float32) if self.has_bias else None

    @property
    def sizes(self) -> dict[str, int]:
        """The arguments of kernels that are not compiled in."""
        sizes = {"positions": self.positions, "heads": self.heads, "groups": self.groups}
        return {**sizes, "head_dim": self.head_dim, "half": self.half}

    @property
    def tile(self) -> dict[str, int]:
        """Those that are, in all kernels."""
        return {"HALF": self.half_tile, "ALIGN": alignment(self.head_dim, self.half)}


@triton.jit
@no_type_check
def load_halves(head, row, positions, stride, head_dim, half, HALF: tl.constexpr):
    """Rows of a head, zeros beyond its end."""
    column = tl.arange(0, HALF)
    at = head + row[:, None] * stride + column[None, :]
    inside = (row < positions)[:, None]
    a = tl.load(at, inside & (column < half)[None, :], 0.0)
    b = tl.load(at + half, inside & (column < head_dim - half)[None, :], 0.0)
    return a, b


@triton.jit
@no_type_check
def store_halves(
    rows, sums, head, a, b, row, positions, stride, head_dim, half, HALF: tl.constexpr
):
    """Write rows of the head that begins at column `head`, and if asked the sums of its columns: a
    program's share of the gradient of a bias."""
    column = tl.arange(0, HALF)
    at = rows + row[:, None] * stride + (head + column)[None, :]
    inside = (row < positions)[:, None]
    tl.store(at, a, inside & (column < half)[None, :])
    tl.store(at + half, b, inside & (column < head_dim - half)[None, :])
    if sums is not None:
        sums += head + column
        tl.store(sums, tl.sum(tl.where(inside, a, 0.0), 0), column < half)
        tl.store(sums + half, tl.sum(tl.where(inside, b, 0.0), 0), column < head_dim - half)


@triton.jit
@no_type_check
def turned(a, b, angles, row, positions, half, sine, HALF: tl.constexpr, BACK: tl.constexpr):
    """Both halves turned by the angles of their positions, or back; as they are without angles."""
    if angles is None:
        return a, b
    else:  # noqa: RET505 - Triton compiles what follows an if without else in any case
        column = tl.arange(0, HALF)
        at = angles + row[:, None] * half + column[None, :]
        inside = (row < positions)[:, None] & (column < half)[None, :]
        if BACK:  # loads of another kind, or registers would hold the first ones until here
            cos = tl.load(at, inside, 0.0, eviction_policy="evict_last")
            sin = -tl.load(at + sine, inside, 0.0, eviction_policy="evict_last")
        else:
            cos, sin = tl.load(at, inside, 0.0), tl.load(at + sine, inside, 0.0)
        return (a * cos - b * sin).to(a.dtype), (b * cos + a * sin).to(a.dtype)
