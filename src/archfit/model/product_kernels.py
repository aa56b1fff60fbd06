"""Products of float32 weights in the precision of autocast, by torch; and a Triton kernel of the
gradient of a narrow matrix, which is a sum over all rows of a batch.

Its programs leave shares of the sum; gradient_shares.py adds them up. Torch's products take three
kernels a matrix, and a small network spends its time on starting kernels.

And the look-up of rows in a table, with a gradient that is the same every time. Torch adds the
gradients of equal tokens in whatever order they come, and so no two runs are equal. Here each
number of the table's gradient has one writer. A small table's gradient is the product of a one-hot
matrix, made tile by tile, with the gradients of all positions; for a large one the positions are
sorted by token and each token's are summed in that order.

Shape letters: M rows (of a look-up: ids), C outputs, D inputs or width, P shares, T ids whose rows
are summed, R rows of a table.
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.layers import plain_look_up
from archfit.model.tiles import alignment, busy_programs, power_of_two, share_sums

WIDEST, LONGEST = 128, 768  # sides of a matrix; beyond them torch's products are faster
ROWS = 64  # at a time
MOST_SHARES, LEAST_ROWS = 64, 256  # of a matrix; of a share
PROGRAMS_A_PROCESSOR = 2
SIZES = ["rows", "outputs", "inputs", "chunk"]
MOST_ONE_HOT_ROWS = 1024
TILE = 64  # rows, columns and positions of a product
SORTED_NUMBERS = 4096  # that a program adds up at a time
LOOK_UP_PROGRAMS_A_PROCESSOR, LEAST_SHARE = 4, 256  # positions of a program
TABLE_SIZES = ["count", "together", "rows", "width"]


@triton.jit(do_not_specialize=SIZES)
def _product_shares(
    d_y, x, shares, rows, outputs, inputs, chunk,
    ROWS: tl.constexpr, OUT: tl.constexpr, IN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    outputs, inputs = outputs // ALIGN * ALIGN, inputs // ALIGN * ALIGN
    share = tl.program_id(2)
    out = tl.program_id(0) * OUT + tl.arange(0, OUT)
    column = tl.program_id(1) * IN + tl.arange(0, IN)
    total = tl.zeros((OUT, IN), tl.float32)
    end = tl.minimum(rows, (share + 1) * chunk)
    for first in range(share * chunk, end, ROWS):
        row = first + tl.arange(0, ROWS)
        inside, at = (row < end)[:, None], row[:, None].to(tl.int64)
        slope = tl.load(d_y + at * outputs + out[None, :], inside & (out < outputs)[None, :], 0.0)
        value = tl.load(x + at * inputs + column[None, :], inside & (column < inputs)[None, :], 0.0)
        total = tl.dot(tl.trans(slope), value, total)
    shares += (share * outputs + out)[:, None].to(tl.int64) * inputs + column[None, :]
    tl.store(shares, total, (out < outputs)[:, None] & (column < inputs)[None, :])


def _product_tile(outputs: int, inputs: int) -> dict[str, int]:
    out, column = (32 if side <= 32 else 64 for side in (outputs, inputs))
    return {"ROWS": ROWS, "OUT": out, "IN": column, "ALIGN": alignment(outputs, inputs)}


def product_count(weight: Tensor, rows: int) -> int:
    """Shares of a matrix: enough programs for the GPU, and enough rows for each."""
    tile = _product_tile(*weight.shape)
    tiles = triton.cdiv(len(weight), tile["OUT"]) * triton.cdiv(weight.shape[1], tile["IN"])
    programs = busy_programs(weight.device, PROGRAMS_A_PROCESSOR) // tiles
    return max(1, min(MOST_SHARES, programs, rows // LEAST_ROWS))


def is_narrow(outputs: int, inputs: int) -> bool:
    """Whether the kernel is for such a matrix."""
    return min(outputs, inputs) <= WIDEST and max(outputs, inputs) <= LONGEST


def coarse(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """The weight in another precision: the copy that a run keeps, or one for this use."""
    copy = getattr(weight, "coarse_copy", None)
    return weight.to(dtype) if copy is None or copy.dtype != dtype else copy


def weight_gradient(d_y_MC: Tensor, x_MD: Tensor, shares_PCD: Tensor | None) -> Tensor | None:
    """d_y^T x in float32, which a GPU writes at once instead of rounding it to bfloat16 first; or
    only its shares, where the weight has a place for them."""
    if shares_PCD is not None:
        (rows, outputs), inputs, shares = d_y_MC.shape, x_MD.shape[1], len(shares_PCD)
        tile, chunk = _product_tile(outputs, inputs), triton.cdiv(triton.cdiv(rows, shares), ROWS)
        grid = triton.cdiv(outputs, tile["OUT"]), triton.cdiv(inputs, tile["IN"]), shares
        _product_shares[grid](
            d_y_MC.contiguous(), x_MD.contiguous(), shares_PCD,
            rows, outputs, inputs, chunk * ROWS, **tile,
        )  # fmt: skip
        return None
    if d_y_MC.is_cuda and d_y_MC.dtype != torch.float32:
        return torch.mm(d_y_MC.t(), x_MD, out_dtype=torch.float32)
    return torch.mm(d_y_MC.t(), x_MD).float()


class _FusedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.shares, weight = getattr(weight, "shares", None), coarse(weight, x.dtype)
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, None if bias is None else coarse(bias, x.dtype))

    @staticmethod
    def backward(ctx, d_y):
        x, weight = ctx.saved_tensors
        d_y_MC, x_MD = d_y.reshape(-1, d_y.shape[-1]), x.reshape(-1, x.shape[-1])
        d_x = torch.mm(d_y_MC, weight).view(x.shape)
        return d_x, weight_gradient(d_y_MC, x_MD, ctx.shares), None


def fused_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b in the precision of x. The bias gets no gradient here: whoever reads the result
    makes it, where the gradient of the result is at hand."""
    return _FusedProduct.apply(x, weight, bias)


@triton.jit(do_not_specialize=TABLE_SIZES)
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


@triton.jit(do_not_specialize=TABLE_SIZES)
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
    most = max(1, busy_programs(device, LOOK_UP_PROGRAMS_A_PROCESSOR) // tiles)
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
