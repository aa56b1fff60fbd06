"""What a sweep is: a question, the data it is asked on, its cells, and how they are trained."""

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import product
from typing import Any, Literal

from archfit.spec import RunSpec
from archfit.spec.errors import check_text
from archfit.spec.run_options import RunOptions

Scale = Literal["smoke", "small", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "small", "paper")
NO_DATA = "0" * 64  # the hash where a sweep is only counted and no data is prepared


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """A prepared data set, as far as a sweep must know it."""

    label: str  # bytes, bpe-2000, kmer-3: what tells it from its siblings
    kind: str  # of the source: text, fasta, images …
    vocab: int
    hash: str
    folder: str  # where its runners find it; empty while cells are only counted

    def __post_init__(self) -> None:
        check_text(label=self.label, kind=self.kind, folder=self.folder)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """Runs that together answer one question: the content of `sweep.json`."""

    name: str
    scale: str  # of a named sweep; own: the user's file, check: that of an advice
    question: str
    data: tuple[Corpus, ...]
    specs: tuple[RunSpec, ...]  # each once

    def __post_init__(self) -> None:
        check_text(name=self.name, scale=self.scale, question=self.question)
        if not self.specs:
            raise ValueError(f"sweep {self.name} has no cells; give it at least one")
        if len(set(self.specs)) < len(self.specs):
            raise ValueError(f"sweep {self.name} has a cell twice; a cell is trained once")
        if foreign := {spec.data_hash for spec in self.specs} - {
            corpus.hash for corpus in self.data
        }:
            raise ValueError(
                f"sweep {self.name} has cells on data {min(foreign)[:16]} that it does not name"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One network on one data set, before it has a seed."""

    corpus: Corpus
    options: RunOptions
    most_seeds: int | None = None  # as many as the sweep has

    def spec(self, seed: int) -> RunSpec:
        """The run with this seed."""
        return self.options.spec(vocab=self.corpus.vocab, data_hash=self.corpus.hash, seed=seed)


def seeded(cells: Iterable[Cell], seeds: Sequence[int]) -> tuple[RunSpec, ...]:
    """Every cell with every seed, all cells of a seed before the next seed.

    A sweep that is stopped has then tried everything once; within a seed the costliest go first,
    so that no long run is left for the end.
    """
    listed = list(cells)
    specs: dict[RunSpec, None] = {}
    for at, seed in enumerate(seeds):
        runs = [c.spec(seed) for c in listed if c.most_seeds is None or at < c.most_seeds]
        specs |= dict.fromkeys(sorted(runs, key=lambda spec: -spec.training_flops))
    return tuple(specs)


def used_corpora(corpora: Iterable[Corpus], specs: Iterable[RunSpec]) -> tuple[Corpus, ...]:
    """The data sets that some of the runs are trained on."""
    used = {spec.data_hash for spec in specs}
    return tuple(corpus for corpus in corpora if corpus.hash in used)


# Wies et al. 2021, appendix C: 1M steps of 512 x 128 tokens, AdamW, two heads.
WIES = RunOptions(
    precision="bfloat16", heads=2, context=128, steps=1_000_000, batch=512, warmup=12_000,
    learning_rate=1.6e-3, weight_decay=0.01, dropout=0.1, evaluate_every=10_000,
    evaluation_sequences=40_000,
)  # fmt: skip
# Levine et al. 2020, appendix D: Adam, and no word on dropout. The peak rate is not printed there;
# it is that of the later paper.
LEVINE = replace(WIES, weight_decay=0.0, dropout=0.0, evaluation_sequences=170_000)
# One GPU: 33M tokens a run, 5 to 25 seconds each. CompleteP, since one rate for all depths compares
# tunings: at 3.4M block parameters it trains every depth better than the standard rule, and the
# best of depths 2, 4, 8, 16 is then 8 instead of 4 (docs/LOG.md).
SMALL = RunOptions(
    precision="bfloat16", heads=2, context=128, steps=2000, batch=128,
    learning_rate_rule="completep", evaluate_every=1000, evaluation_sequences=2048,
)  # fmt: skip
# Files of sequences and tunes hold a few million tokens: half as many steps, and evaluations that
# show where a network begins to learn them by heart.
SMALL_FILES = replace(SMALL, steps=1000, evaluate_every=250)
# Two CPU cores: a fifth of a million tokens a run, seconds each. So few steps are made with GPT-2's
# rates: CompleteP's, those of a long training, lose 0.25 nats here.
SMOKE = RunOptions(
    precision="float32", heads=2, context=32, steps=400, batch=16, evaluate_every=200,
    evaluation_sequences=512,
)  # fmt: skip
RECIPES: dict[Scale, RunOptions] = {"smoke": SMOKE, "small": SMALL, "paper": WIES}


@cache
def _published_file() -> dict[str, Any]:
    file = resources.files("archfit.resources").joinpath("published_runs.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def published(name: str) -> Any:
    """What the papers trained in one of their experiments."""
    return _published_file()[name]


def published_runs(name: str) -> Iterator[dict[str, Any]]:
    """The options of each run of a paper: the rows of the file, with their lists taken apart."""
    for row in published(name):
        lists = {key: value for key, value in row.items() if isinstance(value, list)}
        for values in product(*lists.values()):
            yield row | dict(zip(lists, values, strict=True))
