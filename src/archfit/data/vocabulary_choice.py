"""From what the first reading gathered to the vocabulary that the settings ask for."""

from __future__ import annotations

import stat
from dataclasses import replace
from typing import TYPE_CHECKING

from archfit.data.bpe import read_bpe
from archfit.data.fasta import sequence_alphabet
from archfit.data.images import GREY, RGB
from archfit.data.leakage import WORDS
from archfit.data.numeric_vocabulary import (
    Bins,
    Levels,
    Palette,
    PlainIds,
    bin_edges,
    colour_clusters,
)
from archfit.data.series import VALUE_BYTES
from archfit.data.settings import BYTE_VOCAB, LARGEST_VOCAB
from archfit.data.survey import EvenSample, LetterCounts, Nothing, SeenCharacters
from archfit.data.token_files import ID_BYTES
from archfit.data.vocabulary import Bytes, Characters, Kmers

if TYPE_CHECKING:
    from pathlib import Path

    from archfit.data.settings import Settings
    from archfit.data.survey import Gatherer
    from archfit.data.vocabulary import Vocabulary

LARGEST_TOKENIZER_FILE = 256 << 20  # bytes
DEFAULT_LEVELS, DEFAULT_CLUSTERS, DEFAULT_BINS = 256, 512, 256


def settled(settings: Settings, channels: int) -> Settings:
    """Settings that leave nothing open for images and series; `channels` is that of the images."""
    beside = None if settings.vocab is None else settings.vocab - 1  # rows without the separator
    if settings.kind == "series":
        return replace(settings, bins=settings.bins or min(beside or DEFAULT_BINS, 65535))
    if settings.kind != "images" or settings.levels or settings.clusters:
        return settings
    if channels == RGB:
        return replace(settings, clusters=min(beside or DEFAULT_CLUSTERS, 65535))
    levels = min(beside or DEFAULT_LEVELS, DEFAULT_LEVELS)
    if levels & (levels - 1) or levels < 2:
        raise ValueError(
            f"--vocab {settings.vocab} leaves {beside} grey levels beside the separator, which is "
            f"no power of two; use --vocab {(1 << levels.bit_length()) + 1}, or --levels"
        )
    return replace(settings, levels=levels)


def gatherer_for(settings: Settings) -> Gatherer:
    """What has to be learnt from the content before a vocabulary can be chosen."""
    match settings.kind:
        case "abc":
            return SeenCharacters()
        case "fasta":
            return LetterCounts()
        case "series":
            return EvenSample("<f8", 1)
        case "tokens":
            return EvenSample("<u4", 1)
        case "images" if settings.clusters:
            return EvenSample("u1", RGB)
    return Nothing()


def ngram_unit(settings: Settings) -> int:
    """Bytes of one unit of content where leakage is counted by units; `WORDS` for text."""
    pixel = RGB if settings.clusters else GREY
    units = {"fasta": 1, "images": pixel, "series": VALUE_BYTES, "tokens": ID_BYTES}
    return units.get(settings.kind, WORDS)


def size_warnings(settings: Settings, vocabulary: Vocabulary) -> list[str]:
    """What to tell a user who asked for more tokens than the data has."""
    asked = {"text": settings.vocab, "images": settings.clusters, "series": settings.bins}
    wanted = asked.get(settings.kind)
    have = vocabulary.size if settings.kind == "text" else vocabulary.separator
    if wanted is None or have is None or have >= wanted:
        return []
    return [f"the data has only {have} of the {wanted} tokens, colours or bins asked for"]


def choose_vocabulary(settings: Settings, gathered: Gatherer) -> Vocabulary | None:
    """The vocabulary, or None where a BPE has to be trained first."""
    match gathered:
        case SeenCharacters():
            alphabet = gathered.alphabet
            return Characters(
                alphabet=alphabet, size=_rows(settings.vocab, len(alphabet) + 1, "characters")
            )
        case LetterCounts():
            return _sequence_vocabulary(settings, gathered.counts)
        case EvenSample():
            return _sampled_vocabulary(settings, gathered)
    if settings.kind == "images":
        levels = settings.levels or DEFAULT_LEVELS
        return Levels(levels=levels, size=_rows(settings.vocab, levels + 1, "levels"))
    if settings.tokenizer is not None:
        return read_bpe(_tokenizer_text(settings.tokenizer), settings.tokenizer.name)
    if settings.kind == "bytes" or settings.vocab in (None, BYTE_VOCAB):
        return Bytes(size=_rows(settings.vocab, BYTE_VOCAB, "bytes"))
    return None


def check_tokenizer_file(path: Path) -> None:
    """Refuse what is not a file of reasonable size."""
    name, found = path.name, path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"--tokenizer {name} is not a regular file; give a tokenizer.json")
    if found.st_size > LARGEST_TOKENIZER_FILE:
        raise ValueError(
            f"--tokenizer {name} has {found.st_size} bytes, more than {LARGEST_TOKENIZER_FILE}; "
            "give a smaller tokenizer.json"
        )


def _tokenizer_text(path: Path) -> str:
    """The text of a tokenizer file."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path.name} is not a tokenizer.json: it is not UTF-8") from problem


def _sequence_vocabulary(settings: Settings, counts: dict[str, int]) -> Kmers:
    alphabet, mapped = sequence_alphabet(counts, settings.unusual)
    letters, k = len(alphabet), settings.kmer
    needed = letters**k + (letters if k > 1 else 0) + 1
    if needed > LARGEST_VOCAB:
        raise ValueError(
            f"--kmer {k} of {letters} letters needs {needed} tokens, more than {LARGEST_VOCAB}; "
            "use a smaller one"
        )
    size = _rows(settings.vocab, needed, "k-mers" if k > 1 else "letters")
    return Kmers(alphabet=alphabet, k=k, mapped=mapped, size=size)


def _sampled_vocabulary(settings: Settings, sample: EvenSample) -> Vocabulary:
    import numpy as np

    if settings.kind == "images":
        wanted = settings.clusters or DEFAULT_CLUSTERS
        colours = colour_clusters(sample.values.astype(np.uint8), wanted)
        return Palette(colours=colours, size=_rows(settings.vocab, len(colours) + 1, "colours"))
    if settings.kind == "series":
        values = sample.values.astype(np.float64)[:, 0]
        if settings.binning == "uniform":
            values = np.array([sample.lowest, sample.highest])
        edges = bin_edges(values, settings.bins or DEFAULT_BINS, settings.binning)
        return Bins(edges=edges, size=_rows(settings.vocab, len(edges), "bins"))
    separator = None if settings.separator is None else int(settings.separator)
    needed = max(int(sample.highest), -1 if separator is None else separator) + 1
    return PlainIds(separator=separator, size=_rows(settings.vocab, needed, "ids"))


def _rows(vocab: int | None, needed: int, what: str) -> int:
    """Rows of the table: as many as needed, or as many as asked for if that is enough."""
    if vocab is not None and vocab < needed:
        raise ValueError(
            f"--vocab {vocab} is smaller than the alphabet: the {what} of this source (and a "
            f"separator) need {needed}; use {needed} or more, or leave --vocab out"
        )
    return needed if vocab is None else vocab
