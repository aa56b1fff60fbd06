"""Data that tests of advice ask about, and a runner that trains nothing."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from archfit.advise.measure import LADDER, LadderRunner
from archfit.advise.source import DATA, Source, prepared_source
from archfit.data.prepare import silent
from archfit.data.prepared import PreparedData
from archfit.spec import RunSpec, canonical_json
from archfit.spec.files import read_record
from archfit.sweep.runner import SweepWatcher
from tests_curves import record

Bits = Callable[[RunSpec], float]  # per byte that a network would have


def source_of(words: Path | str, *, vocab: int | None = None) -> Source:
    """Data as the command line names them."""
    return Source(words=str(words), kind="", vocab=vocab, heldout=None, field=None)


def prepared(words: Path | str, out: Path) -> PreparedData:
    """The data of an advice in `out`."""
    return prepared_source(source_of(words), out / DATA, silent)


def write_fasta(path: Path) -> Path:
    """A little DNA."""
    path.write_text("".join(f">{n}\n{'ACGT' * n}\n" for n in range(1, 60)))
    return path


@contextmanager
def _nobody() -> Iterator[SweepWatcher]:
    raise AssertionError("nothing is trained")
    yield


@dataclass(frozen=True, kw_only=True, slots=True)
class PlantedRunner(LadderRunner):
    """Writes the records of networks whose losses are known; those of `bits` NaN fail."""

    bits: Bits
    trained: list[RunSpec] = field(default_factory=list)

    def run(self, specs: tuple[RunSpec, ...], data: tuple[Path, ...]) -> dict[str, str]:
        """As if they were trained, each once."""
        assert all(folder.is_dir() for folder in data)
        failed = {}
        for spec in specs:
            bits = self.bits(spec)
            if math.isnan(bits):
                failed[spec.name] = "it failed"
            elif read_record(self.folder / spec.name) is None:
                self.trained.append(spec)
                nats = 3 * math.log(2) * bits
                made = record(spec.architecture, nats, spec.seed, recipe=spec.recipe)
                (self.folder / spec.name).mkdir(parents=True, exist_ok=True)
                written = canonical_json(replace(made, spec=spec))
                (self.folder / spec.name / "record.json").write_text(written)
        return failed


def planted_runner(out: Path, bits: Bits, said: list[str] | None = None) -> PlantedRunner:
    """One on a machine without a GPU."""
    sentences = list[str]() if said is None else said
    return PlantedRunner(
        folder=out / LADDER,
        device="cpu",
        where=list,
        watch=_nobody,
        say=sentences.append,
        bits=bits,
    )
