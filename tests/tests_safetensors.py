"""Safetensors files written by hand, sound and broken."""

import json
import os
from pathlib import Path

ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def write_raw(path: Path, header: bytes, data: bytes = b"", *, length: int | None = None) -> Path:
    """A file of a header and data as given; `length` is what it says of its header."""
    size = len(header) if length is None else length
    path.write_bytes(size.to_bytes(8, "little") + header + data)
    return path


def write_shapes(path: Path, shapes: dict[str, tuple[str, list[int]]]) -> Path:
    """A sound file of zeros with these dtypes and shapes; on the disk it takes its header only."""
    header, at = {}, 0
    sizes = {"F32": 4, "BF16": 2, "F16": 2, "F64": 8, "I64": 8, "U8": 1, "BOOL": 1, "U32": 4}
    for name, (dtype, shape) in shapes.items():
        size = sizes[dtype]
        for axis in shape:
            size *= axis
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    write_raw(path, json.dumps(header).encode())
    os.truncate(path, path.stat().st_size + at)
    return path
