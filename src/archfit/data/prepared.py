"""A prepared data set on disk: what its data.json says, its tokens, and the way back to content.

Who opens one sees one snapshot of it: files are mapped once, and a file that changes meanwhile is
refused. A block of tokens is compared with its checksum when it is first read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from archfit.data.shards import BLOCK_BYTES, DIGEST_BYTES
from archfit.spec import lazy_numpy as np
from archfit.spec.data_kinds import DATA_KINDS, LARGEST_VOCAB
from archfit.spec.files import (
    CHECKSUMS,
    DATA,
    HELDOUT_TOKENS,
    LARGEST_DATA,
    LARGEST_TOKENIZER,
    TOKENIZER,
    TRAIN_TOKENS,
    read_bounded,
    read_object,
    write_whole,
)
from archfit.spec.lazy_numpy import NDArray

if TYPE_CHECKING:
    from archfit.data.sources import DataSettings
    from archfit.data.streams import InputFile
    from archfit.data.vocabulary import Vocabulary

FORMAT_VERSION = 1
SIDES = {"train": TRAIN_TOKENS, "heldout": HELDOUT_TOKENS}
FILES = {*SIDES.values(), TOKENIZER, DATA, CHECKSUMS}
WIDTHS = {"uint16": 2, "uint32": 4}  # bytes of an id
# What every data.json has; 0.1 wrote the same keys.
TYPES: dict[type, tuple[str, ...]] = {
    str: ("kind", "vocabulary", "dtype", "data_hash", "work_hash", "tokenizer_sha256"),
    int: ("vocab", "used_vocab", "embedding_rank_limit", "tokens", "bytes", "documents"),
    float: ("unigram_entropy_bits", "bytes_per_token"),
    dict: ("split", "leakage", "cooccurrence", *SIDES),
    list: ("warnings",),
}
LARGEST_NUMBER = 1 << 60  # of tokens or bytes


def _identity(path: str | Path) -> tuple[int, ...]:
    """What tells a file from one that took its name, and from itself before somebody wrote."""
    found = os.stat(path)
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
        self._left = len(self._unread)
        self._digests = np.frombuffer(digests, np.uint8).reshape(self._left, -1)

    def check(self, starts: NDArray[np.int64], length: int) -> None:
        """Refuse rows of `length` ids at `starts` that are not what was written."""
        if self._left:
            size = self.ids.itemsize
            first = starts * size // self._block_bytes
            last = ((starts + length) * size - 1) // self._block_bytes
            for step in range(int((last - first).max()) + 1):
                blocks = np.minimum(first + step, last)
                for block in np.unique(blocks[self._unread[blocks]]).tolist():
                    self._check_block(block)

    def check_all(self) -> None:
        """Refuse a file that is not what was written."""
        for block in np.flatnonzero(self._unread).tolist():
            self._check_block(block)

    def _check_block(self, block: int) -> None:
        start = block * self._block_bytes
        content, noted = self._content[start : start + self._block_bytes], self._digests[block]
        if hashlib.sha256(content.data).digest()[: len(noted)] != noted.tobytes():
            where = f"in bytes {start:,} to {start + len(content) - 1:,}"
            raise ValueError(
                f"{self.path} is not what was written: its checksum differs {where}; "
                "prepare it again with --overwrite"
            )
        self._unread[block] = False
        self._left -= 1


@dataclass(frozen=True, slots=True)
class PreparedData:
    """A folder that was found complete, and the content of its data.json."""

    folder: Path
    description: dict[str, object]
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
        return int(str(self.description["vocab"]))

    @property
    def train_tokens(self) -> int:
        """Tokens to train on."""
        return int(str(_member(self.description, "train", "tokens")))

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
        sizes = [(self.folder / name).stat().st_size for name in SIDES.values()]
        lengths = [DIGEST_BYTES * -(-size // BLOCK_BYTES) for size in sizes]
        try:
            digests = read_bounded(self.folder / CHECKSUMS, sum(lengths))
        except FileNotFoundError:
            size = sizes[list(SIDES).index(side)]
            return bytes.fromhex(str(_member(self.description, side, "sha256"))), size
        except ValueError:
            digests = b""
        if len(digests) != sum(lengths):
            raise _damaged(self.folder, f"{CHECKSUMS} is not that of these tokens")
        return (digests[: lengths[0]] if side == "train" else digests[lengths[0] :]), BLOCK_BYTES

    def check_unchanged(self) -> None:
        """Refuse to go on where a file was replaced or written to since it was opened."""
        for path, before in self._opened.items():
            try:
                is_same = _identity(path) == before
            except FileNotFoundError:
                is_same = False
            if not is_same:
                raise ValueError(
                    f"{path} changed while it was in use, so a record would name data that it was "
                    "not made from; give the same command again when nothing writes to it"
                )

    def vocabulary(self) -> Vocabulary:
        """What turns ids back into content."""
        from archfit.data.kinds import read_vocabulary

        content = read_bounded(self.folder / TOKENIZER, LARGEST_TOKENIZER)
        if hashlib.sha256(content).hexdigest() != self.description["tokenizer_sha256"]:
            raise _damaged(self.folder, f"{TOKENIZER} is not what was written: its hash differs")
        return read_vocabulary(content.decode(), TOKENIZER)

    def decode(self, side: str) -> list[bytes]:
        """The content of the documents of a side."""
        return self.vocabulary().decode(self.tokens(side))

    def verify(self) -> None:
        """Read every file and compare its hash with the one noted when it was written."""
        hashes = {file: _member(self.description, side, "sha256") for side, file in SIDES.items()}
        for name, noted in (hashes | {TOKENIZER: self.description["tokenizer_sha256"]}).items():
            with open(self.folder / name, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != str(noted):
                what = f"{self.folder.name}/{name} is not what was written: its hash differs"
                raise ValueError(f"{what}; prepare it again with --overwrite")
        for side in SIDES:
            self.shard(side).check_all()


def mapped_ids(path: Path, dtype: str) -> NDArray[np.unsignedinteger]:
    """The ids in a file that is not empty, mapped from disk and not read."""
    return np.asarray(np.memmap(path, mode="r", dtype=np.dtype(dtype).newbyteorder("<")))


def open_prepared(folder: Path) -> PreparedData:
    """The data set in `folder`, if it is complete: described, with files as long as described."""
    path = folder / DATA
    if not path.is_file():
        rule = f"is not a prepared data set: it has no {DATA}"
        raise ValueError(f"{str(folder)!r} {rule}; make one by archfit data prepare")
    identity = _identity(path)
    try:
        description = read_object(path, most_bytes=LARGEST_DATA)
    except ValueError as problem:
        raise _damaged(folder, str(problem).removeprefix(f"{folder}/").partition(";")[0]) from None
    if description.get("format") != FORMAT_VERSION:
        raise _damaged(folder, f"{DATA} is not of format {FORMAT_VERSION}")
    _check_types(folder, description)
    _check_sizes(folder, description)
    if description["data_hash"] != named_hash(description):
        raise _damaged(folder, f"the data_hash of {DATA} is not that of the tokens it describes")
    return PreparedData(folder, description, {str(path): identity})


def _check_types(folder: Path, description: dict[str, object]) -> None:
    """Refuse what other programs, or people, wrote into the places of our words and numbers."""
    if missing := [key for keys in TYPES.values() for key in keys if key not in description]:
        raise _damaged(folder, f"{DATA} lacks {', '.join(missing)}")
    for kind, key in ((kind, key) for kind, keys in TYPES.items() for key in keys):
        value = description[key]
        if type(value) is not kind and (kind, type(value)) != (float, int):
            raise _damaged(folder, f"{key} in {DATA} is no {kind.__name__}")
        if isinstance(value, int | float) and not 0 <= value < LARGEST_NUMBER:
            raise _damaged(folder, f"{key} in {DATA} is {value}")
    vocab, size = int(str(description["vocab"])), float(str(description["bytes_per_token"]))
    if not (2 <= vocab <= LARGEST_VOCAB and size):
        raise _damaged(folder, f"{DATA} has {vocab} tokens of {size} bytes each")
    for key in ("input", "heldout_input"):
        files = description.get(key, [])
        parts = files if isinstance(files, list) else [files]
        if not all(isinstance(part, dict) and type(part.get("name")) is str for part in parts):
            raise _damaged(folder, f"{key} in {DATA} is no list of files with names")


def _check_sizes(folder: Path, description: dict[str, object]) -> None:
    width = WIDTHS.get(str(description["dtype"]))
    if width is None:
        raise _damaged(folder, f"dtype {description['dtype']!r} is neither uint16 nor uint32")
    if not (folder / TOKENIZER).is_file():
        raise _damaged(folder, f"{TOKENIZER} is missing")
    for side, name in SIDES.items():
        path, tokens = folder / name, _member(description, side, "tokens")
        known = isinstance(tokens, int) and path.is_file()
        if not known or path.stat().st_size != int(str(tokens)) * width:
            raise _damaged(folder, f"{name} does not hold {tokens} tokens")
        content = _member(description, side, "bytes")
        if not isinstance(content, int) or min(content, path.stat().st_size) < 1:
            raise _damaged(folder, f"its {side} side is empty")
    for key in ("tokens", "bytes"):
        if description[key] != sum(int(str(_member(description, side, key))) for side in SIDES):
            raise _damaged(folder, f"{key} in {DATA} is not the sum of both sides")


def _member(description: Mapping[str, object], side: str, key: str) -> object:
    part = description[side]
    if not isinstance(part, dict) or key not in part:
        raise ValueError(f"{DATA} has no {side}.{key}; prepare the data again")
    return part[key]


def _damaged(folder: Path, what: str) -> ValueError:
    return ValueError(f"{str(folder)!r} is not usable: {what}; prepare it again with --overwrite")


def named_hash(description: Mapping[str, object]) -> str:
    """The name a run gives its data: a hash of tokens, tokenizer and vocabulary only."""
    named = {"vocab": description["vocab"], "tokenizer": description["tokenizer_sha256"]}
    named |= {side: _member(description, side, "sha256") for side in SIDES}
    return sha256(json.dumps(named, sort_keys=True))


def work_hash(settings: DataSettings, files: Iterable[Iterable[InputFile]]) -> str:
    """The name of a piece of work: equal settings and equal inputs, wherever they lie."""
    tokenizer = settings.tokenizer
    work = {
        "format": FORMAT_VERSION,
        "settings": settings.as_json(),
        "tokenizer": None if tokenizer is None else sha256(tokenizer.read_text("utf-8")),
        "inputs": [[(file.sha256, _suffixes(file.name)) for file in each] for each in files],
    }
    return sha256(json.dumps(work, sort_keys=True))


def _suffixes(name: str) -> str:
    """The part of a name that decides how a file is read: the same bytes as .txt and .jsonl."""
    return "".join(PurePath(name).suffixes[-2:]).lower()


def write_description(folder: Path, description: dict[str, object]) -> None:
    """Write data.json; the keys people look for first come first."""
    first = ("kind", "vocabulary", "vocab", "tokens", "bytes", "documents")
    ordered = {"format": FORMAT_VERSION, **{key: description[key] for key in first}, **description}
    text = json.dumps(ordered, indent=1, ensure_ascii=False) + "\n"
    write_whole(folder / DATA, text.encode())


def sha256(text: str) -> str:
    """The hash of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
