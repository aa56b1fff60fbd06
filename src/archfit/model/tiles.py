"""What the Triton kernels share: sizes of tiles, and the hint that lets rows be read in vectors.

A process trains hundreds of networks of different sizes, and compiling takes seconds. So widths,
heads and lengths are ordinary arguments that Triton does not specialise on (`do_not_specialize`);
only tiles, which are powers of two, and flags are compiled in.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

Zeros = Callable[..., Tensor]  # a tensor of a shape, in bfloat16
Work = dict[tuple[object, ...], Callable[[], object]]  # a run of each kernel, by its variant


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
