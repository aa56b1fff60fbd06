"""A prepared data set on disk: what its data.json says, its tokens, and the way back to content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from archfit.spec import lazy_numpy as np
from archfit.spec.data_kinds import DATA_KINDS
from archfit.spec.files import DATA, HELDOUT_TOKENS, TOKENIZER, TRAIN_TOKENS, write_whole
from archfit.spec.lazy_numpy import NDArray

if TYPE_CHECKING:
    from archfit.data.sources import DataSettings
    from archfit.data.streams import InputFile
    from archfit.data.vocabulary import Vocabulary

FORMAT_VERSION = 1
SIDES = {"train": TRAIN_TOKENS, "heldout": HELDOUT_TOKENS}
FILES = {*SIDES.values(), TOKENIZER, DATA}
REQUIRED = (
    "kind", "vocab", "tokens", "bytes", "documents", "unigram_entropy_bits",
    "embedding_rank_limit", "dtype", "data_hash", "work_hash", "tokenizer_sha256",
    "vocabulary", "used_vocab", "bytes_per_token", "split", "leakage", "cooccurrence", "warnings",
    *SIDES,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PreparedData:
    """A folder that was found complete, and the content of its data.json."""

    folder: Path
    description: dict[str, object]

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
    def data_hash(self) -> str:
        """The name of these tokens, vocabulary and tokenizer, wherever they lie."""
        return str(self.description["data_hash"])

    def tokens(self, side: str) -> NDArray[np.unsignedinteger]:
        """The ids of `train` or `heldout`, mapped from disk and not read."""
        return mapped_ids(self.folder / SIDES[side], str(self.description["dtype"]))

    def vocabulary(self) -> Vocabulary:
        """What turns ids back into content."""
        from archfit.data.kinds import read_vocabulary

        return read_vocabulary((self.folder / TOKENIZER).read_text(encoding="utf-8"), TOKENIZER)

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


def mapped_ids(path: Path, dtype: str) -> NDArray[np.unsignedinteger]:
    """The ids in a file that is not empty, mapped from disk and not read."""
    return np.asarray(np.memmap(path, mode="r", dtype=np.dtype(dtype).newbyteorder("<")))


def open_prepared(folder: Path) -> PreparedData:
    """The data set in `folder`, if it is complete: described, with files as long as described."""
    path = folder / DATA
    if not path.is_file():
        rule = f"is not a prepared data set: it has no {DATA}"
        raise ValueError(f"{str(folder)!r} {rule}; make one by archfit data prepare")
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:
        raise _damaged(folder, f"{DATA} is not JSON ({problem})") from problem
    if not isinstance(description, dict) or description.get("format") != FORMAT_VERSION:
        raise _damaged(folder, f"{DATA} is not of format {FORMAT_VERSION}")
    if missing := [key for key in REQUIRED if key not in description]:
        raise _damaged(folder, f"{DATA} lacks {', '.join(missing)}")
    _check_sizes(folder, description)
    return PreparedData(folder, description)


def _check_sizes(folder: Path, description: dict[str, object]) -> None:
    width = {"uint16": 2, "uint32": 4}.get(str(description["dtype"]))
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


def _member(description: dict[str, object], side: str, key: str) -> object:
    part = description[side]
    if not isinstance(part, dict) or key not in part:
        raise ValueError(f"{DATA} has no {side}.{key}; prepare the data again")
    return part[key]


def _damaged(folder: Path, what: str) -> ValueError:
    return ValueError(f"{str(folder)!r} is not usable: {what}; prepare it again with --overwrite")


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
