"""The runs that ship with archfit: records of sweeps on one GPU, with where and how they were made.

`docs/evidence/pack.py` puts them into the package.
"""

from dataclasses import dataclass, field

from archfit.fit.fitted import Fits, fitted
from archfit.spec import RunRecord, loads
from archfit.spec.files import packed_file, packed_lines

SWEEPS, RECORDS = "evidence/sweeps.json", "evidence/records.jsonl.xz"


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedRun:
    """A line of the packed records."""

    sweep: str
    record: RunRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledData:
    """What the hash of a data set stands for."""

    hash: str
    label: str
    kind: str  # of the source: text, fasta, images


@dataclass(frozen=True, kw_only=True, slots=True)
class ShippedSweep:
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

    data: tuple[LabelledData, ...]
    sweeps: tuple[ShippedSweep, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The sweeps and their records."""

    manifest: Manifest
    lines: tuple[PackedRun, ...]
    _fits: dict[tuple[str, ...], Fits] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def fits(self, *sweeps: str) -> Fits:
        """What these sweeps say together; computed once."""
        if sweeps not in self._fits:
            self._fits[sweeps] = fitted(self.records(*sweeps))
        return self._fits[sweeps]

    def records(self, *sweeps: str) -> tuple[RunRecord, ...]:
        """The records of these sweeps, each run once."""
        lines = (line for line in self.lines if line.sweep in sweeps)
        return tuple({line.record.spec: line.record for line in lines}.values())

    def trained(self, sweep: ShippedSweep) -> tuple[RunRecord, ...]:
        """The records that this sweep trained itself."""
        known = {record.spec for record in self.records(*sweep.reuses)}
        return tuple(record for record in self.records(sweep.name) if record.spec not in known)

    def label(self, data_hash: str) -> str:
        """What the data are, in words."""
        return next(data.label for data in self.manifest.data if data.hash == data_hash)


def read_evidence() -> Evidence:
    """What ships with this version."""
    manifest = loads(Manifest, packed_file(SWEEPS).read_text(encoding="utf-8"))
    return Evidence(manifest=manifest, lines=tuple(packed_lines(PackedRun, RECORDS)))
