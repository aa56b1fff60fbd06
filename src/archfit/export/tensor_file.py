"""A safetensors file written tensor by tensor, so that a large one needs little memory."""

from __future__ import annotations

import json
import math
import os
import shutil
from typing import TYPE_CHECKING

from archfit.export.weights import check_tensors, gpt2_tensors, open_tensors
from archfit.spec import open_regular

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from archfit.export.trained import TrainedRun
    from archfit.export.weights import Tensor

NUMBER_BYTES = 4
ALIGNMENT = 8  # the header ends where a tensor may begin
LENGTH_BYTES, SEPARATORS = 8, (",", ":")
METADATA = {"format": "pt", "made_by": "archfit export"}  # "pt" is what transformers asks for
MARK = f'{{"__metadata__":{json.dumps(METADATA, separators=SEPARATORS)}'.encode()


def check_weights(run: TrainedRun) -> None:
    """Refuse weights that are not those of the run's network."""
    with open_tensors(run) as file:
        check_tensors(file, run)


def is_export(path: Path) -> bool:
    """Whether a file starts as those that `write_weights` wrote."""
    with open_regular(path) as file:
        return file.read(LENGTH_BYTES + len(MARK))[LENGTH_BYTES:] == MARK


def write_weights(run: TrainedRun, folder: Path) -> None:
    """Write model.safetensors with the weights of the run as GPT-2 has them."""
    with open_tensors(run) as file:
        check_tensors(file, run)
        tensors = gpt2_tensors(file, run.spec)
        needed, free = _bytes(tensors), shutil.disk_usage(folder).free
        if needed > free:
            raise ValueError(
                f"the weights need {needed:,} bytes and the disk has {free:,} left; "
                "free some or choose another --out"
            )
        _write(folder / "model.safetensors", tensors)


def _write(path: Path, tensors: Sequence[Tensor]) -> None:
    header = _header(tensors)
    with open(path, "xb") as target:
        target.write(len(header).to_bytes(LENGTH_BYTES, "little") + header)
        for tensor in tensors:
            for part in tensor.parts():
                target.write(part.astype("<f4").tobytes())
        target.flush()
        os.fsync(target.fileno())


def _header(tensors: Sequence[Tensor]) -> bytes:
    entries: dict[str, object] = {"__metadata__": METADATA}
    start = 0
    for tensor in tensors:
        end = start + NUMBER_BYTES * math.prod(tensor.shape)
        entries[tensor.name] = {
            "dtype": "F32",
            "shape": tensor.shape,
            "data_offsets": (start, end),
        }
        start = end
    text = json.dumps(entries, separators=SEPARATORS).encode()
    return text + b" " * (-len(text) % ALIGNMENT)


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum(NUMBER_BYTES * math.prod(tensor.shape) for tensor in tensors)
