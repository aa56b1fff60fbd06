"""Triton kernels of the feed-forward layer, and the layer as a function with a gradient.

In a narrow layer hidden units never leave a processor. A program has some rows and goes through the
units block by block: forwards it writes nothing else than what the layer gives; backwards it makes
them again, and leaves them and the gradients of what they are made from to the products that are
the weights' gradients. A row is one or two tiles, as a head of attention is (tiles.py).

A wide layer has torch's products around the activation, which is one pass each way; backwards the
gradient of the bias costs no pass of its own. row_kernels.py says when kernels are used.

Shape letters: M rows, D width, U hidden units (twice as many rows in a gated `up`: gates first).
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.product_kernels import coarse, weight_gradient
from archfit.model.tiles import (
    added,
    alignment,
    cut,
    empty_head,
    load_head,
    products,
    share_sums,
    store_head,
)

WIDEST, WIDEST_GATED = 80, 128  # of narrow layers; beyond, torch's products are faster
# For rows of at most so many columns: rows and units of a tile, warps and stages, both ways.
TILES = {
    32: ((64, 64, 4, 1), (64, 32, 4, 2)),
    64: ((128, 32, 8, 2), (64, 32, 4, 1)),
    128: ((64, 64, 4, 2), (64, 32, 4, 2)),
}
FORWARDS, BACK = range(2)
ROWS, UNITS = 32, 64  # of a tile of a wide layer
MOST_SUMS, MOST_PROGRAMS = 512, 4608  # more sums would take longer to add up than to make
SIZES = ["rows", "width", "half", "units"]


@triton.jit
def _normal(value):
    """Distribution and density of the normal law; Abramowitz and Stegun 7.1.26, within 1.5e-7.

    Both share a power, and libdevice's erf would take longer than reading the numbers.
    """
    power = tl.exp2(-0.7213475204444817 * value * value)  # exp(-value^2 / 2)
    t = 1.0 / (1.0 + 0.23164189 * tl.abs(value))
    tail = 0.5 * (0.254829592 + t * (
        -0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))
    )) * t * power  # fmt: skip
    return tl.where(value < 0, tail, 1.0 - tail), 0.3989422804014327 * power


@triton.jit
def _activation(gate, value, GATED: tl.constexpr):
    """silu(gate) value and its slopes by gate and value; or gelu(gate) and its slope, twice."""
    if GATED:
        share = tl.sigmoid(gate)
        made, by_value = gate * share * value, gate * share
        by_gate = value * share * (1 + gate * (1 - share))
    else:
        below, density = _normal(gate)
        made, by_gate = gate * below, below + gate * density
        by_value = by_gate
    return made, by_gate, by_value


@triton.jit
def _read(pre, row, unit, rows, units, GATED: tl.constexpr):
    """Gate and value of some units, the same number if they have no gate; where they lie, too."""
    inside = (row < rows)[:, None] & (unit < units)[None, :]
    at = row[:, None].to(tl.int64) * (2 * units if GATED else units) + unit[None, :]
    gate = tl.load(pre + at, inside, 0.0).to(tl.float32)
    value = gate
    if GATED:
        value = tl.load(pre + at + units, inside, 0.0).to(tl.float32)
    return gate, value, at, inside


@triton.jit(do_not_specialize=SIZES)
def _activation_forward(
    pre, hidden, rows, units,
    GATED: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    units = units // ALIGN * ALIGN
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    gate, value, _, inside = _read(pre, row, unit, rows, units, GATED)
    made, _, _ = _activation(gate, value, GATED)
    tl.store(hidden + row[:, None].to(tl.int64) * units + unit[None, :], made, inside)


@triton.jit(do_not_specialize=SIZES)
def _activation_backward(
    d_hidden, pre, d_pre, sums, rows, units,
    GATED: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    units = units // ALIGN * ALIGN
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    total = tl.zeros((ROWS, UNITS), tl.float32)
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS)
        gate, value, at, inside = _read(pre, row, unit, rows, units, GATED)
        _, by_gate, by_value = _activation(gate, value, GATED)
        own = row[:, None].to(tl.int64) * units + unit[None, :]
        slope = tl.load(d_hidden + own, inside, 0.0).to(tl.float32)
        tl.store(d_pre + at, slope * by_gate, inside)
        if GATED:
            tl.store(d_pre + at + units, slope * by_value, inside)
        if sums is not None:
            total += slope * by_gate
    if sums is not None:
        tl.store(sums + tl.program_id(0) * units + unit, tl.sum(total, 0), unit < units)


@triton.jit
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
        made, _, _ = _activation(gate, value, GATED)
        y_a, y_b = added(y_a, y_b, made.to(x_a.dtype), d_a, d_b, B)
    store_head(y + begin, None, 0, y_a, y_b, row, left, width, width, half, A, B)


@triton.jit(do_not_specialize=SIZES)
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
        made, by_gate, by_value = _activation(gate, value, GATED)
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


def _is_narrow_layer(width: int, *, is_gated: bool) -> bool:
    """Whether it is one kernel each way, products included."""
    return width <= (WIDEST_GATED if is_gated else WIDEST)


def _wide_tile(units: int, is_gated: bool) -> dict[str, int]:
    return {"GATED": is_gated, "ROWS": ROWS, "UNITS": UNITS, "ALIGN": alignment(units)}


def _narrow_tile(width: int, units: int, *, is_gated: bool, way: int) -> dict[str, int]:
    a, b = cut(width)
    rows, block, warps, stages = next(tile[way] for most, tile in TILES.items() if a + b <= most)
    tile = {"GATED": is_gated, "ROWS": rows, "UNITS": block, "A": a, "B": b}
    align = alignment(width, min(width, a), units)
    return {**tile, "ALIGN": align, "num_warps": warps, "num_stages": stages}


def bias_shares(rows: int, width: int, units: int) -> int:
    """Of the gradient of the bias of `up`: programs backwards, for some of the units if wide."""
    if _is_narrow_layer(width, is_gated=False):
        return int(triton.cdiv(rows, _narrow_tile(width, units, is_gated=False, way=BACK)["ROWS"]))
    most = max(1, MOST_PROGRAMS // triton.cdiv(units, UNITS))
    return int(min(triton.cdiv(rows, ROWS), MOST_SUMS, most))


class _FusedFeedForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, up, bias, down_DU):
        x_MD = x.reshape(-1, x.shape[-1]).contiguous()
        ctx.shares = [getattr(weight, "shares", None) for weight in (up, bias, down_DU)]
        up, down_DU = coarse(up, x.dtype), coarse(down_DU, x.dtype)
        bias = None if bias is None else coarse(bias, x.dtype)
        (rows, width), units = x_MD.shape, down_DU.shape[1]
        is_gated = len(up) != units
        if _is_narrow_layer(width, is_gated=is_gated):
            ctx.save_for_backward(x_MD, up, bias, down_DU)
            tile = _narrow_tile(width, units, is_gated=is_gated, way=FORWARDS)
            y_MD = torch.empty_like(x_MD)
            _narrow_forward[(triton.cdiv(rows, tile["ROWS"]),)](
                x_MD, up, bias, down_DU, y_MD, rows, width, min(width, tile["A"]), units, **tile
            )
            return y_MD.view(x.shape)
        pre, hidden_MU = F.linear(x_MD, up, bias), x_MD.new_empty(rows, units)
        grid = triton.cdiv(rows, ROWS), triton.cdiv(units, UNITS)
        _activation_forward[grid](pre, hidden_MU, rows, units, **_wide_tile(units, is_gated))
        ctx.save_for_backward(x_MD, up, bias, down_DU, pre, hidden_MU)
        return torch.mm(hidden_MU, down_DU.t()).view(x.shape)

    @staticmethod
    def backward(ctx, d_out):
        x_MD, up, bias, down_DU, *made = ctx.saved_tensors
        (rows, width), units = x_MD.shape, down_DU.shape[1]
        (for_up, for_bias, for_down), is_gated = ctx.shares, len(up) != units
        d_y_MD, sums = d_out.reshape(x_MD.shape).contiguous(), for_bias
        if bias is not None and sums is None:
            sums = x_MD.new_empty(bias_shares(rows, width, units), units, dtype=torch.float32)
        d_pre = x_MD.new_empty(rows, len(up))
        if made:
            pre, hidden_MU = made
            programs = triton.cdiv(rows, ROWS) if sums is None else len(sums)
            _activation_backward[(programs, triton.cdiv(units, UNITS))](
                torch.mm(d_y_MD, down_DU), pre, d_pre, sums, rows, units,
                **_wide_tile(units, is_gated),
            )  # fmt: skip
            d_x_MD = torch.mm(d_pre, up)
        else:
            d_x_MD, hidden_MU = torch.empty_like(x_MD), x_MD.new_empty(rows, units)
            tile = _narrow_tile(width, units, is_gated=is_gated, way=BACK)
            _narrow_backward[(triton.cdiv(rows, tile["ROWS"]),)](
                x_MD, up, bias, down_DU, d_y_MD, d_x_MD, d_pre, hidden_MU, sums,
                rows, width, min(width, tile["A"]), units, **tile,
            )  # fmt: skip
        d_bias = None if sums is for_bias else share_sums(sums)
        d_up = weight_gradient(d_pre, x_MD, for_up)
        return d_x_MD.view(d_out.shape), d_up, d_bias, weight_gradient(d_y_MD, hidden_MU, for_down)


def fused_feed_forward(x: Tensor, up: Tensor, bias: Tensor | None, down: Tensor) -> Tensor:
    """gelu(x up^T + bias) down^T, or silu(gate) value down^T where `up` has twice as many rows as
    `down` has columns; in the precision of x, without the last bias."""
    return _FusedFeedForward.apply(x, up, bias, down)
