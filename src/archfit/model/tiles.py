"""What the Triton kernels share: sizes of tiles, and the hint that lets rows be read in vectors.

A process trains hundreds of networks of different sizes, and compiling takes seconds. So widths,
heads and lengths are ordinary arguments that Triton does not specialise on (`do_not_specialize`);
only tiles, which are powers of two, and flags are compiled in.

Programs that sum the rows of a long matrix leave their shares side by side; `share_sums` adds them
up in one order, in a third of the time of torch's sum.
"""

import math
import os
from collections.abc import Callable
from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

# Products and sums are fused into one rounding, whatever the default of a Triton to come.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

Zeros = Callable[..., Tensor]  # a tensor of a shape, in bfloat16
Work = dict[tuple[object, ...], Callable[[], object]]  # a run of each kernel, by its variant
SHARES, COLUMNS = 256, 16  # that a program adds up at a time


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
@no_type_check
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
