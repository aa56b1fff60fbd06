"""How a source is to be read and turned into tokens: one frozen value, checked when it is made."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("text", "bytes", "fasta", "images", "series", "abc", "tokens")
CHOICES = {
    "kind": KINDS,
    "errors": ("strict", "replace"),
    "unusual": ("keep", "map", "refuse"),
    "binning": ("uniform", "quantile"),
    "dtype": ("uint16", "uint32"),
}
# The options a kind understands besides vocab and max_bytes; any other is refused, not ignored.
OPTIONS: dict[str, tuple[str, ...]] = {
    "text": ("tokenizer", "field", "heldout_field", "separator", "errors"),
    "bytes": ("separator",),
    "fasta": ("kmer", "unusual"),
    "images": ("levels", "clusters", "field", "heldout_field"),
    "series": ("bins", "binning", "columns"),
    "abc": ("separator", "errors"),
    "tokens": ("dtype", "separator"),
}
DOCUMENT_LINE = "<|doc|>"
BYTE_VOCAB = 257  # 256 bytes and the separator: also the smallest byte-level BPE
LARGEST_VOCAB = 1 << 24  # rows: ten times any tokenizer; counts of them fit memory
LARGEST_KMER = 24  # 2^24: beyond it even two letters make too many groups
DEFAULT_MAX_BYTES = 64 * 10**9


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What decides the tokens, apart from the data. None and () mean: as the data has it."""

    kind: str
    vocab: int | None = None  # rows of the embedding table
    tokenizer: Path | None = None  # text: reuse this tokenizer.json instead of training one
    field: str | None = None  # key of a .jsonl line, column of a .parquet, array of an .npz
    heldout_field: str | None = None  # the same in the held-out source
    separator: str | None = None  # the line between documents; tokens: the id that ends one
    errors: str = "strict"  # invalid UTF-8: refuse, or put U+FFFD in its place
    unusual: str = "keep"  # letters beyond ACGT or the 20 amino acids
    kmer: int = 1  # letters in a token
    levels: int | None = None  # grey levels, a power of two
    clusters: int | None = None  # RGB colours in the palette
    bins: int | None = None  # values a series is rounded to
    binning: str = "uniform"
    columns: tuple[str, ...] = ()  # of a CSV file, by name or number from 1
    dtype: str = "uint16"  # of a .bin file of tokens
    max_bytes: int = DEFAULT_MAX_BYTES  # the unpacked input may not be larger

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{_option(name)} {getattr(self, name)!r} is not one of {', '.join(allowed)}"
                )
        self._refuse_foreign_options()
        if self.max_bytes < 1:
            raise ValueError(f"--max-bytes {self.max_bytes} allows no input at all; use 1 or more")
        if self.vocab is not None and not 2 <= self.vocab <= LARGEST_VOCAB:
            raise ValueError(
                f"--vocab {self.vocab} is not in 2..{LARGEST_VOCAB}: one token carries no "
                "information, and no table has more rows"
            )
        getattr(self, f"_check_{self.kind}", lambda: None)()

    def _refuse_foreign_options(self) -> None:
        known = {"kind", "vocab", "max_bytes", *OPTIONS[self.kind]}
        for field in dataclasses.fields(self):
            if field.name not in known and getattr(self, field.name) != field.default:
                kinds = [kind for kind, options in OPTIONS.items() if field.name in options]
                raise ValueError(
                    f"{_option(field.name)} means nothing for --kind {self.kind}; "
                    f"it belongs to {' and '.join(kinds)}"
                )

    def _check_text(self) -> None:
        if self.vocab is not None and self.vocab < BYTE_VOCAB:
            raise ValueError(
                f"--vocab {self.vocab} is smaller than the alphabet: 256 bytes and a separator "
                f"need {BYTE_VOCAB}; use {BYTE_VOCAB} or more"
            )
        if self.tokenizer is not None and self.vocab is not None:
            raise ValueError(
                f"--vocab {self.vocab} cannot be chosen beside --tokenizer, whose size is fixed; "
                "leave one of them out"
            )

    def _check_bytes(self) -> None:
        self._check_text()

    def _check_fasta(self) -> None:
        if not 1 <= self.kmer <= LARGEST_KMER:
            raise ValueError(f"--kmer {self.kmer} is not in 1..{LARGEST_KMER} letters")

    def _check_images(self) -> None:
        if self.levels is not None and self.clusters is not None:
            raise ValueError("--levels makes grey tokens and --clusters coloured ones; choose one")
        if self.levels is not None and self.levels not in (2, 4, 8, 16, 32, 64, 128, 256):
            raise ValueError(f"--levels {self.levels} is not a power of two in 2..256")
        if self.clusters is not None and not 2 <= self.clusters <= 65535:
            raise ValueError(f"--clusters {self.clusters} is not in 2..65535")

    def _check_series(self) -> None:
        if self.bins is not None and not 2 <= self.bins <= 65535:
            raise ValueError(
                f"--bins {self.bins} is not in 2..65535; one bin carries no information"
            )

    def _check_tokens(self) -> None:
        if self.separator is not None and not self.separator.isdecimal():
            raise ValueError(
                f"--separator {self.separator!r} is not a token id; "
                "for --kind tokens give the number that ends a document"
            )
        if self.separator is not None and int(self.separator[:12]) >= LARGEST_VOCAB:
            raise ValueError(
                f"--separator {self.separator:.12} is not a token id below {LARGEST_VOCAB}"
            )

    def as_json(self) -> dict[str, object]:
        """What of this decides the tokens, for comparison; a tokenizer file is compared by hash."""
        names = ("vocab", *(name for name in OPTIONS[self.kind] if name != "tokenizer"))
        values = {name: getattr(self, name) for name in ("kind", *names)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
