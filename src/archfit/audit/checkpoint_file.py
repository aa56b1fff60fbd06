"""What a .safetensors file, or the index of several, says it holds: read from headers alone.

A file starts with the length of the header (8 bytes, little-endian) and the header, a JSON object:
name -> dtype, shape, data_offsets. The data follow, each byte of them in one tensor. The files are
taken for hostile. The safetensors library is the oracle of the tests, and not used here: it takes
headers of 100 MB and names that stand twice, does not say where a tensor lies, and loads numpy to
open a file.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from archfit.spec.codec import parse_object
from archfit.spec.errors import brief, refusal, refuse_if
from archfit.spec.files import open_regular, read_object

LENGTH_BYTES = 8
# What Python makes of much JSON fills gigabytes. This is room for 100,000 tensors; larger
# checkpoints come in shards.
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
TENSORS, INDEX_ENDING = ".safetensors", ".safetensors.index.json"
MOST_INDEX_BYTES = 32 * 10**6  # a mixture of 140,000 tensors has 16 MB
MOST_SHARDS = 2000
MOST_HEADER_BYTES_OF_ALL = 32 * 10**6  # those of 90,000 tensors have 10 MB
LONGEST_FILE_NAME = 255  # bytes, on every file system


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

    @property
    def place(self) -> str:
        """Its name and file, for a sentence."""
        return f"{brief(self.name)} in {self.file}"


Tensors = tuple[StoredTensor, ...]


def read_checkpoint(path: Path) -> Tensors:
    """The tensors of a .safetensors file or of all shards of a .safetensors.index.json."""
    refuse_pickle(path)
    return _read_index(path) if path.name.endswith(INDEX_ENDING) else read_header(path)


def read_header(path: Path) -> Tensors:
    """The tensors that a .safetensors file holds, in its order; of its data nothing is read."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            content = _header_bytes(file, size)
        document = parse_object(content, where="its header")
        first = LENGTH_BYTES + len(content)
        metadata = document.pop(METADATA, {})
        if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
            raise ValueError(f"{METADATA} must map words to words; remove it")
        found = [_tensor(name, entry, path, first) for name, entry in document.items()]
        tensors = tuple(sorted(found, key=lambda tensor: (tensor.start, tensor.end)))
        _check_cover(tensors, first=first, size=size)
    except ValueError as problem:
        raise ValueError(f"{path} is no sound safetensors file: {problem}") from problem
    return tensors


def refuse_pickle(path: Path) -> None:
    """Refuse a file whose name says pickle, unopened."""
    is_pickle = path.suffix.lower() in PICKLES or path.name.endswith(".bin.index.json")
    refuse_if(is_pickle, "pickled", file=path)


def _header_bytes(file: BinaryIO, size: int) -> bytes:
    start = file.read(LENGTH_BYTES)
    length = int.from_bytes(start, "little")
    refuse_if(len(start) < LENGTH_BYTES, "no-header", size=size)
    left, said = size - LENGTH_BYTES, f"{length:,}"
    is_odd = length > min(MOST_HEADER_BYTES, left)
    refuse_if(is_odd and start.startswith(PICKLE_MAGIC), "pickled", file="it")
    refuse_if(length > left, "cut-header", length=said, size=f"{size:,}")
    refuse_if(is_odd, "long-header", length=said, most=f"{MOST_HEADER_BYTES:,}")
    content = file.read(length)
    refuse_if(len(content) < length, "shorter-header")
    return content


def _tensor(name: str, entry: object, path: Path, first: int) -> StoredTensor:
    if len(name) > LONGEST_NAME or not name.isprintable():  # it is shown, and split at its points
        raise refusal("tensor-name", name=brief(name), longest=LONGEST_NAME)
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise ValueError(f"{brief(name)} lacks dtype, shape or data_offsets; write it again")
    dtype, offsets = entry["dtype"], _sizes(entry["data_offsets"])
    shape = _sizes(entry["shape"])
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        known = ", ".join(DTYPE_BITS)
        raise ValueError(f"{brief(name)} has the dtype {brief(dtype)}; known are {known}")
    if shape is None or offsets is None or len(offsets) != 2:
        raise refusal("tensor-sizes", name=brief(name))
    elements = 1
    for size in shape:  # one by one: the product of a long shape would itself fill the memory
        elements *= size
        if elements > MOST_ELEMENTS:
            raise ValueError(f"the shape of {brief(name)} has over 2^63 elements; write it again")
    bits = DTYPE_BITS[dtype] * elements
    if (offsets[1] - offsets[0]) * 8 != bits:
        place = f"{offsets[0]}..{offsets[1]}"
        raise refusal("tensor-place", name=brief(name), place=place, needed=f"{bits / 8:.15g}")
    start, end = (first + offset for offset in offsets)
    return StoredTensor(name=name, dtype=dtype, shape=shape, file=path, start=start, end=end)


def _sizes(value: object) -> tuple[int, ...] | None:
    """The numbers of a list of sizes; None if it is anything else."""
    if not isinstance(value, list) or not all(type(size) is int and size >= 0 for size in value):
        return None
    return tuple(value)


def _check_cover(tensors: Tensors, *, first: int, size: int) -> None:
    """Each byte after the header is in one tensor: no overlap, gap, or end past the file."""
    places = [(first, "the header"), *((tensor.end, brief(tensor.name)) for tensor in tensors)]
    starts = [*((tensor.start, brief(tensor.name)) for tensor in tensors), (size, "the file's end")]
    for (end, before), (start, after) in zip(places, starts, strict=True):
        if start != end:
            what = f"{'overlap' if start < end else 'leave a gap'}; copy or write it again"
            raise ValueError(f"{before} up to byte {end:,} and {after} at {start:,} {what}")


# ---- shards


def _read_index(path: Path) -> Tensors:
    shard_of = _weight_map(path)
    shards = sorted(set(shard_of.values()))
    count = f"{len(shards):,}"
    refuse_if(len(shards) > MOST_SHARDS, "many-shards", path=path, count=count, most=MOST_SHARDS)
    for shard in shards:
        refuse_if(not path.with_name(shard).exists(), "absent-shard", path=path, shard=shard)
    total = 0
    for shard in shards:  # link by link to one file, say, their headers would take minutes to read
        with open_regular(path.with_name(shard)) as file:
            total += int.from_bytes(file.read(LENGTH_BYTES), "little")
    shown = {"total": f"{total:,}", "most": f"{MOST_HEADER_BYTES_OF_ALL:,}"}
    refuse_if(total > MOST_HEADER_BYTES_OF_ALL, "long-headers", path=path, **shown)
    headers = ((shard, read_header(path.with_name(shard))) for shard in shards)
    tensors = [t for shard, held in headers for t in held if shard_of.get(t.name) == shard]
    if absent := shard_of.keys() - {tensor.name for tensor in tensors}:
        name = min(absent)
        raise refusal("not-in-shard", path=path, name=brief(name), shard=shard_of[name])
    return tuple(tensors)


def _weight_map(path: Path) -> dict[str, str]:
    weight_map = read_object(path, most_bytes=MOST_INDEX_BYTES).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(f"{path} has no weight_map from tensors to files; give a model's index")
    for name, shard in weight_map.items():
        # A file of this folder: nothing that leads out of it, or to a pickle.
        is_name = isinstance(shard, str) and shard.isprintable() and not set(shard) & set("/\\:")
        is_short = is_name and len(shard.encode()) <= LONGEST_FILE_NAME
        if not is_short or not shard.endswith(TENSORS):
            raise refusal("shard-name", path=path, name=brief(name), shard=brief(shard))
    return weight_map
