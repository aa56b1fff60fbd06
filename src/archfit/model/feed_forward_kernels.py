"""Triton kernels of the feed-forward layer's activation, one pass each way.

Backwards the gradient of the bias costs no pass of its own. Narrow layers make the activation
between their products (narrow_feed_forward_kernels.py); wide ones have torch's products around it.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.tiles import alignment, share_sums

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
def activation(gate, value, GATED: tl.constexpr):
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
@no_type_check
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
@no_type_check
def _activation_forward(
    pre, hidden, rows, units,
    GATED: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    units = units // ALIGN * ALIGN
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    gate, value, _, inside = _read(pre, row, unit, rows, units, GATED)
    made, _, _ = activation(gate, value, GATED)
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
        gate, value, at, inside = _read(pre, row, unit, rows, units, GATED)
        _, by_gate, by_value = activation(gate, value, GATED)
        own = row[:, None].to(tl.int64) * units + unit[None, :]
        slope = tl.load(d_hidden + own, inside, 0.0).to(tl.float32)
        tl.store(d_pre + at, slope * by_gate, inside)
        if GATED:
            tl.store(d_pre + at + units, slope * by_value, inside)
        if sums is not None:
            total += slope * by_gate
    if sums is not None:
        tl.store(sums + tl.program_id(0) * units + unit, tl.sum(total, 0), unit < units)


def activation_tile(units: int, *, is_gated: bool) -> dict[str, int]:
    """What is compiled in."""
    return {"GATED": is_gated, "ROWS": ROWS, "UNITS": UNITS, "ALIGN": alignment(units)}


def activated(pre: Tensor, units: int) -> Tensor:
    """The activation of what `up` gave."""
    rows = len(pre)
    hidden_MU = pre.new_empty(rows, units)
    grid = triton.cdiv(rows, ROWS), triton.cdiv(units, UNITS)
    tile = activation_tile(units, is_gated=pre.shape[1] != units)
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
    tile = activation_tile(units, is_gated=pre.shape[1] != units)
    _activation_backward[programs, blocks](d_hidden_MU, pre, d_pre, sums, rows, units, **tile)
    return d_pre, None if sums is None or sums is shares else share_sums(sums)
