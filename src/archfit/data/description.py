"""The content of data.json: what a data set is, where it came from, and what its tokens say."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import PurePath
from typing import TYPE_CHECKING

from archfit.data.prepared import FORMAT_VERSION
from archfit.data.shards import dtype_for
from archfit.data.split import BY_SOURCE, HELDOUT_ONE_IN
from archfit.data.statistics import unigram_entropy_bits
from archfit.data.unpack import InputFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from archfit.data.encode import WrittenSide
    from archfit.data.leakage import Leakage
    from archfit.data.reading import Reading
    from archfit.data.settings import Settings
    from archfit.data.statistics import Cooccurrence
    from archfit.data.vocabulary import Vocabulary

LISTED_FILES = 100


def described_tokens(
    vocabulary: Vocabulary, tokenizer: str, train: WrittenSide, heldout: WrittenSide
) -> dict[str, object]:
    """What depends on the tokens alone; the statistics are those of the training side."""
    tokens, content = train.tokens + heldout.tokens, train.bytes + heldout.bytes
    used = int((train.counts > 0).sum())
    return {
        "vocabulary": vocabulary.name,
        "vocab": vocabulary.size,
        "used_vocab": used,
        "embedding_rank_limit": used,  # rows that never occur are never trained
        "separator": vocabulary.separator,
        "dtype": dtype_for(vocabulary.size),
        "tokens": tokens,
        "bytes": content,
        "bytes_per_token": content / tokens,
        "unigram_entropy_bits": unigram_entropy_bits(train.counts),
        "train": _side(train),
        "heldout": _side(heldout),
        "tokenizer_sha256": sha256_of(tokenizer),
        "data_hash": data_hash(vocabulary.size, tokenizer, train.sha256, heldout.sha256),
    }


def described_split(rule: str, leakage: Leakage) -> dict[str, object]:
    """How the held-out side was chosen and how much of it the training side has too."""
    share = None if rule == BY_SOURCE else 1 / HELDOUT_ONE_IN
    return {
        "split": {"rule": rule, "heldout_share": share},
        "leakage": dataclasses.asdict(leakage) | {"share": leakage.share},
    }


def described_ranks(ranks: Cooccurrence) -> dict[str, object]:
    """How much embedding rank the data itself asks for."""
    return {"cooccurrence": dataclasses.asdict(ranks)}


def described_origin(settings: Settings, readings: list[Reading]) -> dict[str, object]:
    """The settings as given, the input files, and the hash that recognises finished work."""
    files = [list(reading.files.values()) for reading in readings]
    return {
        "kind": settings.kind,
        "settings": settings.as_json(),
        "input": _listed(files[0]),
        "heldout_input": _listed([file for each in files[1:] for file in each]),
        "image": readings[0].facts or None,
        "work_hash": work_hash(settings, files),
    }


def _listed(files: list[InputFile]) -> list[dict[str, object]]:
    """Each file, or of very many only how many they are, with one hash over theirs."""
    if len(files) > LISTED_FILES:
        size, hashes = sum(file.bytes for file in files), "".join(file.sha256 for file in files)
        files = [InputFile(f"{len(files)} files", size, sha256_of(hashes))]
    return [dataclasses.asdict(file) for file in files]


def work_hash(settings: Settings, files: Iterable[Iterable[InputFile]]) -> str:
    """The name of a piece of work: equal settings and equal inputs, wherever they lie."""
    tokenizer = settings.tokenizer
    return sha256_of(
        json.dumps(
            {
                "format": FORMAT_VERSION,
                "settings": settings.as_json(),
                "tokenizer": None if tokenizer is None else sha256_of(tokenizer.read_text("utf-8")),
                "inputs": [[(file.sha256, _ending(file)) for file in each] for each in files],
            },
            sort_keys=True,
        )
    )


def _ending(file: InputFile) -> str:
    """The part of a file's name that decides how it is read: the same bytes as .txt and .jsonl."""
    return "".join(PurePath(file.name).suffixes[-2:]).lower()


def data_hash(vocab: int, tokenizer: str, train_sha256: str, heldout_sha256: str) -> str:
    """The name a run gives its data: it depends on tokens, tokenizer and vocabulary only."""
    return sha256_of(
        json.dumps(
            {
                "vocab": vocab,
                "tokenizer": sha256_of(tokenizer),
                "train": train_sha256,
                "heldout": heldout_sha256,
            },
            sort_keys=True,
        )
    )


def sha256_of(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _side(side: WrittenSide) -> dict[str, object]:
    return {
        "tokens": side.tokens,
        "bytes": side.bytes,
        "documents": side.documents,
        "sha256": side.sha256,
    }


def as_text(description: dict[str, object]) -> str:
    """The text of data.json; the keys people look for first come first."""
    first = ("kind", "vocabulary", "vocab", "tokens", "bytes", "documents")
    ordered = {key: description[key] for key in first} | description
    return json.dumps({"format": FORMAT_VERSION} | ordered, indent=1, ensure_ascii=False) + "\n"
