"""The folder of a sweep: a folder for each run, `sweep.json`, and `results.csv`.

`sweep.json` says what was asked for, so that anybody who has the folder can go on with it. The
records are the truth; `results.csv` is derived from them, and made again whenever a runner ends.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from archfit import __version__
from archfit.spec import RunSpec, canonical_json, from_json, open_regular, write_whole
from archfit.spec.checks import check_text
from archfit.spec.run_folder import LOCK, read_records
from archfit.sweep.results import results_csv
from archfit.sweep.sweep import Corpus, Sweep

SWEEP, RESULTS = "sweep.json", "results.csv"
FORMAT = 1
LARGEST_SWEEP = 1 << 26  # bytes; 10,000 cells have a quarter of that


@dataclass(frozen=True, kw_only=True, slots=True)
class DataPlace:
    """A data set of the sweep, and the folder in which its runners find it."""

    hash: str
    label: str
    kind: str
    vocab: int
    folder: str

    def __post_init__(self) -> None:
        check_text(label=self.label, kind=self.kind, folder=self.folder)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredSweep:
    """The content of `sweep.json`."""

    format: int
    archfit: str  # version, not commit: records of one version are comparable
    name: str
    scale: str
    question: str
    data: tuple[DataPlace, ...]
    specs: tuple[RunSpec, ...]

    def __post_init__(self) -> None:
        check_text(name=self.name, scale=self.scale, question=self.question)
        _ = self.sweep  # has checks of its own

    @property
    def sweep(self) -> Sweep:
        """The sweep itself."""
        corpora = [
            Corpus(label=place.label, kind=place.kind, vocab=place.vocab, data_hash=place.hash)
            for place in self.data
        ]
        return Sweep(
            name=self.name, question=self.question, corpora=tuple(corpora), specs=self.specs
        )

    @property
    def data_folders(self) -> tuple[Path, ...]:
        """Where its data lie."""
        return tuple(Path(place.folder) for place in self.data)


def stored(sweep: Sweep, *, scale: str, data_folders: Mapping[str, Path]) -> StoredSweep:
    """What `sweep.json` will say; `data_folders` holds a folder for each data hash."""
    data = tuple(
        DataPlace(
            hash=corpus.data_hash,
            label=corpus.label,
            kind=corpus.kind,
            vocab=corpus.vocab,
            folder=str(data_folders[corpus.data_hash].resolve()),
        )
        for corpus in sweep.corpora
    )
    return StoredSweep(
        format=FORMAT,
        archfit=__version__,
        name=sweep.name,
        scale=scale,
        question=sweep.question,
        data=data,
        specs=sweep.specs,
    )


def open_sweep(out: Path, wanted: StoredSweep) -> StoredSweep:
    """The sweep that the folder now holds: the one wanted, with the cells it had before.

    Asking for more seeds or widths extends a sweep. One of another name is refused.
    """
    out.mkdir(parents=True, exist_ok=True)
    with locked(out):
        merged = wanted
        if (out / SWEEP).exists():
            merged = _merged(read_sweep(out / SWEEP), wanted, out)
            if merged == read_sweep(out / SWEEP):
                return merged
        write_whole(out / SWEEP, (canonical_json(merged) + "\n").encode())
    return merged


def read_sweep(path: Path) -> StoredSweep:
    """The sweep in a file; one that another version writes is refused."""
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST_SWEEP + 1)
        if len(content) > LARGEST_SWEEP:
            raise ValueError(f"it has over {LARGEST_SWEEP:,} bytes")
        document = json.loads(content)
        if not isinstance(document, dict):
            raise ValueError("it is no object")
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"{path} holds no sweep: {problem}; delete it to begin anew") from problem
    version = str(document.get("archfit"))
    if document.get("format") != FORMAT or version != __version__:
        raise ValueError(
            f"{path} is written by archfit {version:.20}, and this is archfit {__version__}; use "
            "that version for this folder, or another folder"
        )
    try:
        return from_json(StoredSweep, document)
    except ValueError as problem:
        raise ValueError(f"{path} holds no sweep: {problem}; delete it to begin anew") from problem


def write_results(out: Path, sweep: StoredSweep) -> Path:
    """Make `results.csv` from the records that are there."""
    labels = {place.hash: place.label for place in sweep.data}
    with locked(out):
        write_whole(out / RESULTS, results_csv(read_records(out), labels).encode())
    return out / RESULTS


def _merged(before: StoredSweep, wanted: StoredSweep, out: Path) -> StoredSweep:
    for what in ("name", "scale"):
        if getattr(before, what) != getattr(wanted, what):
            raise ValueError(
                f"{out} holds the sweep {before.name} at scale {before.scale}, and this is "
                f"{wanted.name} at scale {wanted.scale}; use another --out"
            )
    places = {place.hash: place for place in (*before.data, *wanted.data)}
    specs = dict.fromkeys((*wanted.specs, *before.specs))
    return StoredSweep(
        format=FORMAT,
        archfit=__version__,
        name=wanted.name,
        scale=wanted.scale,
        question=wanted.question,
        data=tuple(places.values()),
        specs=tuple(specs),
    )


@contextlib.contextmanager
def locked(out: Path) -> Iterator[None]:
    """Wait until no other runner writes; the lock goes with its holder."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    handle = os.open(out / LOCK, flags, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
