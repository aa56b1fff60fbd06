"""A prepared data set on disk: what its data.json says, its tokens, and the way back to content.

Who opens one sees one snapshot of it: files are mapped once, and a file that changes meanwhile is
refused. A block of tokens is compared with its checksum when it is first read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archfit.data.shards import BLOCK_BYTES, DIGEST_BYTES
from archfit.data.vocabulary import Vocabulary
from archfit.spec import files
from archfit.spec import lazy_numpy as np
from archfit.spec.data_kinds import DATA_KINDS, LARGEST_VOCAB
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.lazy_numpy import NDArray

FORMAT_VERSION = 1
SIDES = {"train": files.TRAIN_TOKENS, "heldout": files.HELDOUT_TOKENS}
FILES = {*SIDES.values(), files.TOKENIZER, files.DATA, files.CHECKSUMS}
WIDTHS = {"uint16": 2, "uint32": 4}  # bytes of an id
# What every data.json has, and says of each side; 0.1 wrote the same keys.
TYPES: dict[str, type] = {
    **dict.fromkeys(("kind", "vocabulary", "dtype", "data_hash", "tokenizer_sha256"), str),
    **dict.fromkeys(("format", "vocab", "used_vocab", "embedding_rank_limit", "documents"), int),
    **dict.fromkeys(("unigram_entropy_bits", "bytes_per_token"), float),
    **dict.fromkeys(("split", "leakage", "cooccurrence", *SIDES), dict),
    **dict.fromkeys(("tokens", "bytes"), int),
    "work_hash": str,
    "warnings": list,
}
TYPES_OF_SIDE: dict[str, type] = {"tokens": int, "bytes": int, "sha256": str}
LARGEST_NUMBER = 1 << 60  # of tokens or bytes


def _identity(path: str | Path) -> tuple[int, ...]:
    """What tells a file from one that took its name, and from itself before somebody wrote; nothing
    of one that is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class Shard:
    """The ids of one side, mapped once, and which blocks of them were compared with a checksum.

    Data sets of 0.1 have no checksums: all of the file is then one block, whose checksum is the
    hash of the side.
    """

    def __init__(self, path: Path, dtype: str, digests: bytes, block_bytes: int) -> None:
        self.path = path
        self.ids = mapped_ids(path, dtype)
        self._content = self.ids.view("u1")
        self._block_bytes = block_bytes
        self._unread = np.ones(-(-len(self._content) // block_bytes), bool)
        self._digests = np.frombuffer(digests, np.uint8).reshape(len(self._unread), -1)

    def check(self, starts: NDArray[np.int64], length: int) -> None:
        """Refuse rows of `length` ids at `starts` that are not what was written."""
        if not self._unread.any():
            return
        places = np.array([starts, starts + length]) * self.ids.itemsize
        first, last = (places - [[0], [1]]) // self._block_bytes
        blocks = np.minimum(first + np.arange(int((last - first).max()) + 1)[:, None], last)
        for block in sorted({*blocks[self._unread[blocks]].tolist()}):
            start = block * self._block_bytes
            content, noted = self._content[start : start + self._block_bytes], self._digests[block]
            if hashlib.sha256(content.data).digest()[: len(noted)] != noted.tobytes():
                place = {"first": f"{start:,}", "last": f"{start + len(content) - 1:,}"}
                raise refusal("other-checksum", path=self.path, **place)
            self._unread[block] = False


@dataclass(frozen=True, slots=True)
class PreparedData:
    """A folder that was found complete, and the content of its data.json."""

    folder: Path
    description: dict[str, Any]
    _opened: dict[str, tuple[int, ...]] = field(repr=False, compare=False)  # files, as they were
    _shards: dict[str, Shard] = field(default_factory=dict, repr=False, compare=False)

    @property
    def kind(self) -> str:
        """The kind of data that it was made from."""
        return str(self.description["kind"])

    @property
    def units(self) -> str:
        """What its content is made of: bytes, letters, or values that cannot be regrouped."""
        return DATA_KINDS[self.kind].units if self.kind in DATA_KINDS else "values"

    @property
    def vocab(self) -> int:
        """Rows an embedding table needs."""
        return int(self.description["vocab"])

    @property
    def train_tokens(self) -> int:
        """Tokens to train on."""
        return int(self.description["train"]["tokens"])

    @property
    def data_hash(self) -> str:
        """The name of these tokens, vocabulary and tokenizer, wherever they lie."""
        return str(self.description["data_hash"])

    def tokens(self, side: str) -> NDArray[np.unsignedinteger]:
        """The ids of `train` or `heldout`, mapped from disk, not read and not checked."""
        return self.shard(side).ids

    def shard(self, side: str) -> Shard:
        """One side, the same for all who ask."""
        if side not in self._shards:
            digests, block_bytes = self._checksums(side)
            path, dtype = self.folder / SIDES[side], str(self.description["dtype"])
            self._opened[str(path)] = _identity(path)
            self._shards[side] = Shard(path, dtype, digests, block_bytes)
            self.check_unchanged()  # nobody replaced the folder since it was described
        return self._shards[side]

    def _checksums(self, side: str) -> tuple[bytes, int]:
        """The checksums of the blocks of a side, and how long a block is."""
        sizes = {key: (self.folder / name).stat().st_size for key, name in SIDES.items()}
        lengths = [DIGEST_BYTES * -(-size // BLOCK_BYTES) for size in sizes.values()]
        try:
            digests = files.read_bounded(self.folder / files.CHECKSUMS, sum(lengths))
        except FileNotFoundError:
            return bytes.fromhex(self.description[side]["sha256"]), sizes[side]
        except ValueError:
            digests = b""
        refuse_if(len(digests) != sum(lengths), "damaged-checksums", folder=repr(str(self.folder)))
        return (digests[: lengths[0]] if side == "train" else digests[lengths[0] :]), BLOCK_BYTES

    def check_unchanged(self) -> None:
        """Refuse to go on where a file was replaced or written to since it was opened."""
        for path, before in self._opened.items():
            if _identity(path) != before:
                raise refusal("changed-in-use", path=path)

    def vocabulary(self) -> Vocabulary:
        """What turns ids back into content."""
        from archfit.data.kinds import read_vocabulary

        content = files.read_bounded(self.folder / files.TOKENIZER, files.LARGEST_TOKENIZER)
        is_other = hashlib.sha256(content).hexdigest() != self.description["tokenizer_sha256"]
        refuse_if(is_other, "damaged-tokenizer", folder=repr(str(self.folder)))
        return read_vocabulary(content.decode(), files.TOKENIZER)

    def decode(self, side: str) -> list[bytes]:
        """The content of the documents of a side."""
        return self.vocabulary().decode(self.tokens(side))

    def verify(self) -> None:
        """Read every file and compare its hash with the one noted when it was written."""
        hashes = {file: self.description[side]["sha256"] for side, file in SIDES.items()}
        hashes[files.TOKENIZER] = self.description["tokenizer_sha256"]
        for name, noted in hashes.items():
            with open(self.folder / name, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            refuse_if(found != noted, "other-hash", path=f"{self.folder.name}/{name}")
        for side in SIDES:
            self.shard(side).check(np.zeros(1, np.int64), len(self.tokens(side)))


def mapped_ids(path: Path, dtype: str) -> NDArray[np.unsignedinteger]:
    """The ids in a file that is not empty, mapped from disk and not read."""
    return np.asarray(np.memmap(path, mode="r", dtype=np.dtype(dtype).newbyteorder("<")))


def open_prepared(folder: Path) -> PreparedData:
    """The data set in `folder`, if it is complete: described, with files as long as described."""
    path = folder / files.DATA
    refuse_if(not path.is_file(), "not-prepared", folder=repr(str(folder)))
    identity = _identity(path)
    try:
        description: dict[str, Any] = files.read_object(path, most_bytes=files.LARGEST_DATA)
        _check_types(description, TYPES)
        for side in SIDES:
            _check_types(description[side], TYPES_OF_SIDE, f"{side}.")
        _check_values(description)
        _check_files(folder, description)
    except ValueError as problem:
        what = str(problem).removeprefix(f"{folder}/").partition(";")[0]
        raise refusal("damaged-data", folder=repr(str(folder)), what=what) from None
    return PreparedData(folder, description, {str(path): identity})


def _check_types(part: dict[str, Any], types: dict[str, type], within: str = "") -> None:
    """Refuse what other programs, or people, wrote into the places of our words and numbers."""
    for key, kind in types.items():
        name = f"{within}{key}"
        refuse_if(key not in part, "data-lacks", name=name)
        is_kind = type(part[key]) is kind or (kind, type(part[key])) == (float, int)
        refuse_if(not is_kind, "data-of-other-kind", name=name, kind=kind.__name__)
        is_large = kind in (int, float) and not 0 <= part[key] < LARGEST_NUMBER
        refuse_if(is_large, "data-number", name=name, number=part[key])


def _check_values(description: dict[str, Any]) -> None:
    """Refuse values that cannot be, or do not agree."""
    refuse_if(description["format"] != FORMAT_VERSION, "data-format", known=FORMAT_VERSION)
    vocab, size = description["vocab"], description["bytes_per_token"]
    is_possible = 2 <= vocab <= LARGEST_VOCAB and size > 0
    refuse_if(not is_possible, "data-tokens", vocab=vocab, size=size)
    for key in ("input", "heldout_input"):
        inputs = description.get(key, [])
        parts = inputs if isinstance(inputs, list) else [inputs]
        are_named = (isinstance(part, dict) and type(part.get("name")) is str for part in parts)
        refuse_if(not all(are_named), "data-inputs", key=key)
    for key in ("tokens", "bytes"):
        both = sum(description[side][key] for side in SIDES)
        refuse_if(description[key] != both, "data-sum", key=key)
    refuse_if(description["data_hash"] != named_hash(description), "data-hash")


def _check_files(folder: Path, description: dict[str, Any]) -> None:
    """Refuse files that are missing or not as long as described."""
    dtype = description["dtype"]
    refuse_if(dtype not in WIDTHS, "data-dtype", dtype=repr(dtype))
    refuse_if(not (folder / files.TOKENIZER).is_file(), "no-tokenizer-file")
    for side, name in SIDES.items():
        path, tokens = folder / name, description[side]["tokens"]
        is_whole = path.is_file() and path.stat().st_size == tokens * WIDTHS[dtype]
        refuse_if(not is_whole, "shard-of-other-size", name=name, tokens=tokens)
        refuse_if(min(description[side]["bytes"], tokens) < 1, "empty-side", side=side)


def named_hash(description: Mapping[str, Any]) -> str:
    """The name a run gives its data: a hash of tokens, tokenizer and vocabulary only."""
    named = {"vocab": description["vocab"], "tokenizer": description["tokenizer_sha256"]}
    named |= {side: description[side]["sha256"] for side in SIDES}
    return sha256(json.dumps(named, sort_keys=True))


def sha256(text: str) -> str:
    """The hash of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
