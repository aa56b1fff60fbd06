"""What a .safetensors file says it holds, read from its header alone and taken for hostile.

The file starts with the length of the header (8 bytes, little-endian) and the header, a JSON
object: name -> dtype, shape, data_offsets. The data follow, each byte of them in one tensor.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from archfit.audit.bounded_json import parse_object, shown
from archfit.spec import open_regular

LENGTH_BYTES = 8
# The safetensors library takes 100 MB, but what Python makes of so much JSON fills gigabytes.
# This is room for 100,000 tensors; larger checkpoints come in shards.
MOST_HEADER_BYTES = 16 * 10**6
MOST_ELEMENTS = 2**63 - 1
LONGEST_NAME = 1000  # characters; those of a mixture have about 80
METADATA = "__metadata__"
DTYPE_BITS = (
    {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
    | dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8)
    | dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8)
    | dict.fromkeys(("I16", "U16", "F16", "BF16"), 16)
    | dict.fromkeys(("I32", "U32", "F32"), 32)
    | dict.fromkeys(("I64", "U64", "F64", "C64"), 64)
)
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
PICKLE_MAGIC = (b"PK\x03\x04", *(bytes([0x80, protocol]) for protocol in range(1, 6)))


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTensor:
    """Where a tensor lies: `file` from byte `start` up to `end`."""

    name: str
    dtype: str  # as the file spells it: BF16
    shape: tuple[int, ...]
    file: Path
    start: int
    end: int

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """The tensors of one .safetensors file, or of all shards that an index names."""

    path: Path
    tensors: tuple[StoredTensor, ...]  # in the order of the file


def read_header(path: Path) -> Checkpoint:
    """The tensors that a .safetensors file holds; of its data nothing is read."""
    refuse_pickle(path)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            content = _header_bytes(file, size)
        document = parse_object(content, where="its header")
        tensors = _tensors(document, path, first=LENGTH_BYTES + len(content))
        _check_cover(tensors, first=LENGTH_BYTES + len(content), size=size)
    except ValueError as problem:
        raise ValueError(f"{path} is no sound safetensors file: {problem}") from problem
    return Checkpoint(path=path, tensors=tensors)


def header_bytes(path: Path) -> int:
    """How long a file says that its header is; nothing else is read."""
    with open_regular(path) as file:
        return int.from_bytes(file.read(LENGTH_BYTES), "little")


def refuse_pickle(path: Path) -> None:
    """Refuse a file whose name says pickle, unopened."""
    if path.suffix.lower() in PICKLES or path.name.endswith(".bin.index.json"):
        raise ValueError(f"{path} is {_PICKLED}")


_PICKLED = (
    "a pickled checkpoint, and unpickling can run any code, so it is never opened; load it where "
    "you trust it by torch.load(file, weights_only=True) and write the tensors by "
    "safetensors.torch.save_file"
)


def _header_bytes(file: BinaryIO, size: int) -> bytes:
    start = file.read(LENGTH_BYTES)
    length = int.from_bytes(start, "little")
    if len(start) < LENGTH_BYTES:
        raise ValueError(f"it has {size} bytes, too few for a header; write it again")
    if length > min(MOST_HEADER_BYTES, size - LENGTH_BYTES):
        raise ValueError(_bad_length(start, length, size))
    content = file.read(length)
    if len(content) < length:
        raise ValueError("it became shorter while it was read; wait until it is written")
    return content


def _bad_length(start: bytes, length: int, size: int) -> str:
    if start.startswith(PICKLE_MAGIC):
        return f"it is {_PICKLED}"
    if length > size - LENGTH_BYTES:
        return (
            f"a header of {length:,} bytes does not fit its {size:,} bytes; it was cut off or is "
            "of another kind: copy it again"
        )
    return (
        f"its header of {length:,} bytes is over the limit of {MOST_HEADER_BYTES:,}; split the "
        "model into shards"
    )


def _tensors(document: dict[str, object], path: Path, *, first: int) -> tuple[StoredTensor, ...]:
    metadata = document.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"{METADATA} must map words to words; remove it")
    found = [_tensor(name, entry, path, first) for name, entry in document.items()]
    return tuple(sorted(found, key=lambda tensor: (tensor.start, tensor.end)))


def _tensor(name: str, entry: object, path: Path, first: int) -> StoredTensor:
    if len(name) > LONGEST_NAME or not name.isprintable():  # it is shown, and split at its points
        raise ValueError(
            f"the name {shown(name)} is over {LONGEST_NAME} characters long or holds control "
            "characters; rename the tensor"
        )
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise ValueError(f"{shown(name)} lacks dtype, shape or data_offsets; write it again")
    dtype, offsets = entry["dtype"], _sizes(entry["data_offsets"])
    shape = _sizes(entry["shape"])
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise ValueError(
            f"{shown(name)} has the dtype {shown(dtype)}; known are {', '.join(DTYPE_BITS)}"
        )
    if shape is None or offsets is None or len(offsets) != 2:
        raise ValueError(
            f"the shape and data_offsets of {shown(name)} must be lists of whole numbers from 0, "
            "two of them in data_offsets; write it again"
        )
    _check_bytes(name, DTYPE_BITS[dtype] * _elements(name, shape), offsets)
    start, end = (first + offset for offset in offsets)
    return StoredTensor(name=name, dtype=dtype, shape=shape, file=path, start=start, end=end)


def _sizes(value: object) -> tuple[int, ...] | None:
    """The numbers of a list of sizes; None if it is anything else."""
    if not isinstance(value, list) or not all(type(size) is int and size >= 0 for size in value):
        return None
    return tuple(value)


def _elements(name: str, shape: tuple[int, ...]) -> int:
    elements = 1
    for size in shape:  # one by one: the product of a long shape would itself fill the memory
        elements *= size
        if elements > MOST_ELEMENTS:
            raise ValueError(f"the shape of {shown(name)} has over 2^63 elements; write it again")
    return elements


def _check_bytes(name: str, bits: int, offsets: tuple[int, ...]) -> None:
    if (offsets[1] - offsets[0]) * 8 != bits:
        raise ValueError(
            f"{shown(name)} lies at {offsets[0]}..{offsets[1]}, but its shape and dtype need "
            f"{bits / 8:.15g} bytes; write it again"
        )


def _check_cover(tensors: tuple[StoredTensor, ...], *, first: int, size: int) -> None:
    """Each byte after the header is in one tensor: no overlap, gap, or end past the file."""
    places = [(first, "the header"), *((tensor.end, shown(tensor.name)) for tensor in tensors)]
    starts = [*((tensor.start, shown(tensor.name)) for tensor in tensors), (size, "the file's end")]
    for (end, before), (start, after) in zip(places, starts, strict=True):
        if start != end:
            what = "overlap" if start < end else "leave a gap"
            raise ValueError(
                f"{before} up to byte {end:,} and {after} at {start:,} {what}; copy or write it "
                "again"
            )
