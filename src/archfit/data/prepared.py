"""A prepared data set on disk: its description, its tokens, and the way back to content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.vocabulary import Vocabulary

FORMAT_VERSION = 1
DESCRIPTION, TOKENIZER = "data.json", "tokenizer.json"
SIDES = ("train", "heldout")
FILES = {"train.bin", "heldout.bin", TOKENIZER, DESCRIPTION}
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
    def vocab(self) -> int:
        """Rows an embedding table needs."""
        return int(str(self.description["vocab"]))

    @property
    def data_hash(self) -> str:
        """The name of these tokens, vocabulary and tokenizer, wherever they lie."""
        return str(self.description["data_hash"])

    def tokens(self, side: str) -> NDArray[np.unsignedinteger]:
        """The ids of `train` or `heldout`, mapped from disk and not read."""
        return mapped_ids(self.folder / f"{side}.bin", str(self.description["dtype"]))

    def vocabulary(self) -> Vocabulary:
        """What turns ids back into content."""
        from archfit.data.vocabulary_files import read_vocabulary

        return read_vocabulary((self.folder / TOKENIZER).read_text(encoding="utf-8"), TOKENIZER)

    def decode(self, side: str) -> list[bytes]:
        """The content of the documents of a side."""
        return self.vocabulary().decode(self.tokens(side))

    def verify(self) -> None:
        """Read every file and compare its hash with the one noted when it was written."""
        for name, expected in self._hashes().items():
            digest = hashlib.sha256()
            with open(self.folder / name, "rb") as file:
                while chunk := file.read(1 << 22):
                    digest.update(chunk)
            if digest.hexdigest() != expected:
                raise ValueError(
                    f"{self.folder.name}/{name} is not what was written: its hash differs; "
                    "prepare it again with --overwrite"
                )

    def _hashes(self) -> dict[str, str]:
        tokens = {f"{side}.bin": str(_member(self.description, side, "sha256")) for side in SIDES}
        return tokens | {TOKENIZER: str(self.description["tokenizer_sha256"])}


def mapped_ids(path: Path, dtype: str) -> NDArray[np.unsignedinteger]:
    """The ids in a file that is not empty, mapped from disk and not read."""
    import numpy as np

    return np.asarray(np.memmap(path, mode="r", dtype=np.dtype(dtype).newbyteorder("<")))


def open_prepared(folder: Path) -> PreparedData:
    """The data set in `folder`, if it is complete: described, with files as long as described."""
    path = folder / DESCRIPTION
    if not path.is_file():
        raise ValueError(
            f"{str(folder)!r} is not a prepared data set: it has no {DESCRIPTION}; "
            "make one by archfit data prepare"
        )
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:
        raise _damaged(folder, f"{DESCRIPTION} is not JSON ({problem})") from problem
    if not isinstance(description, dict) or description.get("format") != FORMAT_VERSION:
        raise _damaged(folder, f"{DESCRIPTION} is not of format {FORMAT_VERSION}")
    if missing := [key for key in REQUIRED if key not in description]:
        raise _damaged(folder, f"{DESCRIPTION} lacks {', '.join(missing)}")
    _check_sizes(folder, description)
    return PreparedData(folder, description)


def _check_sizes(folder: Path, description: dict[str, object]) -> None:
    width = {"uint16": 2, "uint32": 4}.get(str(description["dtype"]))
    if width is None:
        raise _damaged(folder, f"dtype {description['dtype']!r} is neither uint16 nor uint32")
    if not (folder / TOKENIZER).is_file():
        raise _damaged(folder, f"{TOKENIZER} is missing")
    for side in SIDES:
        path, tokens = folder / f"{side}.bin", _member(description, side, "tokens")
        known = isinstance(tokens, int) and path.is_file()
        if not known or path.stat().st_size != int(str(tokens)) * width:
            raise _damaged(folder, f"{path.name} does not hold {tokens} tokens")
        content = _member(description, side, "bytes")
        if not isinstance(content, int) or min(content, path.stat().st_size) < 1:
            raise _damaged(folder, f"its {side} side is empty")


def _member(description: dict[str, object], side: str, key: str) -> object:
    part = description[side]
    if not isinstance(part, dict) or key not in part:
        raise ValueError(f"{DESCRIPTION} has no {side}.{key}; prepare the data again")
    return part[key]


def _damaged(folder: Path, what: str) -> ValueError:
    return ValueError(f"{str(folder)!r} is not usable: {what}; prepare it again with --overwrite")
