"""The look-up of rows in a table, with a gradient that is the same every time.

Torch adds the gradients of equal tokens in whatever order they come, and so no two runs are equal.
Here each number of the table's gradient has one writer. A small table's gradient is the product of
a one-hot matrix, made tile by tile, with the gradients of all positions; for a large one the
positions are sorted by token and each token's are summed in that order.

Shape letters: M looked-up ids, T ids whose rows are summed, R rows of the table, D width.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.layers import plain_look_up
from archfit.model.tiles import alignment, busy_programs, power_of_two, share_sums

MOST_ONE_HOT_ROWS = 1024
TILE = 64  # rows, columns and positions of a product
SORTED_NUMBERS = 4096  # that a program adds up at a time
PROGRAMS_A_PROCESSOR, LEAST_SHARE = 4, 256  # positions of a program
SIZES = ["count", "together", "rows", "width"]


@triton.jit(do_not_specialize=SIZES)
def _one_hot_sums(
    ids, d_out, sums, count, together, rows, width, TILE: tl.constexpr, ALIGN: tl.constexpr
):
    width = width // ALIGN * ALIGN
    share, shares = tl.program_id(2), tl.num_programs(2)
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for first in range(share * TILE, count, shares * TILE):
        at = first + tl.arange(0, TILE)
        token = tl.load(ids + at, at < count, -1)
        is_hot = (row[:, None] == token[None, :]).to(tl.float32)
        slope = tl.load(
            d_out + (at // together)[:, None].to(tl.int64) * width + column[None, :],
            (at < count)[:, None] & (column < width)[None, :], 0.0,
        ).to(tl.float32)  # fmt: skip
        # Both halves of a number are multiplied, so a sum is as exact as one of float32.
        total = tl.dot(is_hot, slope, total, input_precision="tf32x3")
    inside = (row < rows)[:, None] & (column < width)[None, :]
    sums += (share * rows + row)[:, None].to(tl.int64) * width + column[None, :]
    tl.store(sums, total, inside)


@triton.jit(do_not_specialize=SIZES)
def _sorted_sums(
    order, starts, d_out, d_table, together, width,
    POSITIONS: tl.constexpr, TILE: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    width = width // ALIGN * ALIGN
    row, column = tl.program_id(0).to(tl.int64), tl.program_id(1) * TILE + tl.arange(0, TILE)
    start, end = tl.load(starts + row), tl.load(starts + row + 1)
    total = tl.zeros((POSITIONS, TILE), tl.float32)
    for first in range(start, end, POSITIONS):
        at = first + tl.arange(0, POSITIONS)
        position = tl.load(order + at, at < end, 0) // together
        inside = (at < end)[:, None] & (column < width)[None, :]
        slope = tl.load(d_out + position[:, None] * width + column[None, :], inside, 0.0)
        total += slope.to(tl.float32)
    tl.store(d_table + row * width + column, tl.sum(total, 0), column < width)


def _shares(device: torch.device, tiles: int, count: int) -> int:
    most = max(1, busy_programs(device, PROGRAMS_A_PROCESSOR) // tiles)
    return min(most, triton.cdiv(count, LEAST_SHARE))


def table_gradient(ids_MT: Tensor, d_out_MD: Tensor, rows: int) -> Tensor:
    """The sum of the gradients of all positions that read a row, for each row; float32."""
    ids, together, width = ids_MT.flatten().contiguous(), ids_MT.shape[1], d_out_MD.shape[1]
    tile, blocks = {"TILE": TILE, "ALIGN": alignment(width)}, triton.cdiv(width, TILE)
    if rows <= MOST_ONE_HOT_ROWS:
        tiles = triton.cdiv(rows, TILE) * blocks
        shares = _shares(ids.device, tiles, len(ids))
        sums = torch.empty((shares, rows, width), device=ids.device, dtype=torch.float32)
        _one_hot_sums[(triton.cdiv(rows, TILE), blocks, shares)](
            ids, d_out_MD, sums, len(ids), together, rows, width, **tile
        )
        return share_sums(sums)
    in_order, order = torch.sort(ids, stable=True)
    starts = torch.searchsorted(in_order, torch.arange(rows + 1, device=ids.device))
    d_table = torch.empty((rows, width), device=ids.device, dtype=torch.float32)
    tile["TILE"] = min(1024, power_of_two(16, width))
    _sorted_sums[(rows, triton.cdiv(width, tile["TILE"]))](
        order, starts, d_out_MD, d_table, together, width,
        POSITIONS=SORTED_NUMBERS // tile["TILE"], **tile,
    )  # fmt: skip
    return d_table


class _FusedLookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ids_MT, table_RD):
        ctx.save_for_backward(ids_MT)
        ctx.rows = len(table_RD)
        return plain_look_up(ids_MT, table_RD)

    @staticmethod
    def backward(ctx, d_out_MD):
        (ids_MT,) = ctx.saved_tensors
        return None, table_gradient(ids_MT, d_out_MD.contiguous(), ctx.rows)


def fused_look_up(ids_MT: Tensor, table_RD: Tensor) -> Tensor:
    """The sum of the rows of each T ids, M D."""
    return _FusedLookUp.apply(ids_MT, table_RD)
