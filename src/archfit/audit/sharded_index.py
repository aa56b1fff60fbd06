"""Checkpoints in one file or in shards, whose index says which shard holds which tensor."""

from pathlib import Path

from archfit.audit.bounded_json import read_object, shown
from archfit.audit.safetensors_header import (
    Checkpoint,
    StoredTensor,
    header_bytes,
    read_header,
    refuse_pickle,
)

INDEX_ENDING = ".safetensors.index.json"
MOST_INDEX_BYTES = 32 * 10**6  # a mixture of 140,000 tensors has 16 MB
MOST_SHARDS = 2000
MOST_HEADER_BYTES_OF_ALL = 32 * 10**6  # those of 90,000 tensors have 10 MB
LONGEST_NAME = 255  # bytes, on every file system


def read_checkpoint(path: Path) -> Checkpoint:
    """The tensors of a .safetensors file or of all shards of a .safetensors.index.json."""
    refuse_pickle(path)
    return _read_index(path) if path.name.endswith(INDEX_ENDING) else read_header(path)


def _read_index(path: Path) -> Checkpoint:
    shard_of = _weight_map(path)
    shards = sorted(set(shard_of.values()))
    if len(shards) > MOST_SHARDS:
        raise ValueError(
            f"{path} names {len(shards):,} files, over the limit of {MOST_SHARDS}; "
            "save the model in fewer shards"
        )
    _check_headers(path, shards)
    tensors = [tensor for shard in shards for tensor in _of_shard(path, shard, shard_of)]
    absent = shard_of.keys() - {tensor.name for tensor in tensors}
    if absent:
        name = min(absent)
        raise ValueError(
            f"{path} says that {shown(name)} is in {shard_of[name]}, but it is not; "
            "copy index and shards again"
        )
    return Checkpoint(path=path, tensors=tuple(tensors))


def _check_headers(path: Path, shards: list[str]) -> None:
    """Refuse shards whose headers would take minutes to read, link by link to one file, say."""
    total = sum(header_bytes(file) for file in map(path.with_name, shards) if file.exists())
    if total > MOST_HEADER_BYTES_OF_ALL:
        raise ValueError(
            f"the files that {path} names have headers of {total:,} bytes together, over the limit "
            f"of {MOST_HEADER_BYTES_OF_ALL:,}; give the index of one model"
        )


def _of_shard(path: Path, shard: str, shard_of: dict[str, str]) -> list[StoredTensor]:
    file = path.with_name(shard)
    if not file.exists():
        raise ValueError(f"{path} names {shard}, which is not beside it; copy it there")
    return [tensor for tensor in read_header(file).tensors if shard_of.get(tensor.name) == shard]


def _weight_map(path: Path) -> dict[str, str]:
    weight_map = read_object(path, most_bytes=MOST_INDEX_BYTES).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(f"{path} has no weight_map from tensors to files; give a model's index")
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or not _is_plain(shard):
            raise ValueError(
                f"{path} puts {shown(name)} into {shown(shard)}, and a shard is a .safetensors "
                "file in the folder of the index; write the index again"
            )
    return weight_map


def _is_plain(shard: str) -> bool:
    """Whether it names a file of this folder: nothing that leads out of it, or to a pickle."""
    is_name = shard.isprintable() and not set(shard) & set("/\\:")
    return is_name and len(shard.encode()) <= LONGEST_NAME and shard.endswith(".safetensors")
