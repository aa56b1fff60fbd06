"""The rows of a stored tensor as float64, a block at a time, and how finely they were rounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.audit.bounded_json import shown
from archfit.spec import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from archfit.audit.safetensors_header import StoredTensor

BLOCK_BYTES = 32 << 20  # of float64; a handful of such arrays live at once
FRACTION_BITS = 52  # of a float64
DIGITS = {"BF16": 7, "F16": 10, "F32": 23, "F64": FRACTION_BITS}  # bits after the leading one
LEAST_STEP = {"BF16": 2.0**-133, "F16": 2.0**-24, "F32": 2.0**-149, "F64": 0.0}  # near zero


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounding:
    """How far a stored number may be from the one that was rounded to it."""

    relative: float  # half the distance of two neighbours, over the number
    absolute: float  # half that distance near zero


def blocks(tensor: StoredTensor) -> Iterator[NDArray[np.float64]]:
    """Rows of the tensor, all axes after the first made one; nothing else is read."""
    if tensor.dtype not in DIGITS:
        raise ValueError(
            f"{shown(tensor.name)} in {tensor.file} holds {tensor.dtype}, and spectra are measured "
            f"of {', '.join(DIGITS)}; quantised tables have scales elsewhere: give the original"
        )
    rows, row_bytes = tensor.shape[0], (tensor.end - tensor.start) // max(1, tensor.shape[0])
    columns = tensor.elements // max(1, rows)
    at_once = max(1, BLOCK_BYTES // max(1, 8 * columns))
    with open_regular(tensor.file) as file:
        file.seek(tensor.start)
        for first in range(0, rows, at_once):
            size = min(at_once, rows - first) * row_bytes
            content = file.read(size)
            if len(content) < size:
                raise ValueError(f"{tensor.file} became shorter while it was read; copy it again")
            yield _as_float64(content, tensor).reshape(-1, columns)


def rounding(tensor: StoredTensor, used_bits: int) -> Rounding:
    """That of the narrowest type which holds all numbers, of those not wider than the stored one.

    Weights saved as float32 are often bfloat16 ones with zeros behind them; `used_bits` is the OR
    of the bits of all numbers as float64.
    """
    fraction = used_bits & ((1 << FRACTION_BITS) - 1)
    unused = (fraction & -fraction).bit_length() - 1 if fraction else FRACTION_BITS
    holding = [bits for bits in DIGITS.values() if bits >= FRACTION_BITS - unused]
    digits = min(DIGITS[tensor.dtype], *holding)
    return Rounding(relative=2.0 ** -(digits + 1), absolute=LEAST_STEP[tensor.dtype] / 2)


def _as_float64(content: bytes, tensor: StoredTensor) -> NDArray[np.float64]:
    import numpy as np

    if tensor.dtype == "BF16":  # the upper half of a float32
        halves = np.frombuffer(content, "<u2").astype(np.uint32)
        values = (halves << 16).view(np.float32)
    else:
        values = np.frombuffer(content, {"F16": "<f2", "F32": "<f4", "F64": "<f8"}[tensor.dtype])
    if not np.isfinite(values).all():
        raise ValueError(
            f"{shown(tensor.name)} in {tensor.file} holds NaN or infinity, so it has no spectrum; "
            "give a checkpoint from before the training failed"
        )
    return values.astype(np.float64)
