"""A tokenizer.json read back: Hugging Face's for BPE, our own small one for everything else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from archfit.data.bpe import read_bpe
from archfit.data.numeric_vocabulary import Bins, Levels, Palette, PlainIds
from archfit.data.vocabulary import FORMAT, FORMAT_VERSION, Bytes, Characters, Kmers

if TYPE_CHECKING:
    from archfit.data.vocabulary import Vocabulary


def read_vocabulary(text: str, name: str) -> Vocabulary:
    """The vocabulary that the content of a tokenizer.json describes."""
    try:
        described = json.loads(text)
    except ValueError as problem:
        raise ValueError(f"{name} is not JSON ({problem}); prepare the data again") from problem
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        return read_bpe(text, name)
    if described.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{name} has version {described.get('version')}, not {FORMAT_VERSION}; prepare again"
        )
    try:
        return _own(described)
    except (KeyError, TypeError) as problem:
        raise ValueError(f"{name} is incomplete ({problem}); prepare the data again") from problem


def _own(described: dict[str, object]) -> Vocabulary:
    values = {key: value for key, value in described.items() if key not in ("format", "version")}
    match values.pop("vocabulary"):
        case "bytes":
            return Bytes(**values)  # type: ignore[arg-type]  # a wrong key or type is caught above
        case "characters":
            return Characters(**values)  # type: ignore[arg-type]
        case "k-mers":
            return Kmers(**values)  # type: ignore[arg-type]
        case "levels":
            return Levels(**values)  # type: ignore[arg-type]
        case "palette":
            colours = tuple(tuple(colour) for colour in values.pop("colours"))  # type: ignore[attr-defined]
            return Palette(colours=colours, **values)  # type: ignore[arg-type]
        case "bins":
            return Bins(edges=tuple(values.pop("edges")), **values)  # type: ignore[arg-type]
        case "ids":
            return PlainIds(**values)  # type: ignore[arg-type]
        case other:
            raise KeyError(f"unknown vocabulary {other!r}")
