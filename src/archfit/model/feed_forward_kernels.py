"""Triton kernels of the feed-forward layer: its activation, one pass each way.

Backwards the gradient of the bias costs no pass of its own. Products are torch's; one of our own
with the activation in it was slower at every width from 16 to 256 (docs/performance.md).

Shape letters: M rows, D width, U hidden units (twice as many rows in a gated `up`: gates first).
"""

from typing import no_type_check

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.products import coarse, weight_gradient
from archfit.model.tiles import Work, Zeros, alignment, share_sums

ROWS, UNITS = 32, 64
MOST_SUMS, MOST_PROGRAMS = 512, 4608  # more sums would take longer to add up than to make
SIZES = ["rows", "units"]


@triton.jit
@no_type_check
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
@no_type_check
def _write_gradient(
    d_hidden, pre, d_pre, row, unit, rows, units, GATED: tl.constexpr
):  # fmt: skip
    """The gradient of what the activation reads; returns that of an ungated one."""
    inside = (row < rows)[:, None] & (unit < units)[None, :]
    if GATED:
        at = row[:, None].to(tl.int64) * 2 * units + unit[None, :]
        gate = tl.load(pre + at, inside, 0.0).to(tl.float32)
        value = tl.load(pre + at + units, inside, 0.0).to(tl.float32)
        share = tl.sigmoid(gate)
        d_value = d_hidden * gate * share
        tl.store(d_pre + at, d_hidden * value * share * (1 + gate * (1 - share)), inside)
        tl.store(d_pre + at + units, d_value, inside)
    else:
        at = row[:, None].to(tl.int64) * units + unit[None, :]
        value = tl.load(pre + at, inside, 0.0).to(tl.float32)
        below, density = _normal(value)
        d_value = d_hidden * (below + value * density)
        tl.store(d_pre + at, d_value, inside)
    return d_value


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _activation_forward(
    pre, hidden, rows, units,
    GATED: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    units = units // ALIGN * ALIGN
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    inside = (row < rows)[:, None] & (unit < units)[None, :]
    at = row[:, None].to(tl.int64) * (2 * units if GATED else units) + unit[None, :]
    value = tl.load(pre + at, inside, 0.0).to(tl.float32)
    if GATED:
        made = value * tl.sigmoid(value) * tl.load(pre + at + units, inside, 0.0).to(tl.float32)
    else:
        below, _ = _normal(value)
        made = value * below
    tl.store(hidden + row[:, None].to(tl.int64) * units + unit[None, :], made, inside)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def _activation_backward(
    d_hidden, pre, d_pre, sums, rows, units,
    GATED: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    units = units // ALIGN * ALIGN
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    total = tl.zeros((ROWS, UNITS), tl.float32)
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (unit < units)[None, :]
        at = row[:, None].to(tl.int64) * units + unit[None, :]
        slope = tl.load(d_hidden + at, inside, 0.0).to(tl.float32)
        d_value = _write_gradient(slope, pre, d_pre, row, unit, rows, units, GATED)
        if sums is not None:
            total += d_value
    if sums is not None:
        tl.store(sums + tl.program_id(0) * units + unit, tl.sum(total, 0), unit < units)


def _tile(units: int, *, is_gated: bool) -> dict[str, int]:
    return {"GATED": is_gated, "ROWS": ROWS, "UNITS": UNITS, "ALIGN": alignment(units)}


def activated(pre: Tensor, units: int) -> Tensor:
    """The activation of what `up` gave."""
    rows = len(pre)
    hidden_MU = pre.new_empty(rows, units)
    grid = triton.cdiv(rows, ROWS), triton.cdiv(units, UNITS)
    tile = _tile(units, is_gated=pre.shape[1] != units)
    _activation_forward[grid](pre, hidden_MU, rows, units, **tile)
    return hidden_MU


def activation_programs(rows: int, units: int, *, has_bias: bool) -> int:
    """Programs backwards for some of the units, each with a share of the bias's gradient."""
    programs = triton.cdiv(rows, ROWS)
    if has_bias:
        programs = min(programs, MOST_SUMS, max(1, MOST_PROGRAMS // triton.cdiv(units, UNITS)))
    return int(programs)


def activated_backward(
    d_hidden_MU: Tensor, pre: Tensor, *, has_bias: bool, shares: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The gradients of what the activation reads, and of the bias in it where there is no place
    for its shares."""
    rows, units = d_hidden_MU.shape
    programs, blocks = (
        activation_programs(rows, units, has_bias=has_bias),
        triton.cdiv(units, UNITS),
    )
    d_pre, sums = torch.empty_like(pre), shares
    if has_bias and shares is None:
        sums = pre.new_empty(programs, units, dtype=torch.float32)
    tile = _tile(units, is_gated=pre.shape[1] != units)
    _activation_backward[programs, blocks](d_hidden_MU, pre, d_pre, sums, rows, units, **tile)
    return d_pre, None if sums is None or sums is shares else share_sums(sums)


class _FusedFeedForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, up, bias, down_DU):
        x_MD = x.reshape(-1, x.shape[-1])
        ctx.shares = [getattr(weight, "shares", None) for weight in (up, bias, down_DU)]
        up, down_DU = coarse(up, x.dtype), coarse(down_DU, x.dtype)
        pre = F.linear(x_MD, up, None if bias is None else coarse(bias, x.dtype))
        hidden_MU = activated(pre, down_DU.shape[1])
        ctx.save_for_backward(x_MD, up, down_DU, pre, hidden_MU)
        ctx.has_bias = bias is not None
        return torch.mm(hidden_MU, down_DU.t()).view(x.shape)

    @staticmethod
    def backward(ctx, d_out):
        x_MD, up, down_DU, pre, hidden_MU = ctx.saved_tensors
        d_out_MD = d_out.reshape(x_MD.shape).contiguous()
        d_hidden_MU = torch.mm(d_out_MD, down_DU)
        for_up, for_bias, for_down = ctx.shares
        d_pre, d_bias = activated_backward(d_hidden_MU, pre, has_bias=ctx.has_bias, shares=for_bias)
        d_x = torch.mm(d_pre, up).view(d_out.shape)
        d_up, d_down = (
            weight_gradient(d_pre, x_MD, for_up),
            weight_gradient(d_out_MD, hidden_MU, for_down),
        )
        return d_x, d_up, d_bias, d_down


def fused_feed_forward(x: Tensor, up: Tensor, bias: Tensor | None, down: Tensor) -> Tensor:
    """gelu(x up^T + bias) down^T, or silu(gate) value down^T where `up` has twice as many rows as
    `down` has columns; in the precision of x, without the last bias."""
    return _FusedFeedForward.apply(x, up, bias, down)


def feed_forward_work(units: int, zeros: Zeros, *, is_gated: bool) -> Work:
    """A run each way."""
    pre, slope = zeros(16, units * (1 + is_gated)), zeros(16, units)
    key = "feed forward", *_tile(units, is_gated=is_gated).values()
    return {
        (*key, 0): lambda: activated(pre, units),
        (*key, 1): lambda: activated_backward(slope, pre, has_bias=not is_gated, shares=None),
    }
