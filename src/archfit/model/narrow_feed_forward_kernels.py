"""Triton kernels of a narrow feed-forward layer, whose hidden units never leave a processor.

A program has some rows and goes through the hidden units block by block: forwards it writes nothing
else than what the layer gives; backwards it makes them again, and leaves them and the gradients of
what they are made from to the products that are the weights' gradients.

A row is one or two tiles, as a head of attention is (head_tiles.py). Shape letters: M rows, D
width, U hidden units (twice as many rows in a gated `up`: gates first).
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.feed_forward_kernels import activation
from archfit.model.head_tiles import added, cut, empty_head, load_head, products, store_head
from archfit.model.tiles import alignment, share_sums

# For rows of at most so many columns: rows and units of a tile, warps and stages, both ways.
TILES = {
    32: ((64, 64, 4, 1), (64, 32, 4, 2)),
    64: ((128, 32, 8, 2), (64, 32, 4, 1)),
    128: ((64, 64, 4, 2), (64, 32, 4, 2)),
}
FORWARDS, BACK = range(2)
SIZES = ["rows", "width", "half", "units"]


@triton.jit
@no_type_check
def _load_down(down, unit, units, width, half, A: tl.constexpr, B: tl.constexpr):
    """Columns of `down`, one hidden unit a row, in the tiles of a row."""
    column, own = tl.arange(0, A), (unit < units)[None, :]
    at = down + column[:, None] * units + unit[None, :]
    a = tl.trans(tl.load(at, (column < half)[:, None] & own, 0.0))
    b = a
    if B > 0:
        column = half + tl.arange(0, B)
        at = down + column[:, None] * units + unit[None, :]
        b = tl.trans(tl.load(at, (column < width)[:, None] & own, 0.0))
    return a, b


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _narrow_forward(
    x, up, bias, down, y, rows, width, half, units,
    GATED: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    width, half, units = width // ALIGN * ALIGN, half // ALIGN * ALIGN, units // ALIGN * ALIGN
    start, row = tl.program_id(0) * ROWS, tl.arange(0, ROWS)
    begin, left = start.to(tl.int64) * width, rows - start
    x_a, x_b = load_head(x + begin, row, left, width, width, half, A, B)
    y_a, y_b = empty_head(ROWS, A, B)
    for first in range(0, units, UNITS):
        unit = first + tl.arange(0, UNITS)
        if bias is not None:
            shift = tl.load(bias + unit, unit < units, 0.0)
        u_a, u_b = load_head(up, unit, units, width, width, half, A, B)
        d_a, d_b = _load_down(down, unit, units, width, half, A, B)
        gate = products(x_a, x_b, u_a, u_b, B)
        if bias is not None:
            gate += shift.to(tl.float32)[None, :]
        value = gate
        if GATED:
            v_a, v_b = load_head(up + units * width, unit, units, width, width, half, A, B)
            value = products(x_a, x_b, v_a, v_b, B)
        made, _, _ = activation(gate, value, GATED)
        y_a, y_b = added(y_a, y_b, made.to(x_a.dtype), d_a, d_b, B)
    store_head(y + begin, None, 0, y_a, y_b, row, left, width, width, half, A, B)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _narrow_backward(
    x, up, bias, down, d_y, d_x, d_pre, hidden, sums, rows, width, half, units,
    GATED: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """`sums`: a program's share of the gradient of the bias."""
    width, half, units = width // ALIGN * ALIGN, half // ALIGN * ALIGN, units // ALIGN * ALIGN
    start, row = tl.program_id(0) * ROWS, tl.arange(0, ROWS)
    begin, left = start.to(tl.int64) * width, rows - start
    stride = 2 * units if GATED else units
    hidden += start.to(tl.int64) * units
    d_pre += start.to(tl.int64) * stride
    x_a, x_b = load_head(x + begin, row, left, width, width, half, A, B)
    dy_a, dy_b = load_head(d_y + begin, row, left, width, width, half, A, B)
    dx_a, dx_b = empty_head(ROWS, A, B)
    for first in range(0, units, UNITS):
        unit = first + tl.arange(0, UNITS)
        if bias is not None:
            shift = tl.load(bias + unit, unit < units, 0.0)
        inside = (row < left)[:, None] & (unit < units)[None, :]
        u_a, u_b = load_head(up, unit, units, width, width, half, A, B)
        d_a, d_b = _load_down(down, unit, units, width, half, A, B)
        d_hidden = products(dy_a, dy_b, d_a, d_b, B)
        gate = products(x_a, x_b, u_a, u_b, B)
        if bias is not None:
            gate += shift.to(tl.float32)[None, :]
        value = gate
        if GATED:
            v_a, v_b = load_head(up + units * width, unit, units, width, width, half, A, B)
            value = products(x_a, x_b, v_a, v_b, B)
        made, by_gate, by_value = activation(gate, value, GATED)
        tl.store(hidden + row[:, None] * units + unit[None, :], made, inside)
        at = d_pre + row[:, None] * stride + unit[None, :]
        d_gate = d_hidden * by_gate
        if sums is not None:
            tl.store(sums + tl.program_id(0) * units + unit, tl.sum(d_gate, 0), unit < units)
        d_gate = d_gate.to(x_a.dtype)
        tl.store(at, d_gate, inside)
        dx_a, dx_b = added(dx_a, dx_b, d_gate, u_a, u_b, B)
        if GATED:
            d_value = (d_hidden * by_value).to(x_a.dtype)
            tl.store(at + units, d_value, inside)
            dx_a, dx_b = added(dx_a, dx_b, d_value, v_a, v_b, B)
    store_head(d_x + begin, None, 0, dx_a, dx_b, row, left, width, width, half, A, B)


def narrow_tile(width: int, units: int, *, is_gated: bool, way: int) -> dict[str, int]:
    """What is compiled in."""
    a, b = cut(width)
    rows, block, warps, stages = next(tile[way] for most, tile in TILES.items() if a + b <= most)
    tile = {"GATED": is_gated, "ROWS": rows, "UNITS": block, "A": a, "B": b}
    align = alignment(width, min(width, a), units)
    return {**tile, "ALIGN": align, "num_warps": warps, "num_stages": stages}


def narrow_programs(rows: int, width: int, units: int) -> int:
    """Programs backwards, each with a share of the bias's gradient."""
    return int(triton.cdiv(rows, narrow_tile(width, units, is_gated=False, way=BACK)["ROWS"]))


def narrow_forward(x_MD: Tensor, up: Tensor, bias: Tensor | None, down_DU: Tensor) -> Tensor:
    """The whole layer, without the last bias."""
    (rows, width), units = x_MD.shape, down_DU.shape[1]
    tile = narrow_tile(width, units, is_gated=len(up) != units, way=FORWARDS)
    y_MD, half = torch.empty_like(x_MD), min(width, tile["A"])
    _narrow_forward[(triton.cdiv(rows, tile["ROWS"]),)](
        x_MD, up, bias, down_DU, y_MD, rows, width, half, units, **tile
    )
    return y_MD


def narrow_backward(
    saved: tuple[Tensor, Tensor, Tensor | None, Tensor], d_y_MD: Tensor, shares: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The gradients of x and of what the activation reads, the hidden units, and the gradient of
    the bias where there is no place for its shares."""
    x_MD, up, bias, down_DU = saved
    (rows, width), units = x_MD.shape, down_DU.shape[1]
    tile = narrow_tile(width, units, is_gated=len(up) != units, way=BACK)
    programs, half = triton.cdiv(rows, tile["ROWS"]), min(width, tile["A"])
    d_x_MD, sums = torch.empty_like(x_MD), shares
    d_pre, hidden_MU = x_MD.new_empty(rows, len(up)), x_MD.new_empty(rows, units)
    if bias is not None and shares is None:
        sums = x_MD.new_empty(programs, units, dtype=torch.float32)
    _narrow_backward[(programs,)](
        x_MD, up, bias, down_DU, d_y_MD, d_x_MD, d_pre, hidden_MU, sums,
        rows, width, half, units, **tile,
    )  # fmt: skip
    return d_x_MD, d_pre, hidden_MU, None if sums is None or sums is shares else share_sums(sums)
