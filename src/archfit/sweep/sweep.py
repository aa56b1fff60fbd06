"""What a sweep is: a question, the data it is asked on, and the runs that answer it."""

from dataclasses import dataclass
from typing import Literal

from archfit.spec import RunSpec

Scale = Literal["smoke", "small", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "small", "paper")
NO_DATA = "0" * 64  # the hash where a sweep is only counted and no data is prepared


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """A prepared data set, as far as a sweep must know it."""

    label: str  # bytes, bpe-2000, kmer-3: what tells it from its siblings
    kind: str  # of the source: text, fasta, images …
    vocab: int
    data_hash: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """Runs that together answer one question."""

    name: str
    question: str
    corpora: tuple[Corpus, ...]
    specs: tuple[RunSpec, ...]  # each once

    def __post_init__(self) -> None:
        if not self.specs:
            raise ValueError(f"sweep {self.name} has no cells; give it at least one")
        if len(set(self.specs)) < len(self.specs):
            raise ValueError(f"sweep {self.name} has a cell twice; a cell is trained once")
        known = {corpus.data_hash for corpus in self.corpora}
        if foreign := {spec.data_hash for spec in self.specs} - known:
            raise ValueError(
                f"sweep {self.name} has cells on data {min(foreign)[:16]} that it does not name"
            )
