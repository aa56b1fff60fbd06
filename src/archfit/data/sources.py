"""What SOURCE means (a file, a folder, a pattern, the sample) and how it becomes tokens."""

import glob
import itertools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeAlias

from archfit.data.streams import PACKED, Blocks, Facts, Ledger, SourceFile
from archfit.data.vocabulary import Vocabulary
from archfit.spec import files
from archfit.spec.data_kinds import DATA_KINDS, LARGEST_KMER, LARGEST_VOCAB, SAMPLE, kind_of_suffix
from archfit.spec.errors import InvalidValue, check_choice, refusal, refuse_if

HUGGING_FACE = "hf:"
SAMPLE_FILE = files.packed_file("sample-english.txt.xz")
SAMPLE_HELDOUT_FILE = files.packed_file("sample-english-heldout.txt.xz")
USUAL_COUNTS, MOST_COUNTED = {"clusters": 512, "bins": 256}, 65535


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSettings:
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
    max_bytes: int = 64 * 10**9  # the unpacked input may not be larger

    def __post_init__(self) -> None:
        check_choice(tuple(DATA_KINDS), kind=self.kind)
        self._refuse_foreign_options()
        check_choice(("strict", "replace"), errors=self.errors)
        check_choice(("keep", "map", "refuse"), unusual=self.unusual)
        check_choice(("uniform", "quantile"), binning=self.binning)
        check_choice(("uint16", "uint32"), dtype=self.dtype)
        refuse_if(self.max_bytes < 1, "no-bytes", self.max_bytes)
        reason = "one token carries no information, and no table has more rows"
        check_range(2, LARGEST_VOCAB, reason, vocab=self.vocab)
        least = DATA_KINDS[self.kind].least_vocab
        if self.vocab is not None:
            refuse_if(self.vocab < least, "vocab-below-bytes", self.vocab, least=least)
            refuse_if(self.tokenizer is not None, "vocab-and-tokenizer", self.vocab)
        check_range(1, LARGEST_KMER, f"use 1 to {LARGEST_KMER} letters", kmer=self.kmer)
        check_range(2, MOST_COUNTED, "use so many colours", clusters=self.clusters)
        check_range(2, MOST_COUNTED, "one bin carries no information", bins=self.bins)
        powers = (None, 2, 4, 8, 16, 32, 64, 128, 256)
        refuse_if(self.levels not in powers, "odd-levels", self.levels)
        refuse_if(None not in (self.levels, self.clusters), "levels-and-clusters", self.levels)
        by_id = self.separator if DATA_KINDS[self.kind].units == "values" else None
        is_id = by_id is None or (by_id.isdecimal() and int(by_id[:12]) < LARGEST_VOCAB)
        refuse_if(not is_id, "no-token-id", by_id, most=LARGEST_VOCAB)

    def _refuse_foreign_options(self) -> None:
        known = {"kind", "vocab", "max_bytes", *DATA_KINDS[self.kind].options}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in known and value != field.default:
                kinds = [name for name, kind in DATA_KINDS.items() if field.name in kind.options]
                given = value if isinstance(value, int) else str(value)
                named = {"option": field.name, "kind": self.kind, "kinds": " and ".join(kinds)}
                raise refusal("foreign-option", given, **named)

    def count(self, name: str) -> int:
        """`clusters` or `bins` asked for; else as many as fill the rows of `vocab`, or as usual."""
        beside = USUAL_COUNTS[name] if self.vocab is None else self.vocab - 1  # one row separates
        return getattr(self, name) or min(beside, MOST_COUNTED)

    def rows(self, needed: int, what: str) -> int:
        """Rows of the table: as many as needed, or as many as asked for if that is enough."""
        if self.vocab is not None and self.vocab < needed:
            raise refusal("vocab-below-alphabet", self.vocab, what=what, needed=needed)
        return self.vocab or needed

    def as_json(self) -> dict[str, object]:
        """What of this decides the tokens, for comparison; a tokenizer file is compared by hash."""
        names = ("kind", "vocab", *DATA_KINDS[self.kind].options)
        return {name: getattr(self, name) for name in names if name != "tokenizer"}


def check_range(least: int, most: int, way_out: str, **sizes: int | None) -> None:
    """Refuse a size outside [least, most]; None is none."""
    for name, size in sizes.items():
        if size is not None and not least <= size <= most:
            raise InvalidValue(name, size, f"is not in {least}..{most}", way_out)


def guess_kind(source: str) -> str:
    """The kind that a source's name suggests: fasta for genes.fa.gz, bytes if nothing else."""
    if source == SAMPLE or source.startswith(HUGGING_FACE):
        return "text"
    path = Path(source)
    if path.is_dir():
        found = [kind_of_suffix(file.suffix) for file in _walk(path)]
        return max(sorted(set(found)), key=found.count, default="bytes")
    return kind_of_suffix(SourceFile(path, path.name).suffix)


def is_sample(source: str) -> bool:
    """Whether `source` means the shipped sample: its name, unless a source here is called so.

    A folder that `data prepare --out sample` made is none.
    """
    path = Path(source)
    return source == SAMPLE and (not path.exists() or (path / files.DATA).is_file())


def find_files(source: str, kind: str) -> list[SourceFile]:
    """The files that `source` stands for, in an order that does not depend on the machine."""
    path = Path(source)
    if source.startswith(HUGGING_FACE):
        refuse_if(kind != "text", "dataset-of-text", source=source, kind=kind)
        return [SourceFile(Path(), source, is_dataset=True)]
    if is_sample(source):
        return [SourceFile(SAMPLE_FILE, SAMPLE_FILE.name)]
    if path.is_dir():
        suffixes, code = DATA_KINDS[kind].suffixes, DATA_KINDS[kind].code
        wanted = {*suffixes, *code}
        files = [file for file in _walk(path) if not wanted or file.suffix in wanted]
        if not files:
            known = f"{' '.join(suffixes) or 'any'}{' or source code' * bool(code)}"
            packed = {"folder": repr(path.name), "packed": " ".join(PACKED)}
            raise refusal("no-file-of-kind", kind=kind, known=known, **packed)
        return files
    if path.exists():
        return [SourceFile(path, path.name)]
    found = [name for name in sorted(glob.glob(source, recursive=True)) if not Path(name).is_dir()]
    refuse_if(not found, "no-source", source=repr(source), sample=repr(SAMPLE))
    prefix = len(os.path.commonpath([str(Path(name).parent) for name in found]))
    return [SourceFile(Path(name), name[prefix:].lstrip("/")) for name in found]


def _walk(folder: Path) -> list[SourceFile]:
    """Files below `folder` by relative name; hidden ones and linked folders are left out.

    Links to files outside are refused: who made the folder would choose what else is read here.
    """
    found: list[str] = []
    for place, folders, names in os.walk(folder, onerror=_refuse_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(place, name) for name in names if not name.startswith(".")]
    relative = sorted(Path(name).relative_to(folder).as_posix() for name in found)
    here = os.path.realpath(folder)
    for name in relative:
        there = os.path.realpath(folder / name) if os.path.islink(folder / name) else here
        leads = {"folder": repr(folder.name), "there": repr(there)}
        is_outside = os.path.commonpath((here, there)) != here
        refuse_if(is_outside, "link-outside", name=repr(name), **leads)
    return [SourceFile(folder / name, name) for name in relative]


def _refuse_unreadable(problem: OSError) -> None:
    """A folder that cannot be listed would silently leave its files out."""
    named = {"folder": problem.filename, "reason": problem.strerror}
    raise refusal("unreadable-folder", **named) from problem


Reader: TypeAlias = Callable[[Sequence[SourceFile], DataSettings, Ledger], Blocks]


def each_file(read_one: Callable[[SourceFile, DataSettings, Ledger], Blocks]) -> Reader:
    """A reader of many files that reads each of them alone."""
    return lambda files, settings, ledger: itertools.chain.from_iterable(
        read_one(file, settings, ledger) for file in files
    )


def looks(like: str, pattern: bytes) -> Callable[[bytes], str]:
    """A look that has this word for content whose first bytes match a pattern."""
    return lambda start: like if re.match(pattern, start) else ""


@dataclass(frozen=True, slots=True)
class KindHandler:
    """What is done with data of one kind; the file that reads a kind ends with its handler."""

    look: Callable[[bytes], str]  # a word for it where the first bytes are such; else empty
    read: Reader
    vocabulary: Callable[[DataSettings, Iterable[bytes], Facts], Vocabulary | None]
    """What fits all content, a block at a time, and the facts that the first block shows; None
    where a BPE has to be trained first."""
    vocabularies: tuple[type[Vocabulary], ...]  # those that a tokenizer.json of it may hold
