"""The runs that ship with archfit: records of sweeps on one GPU, with where and how they were made.

`docs/evidence/pack.py` puts them into the package.
"""

import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from archfit.spec import RunRecord, loads

SWEEPS, RECORDS = "sweeps.json", "records.jsonl.xz"


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line of the packed records."""

    sweep: str
    record: RunRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSet:
    """What the hash of a data set stands for."""

    hash: str
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """How a sweep was made."""

    name: str
    command: str
    prepare: tuple[str, ...]  # commands that make its data
    date: str
    wall_seconds: float
    workers: int
    sweeps_at_once: int  # that shared the GPU
    reuses: tuple[str, ...]  # sweeps that had trained some of its cells
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """What lies in the package."""

    data: tuple[DataSet, ...]
    sweeps: tuple[Made, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The sweeps and their records."""

    manifest: Manifest
    lines: tuple[Line, ...]

    def records(self, *sweeps: str) -> tuple[RunRecord, ...]:
        """Those of these sweeps, each run once."""
        lines = (line for line in self.lines if line.sweep in sweeps)
        return tuple({line.record.spec: line.record for line in lines}.values())

    def trained(self, made: Made) -> tuple[RunRecord, ...]:
        """The records that this sweep trained itself."""
        known = {record.spec for record in self.records(*made.reuses)}
        return tuple(record for record in self.records(made.name) if record.spec not in known)

    def label(self, data_hash: str) -> str:
        """What the data are."""
        return next(data.label for data in self.manifest.data if data.hash == data_hash)


def read_evidence() -> Evidence:
    """What ships with this version."""
    text = _folder().joinpath(SWEEPS).read_text(encoding="utf-8")
    return Evidence(manifest=loads(Manifest, text), lines=tuple(packed_lines()))


def packed_lines() -> Iterator[Line]:
    """The packed records; none before the first are packed."""
    file = _folder().joinpath(RECORDS)
    if file.is_file():
        for text in lzma.decompress(file.read_bytes()).decode().splitlines():
            yield loads(Line, text)


def _folder() -> "resources.abc.Traversable":
    return resources.files("archfit.resources").joinpath("evidence")
