"""Products of float32 weights in the precision of autocast, by torch; and a Triton kernel of the
gradient of a narrow matrix, which is a sum over all rows of a batch.

Its programs leave shares of the sum; gradient_shares.py adds them up. Torch's products take three
kernels a matrix, and a small network spends its time on starting kernels.

Shape letters: M rows, C outputs, D inputs, P shares.
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.tiles import alignment, busy_programs

WIDEST, LONGEST = 128, 768  # sides of a matrix; beyond them torch's products are faster
ROWS = 64  # at a time
MOST_SHARES, LEAST_ROWS = 64, 256  # of a matrix; of a share
PROGRAMS_A_PROCESSOR = 2
SIZES = ["rows", "outputs", "inputs", "chunk"]


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


def product_shares(d_y_MC: Tensor, x_MD: Tensor, shares_PCD: Tensor) -> None:
    """Shares of d_y^T x, each over some of the rows."""
    (rows, outputs), inputs = d_y_MC.shape, x_MD.shape[1]
    tile = _product_tile(outputs, inputs)
    grid = triton.cdiv(outputs, tile["OUT"]), triton.cdiv(inputs, tile["IN"]), len(shares_PCD)
    chunk = triton.cdiv(triton.cdiv(rows, len(shares_PCD)), ROWS) * ROWS
    _product_shares[grid](
        d_y_MC.contiguous(), x_MD.contiguous(), shares_PCD, rows, outputs, inputs, chunk, **tile
    )


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
        product_shares(d_y_MC, x_MD, shares_PCD)
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
