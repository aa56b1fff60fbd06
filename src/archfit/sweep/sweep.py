"""What a sweep is: a question, the data it is asked on, its cells, and how they are trained.

And the widths that give cells of different depths or vocabularies the same size.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from archfit import __version__
from archfit.spec import RunSpec
from archfit.spec.errors import check_text, refusal
from archfit.spec.files import SWEEP_FORMAT
from archfit.spec.gpu_cost import gpu_seconds
from archfit.spec.packed import packed_table
from archfit.spec.run_options import RunOptions
from archfit.spec.search import first_whole

Scale = Literal["smoke", "small", "medium", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
NAMED_SWEEPS = "named_sweeps.toml"  # sweeps by their names, and `usual`, and `recipes`
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
        check_text(label=self.label, kind=self.kind, hash=self.hash, folder=self.folder)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """Runs that together answer one question: the content of `sweep.json`."""

    USUAL: ClassVar = {"kind": ""}

    name: str
    scale: str  # of a named sweep; own: the user's file, check: that of an advice
    question: str
    data: tuple[Corpus, ...]
    specs: tuple[RunSpec, ...]  # each once
    kind: str = ""  # under which its runs join the atlas, if they do
    format: int = SWEEP_FORMAT
    archfit: str = __version__  # records of one version, not one commit, are comparable

    def __post_init__(self) -> None:
        check_text(name=self.name, scale=self.scale, question=self.question, kind=self.kind)
        if not self.specs:
            raise ValueError(f"sweep {self.name} has no cells; give it at least one")
        if len(set(self.specs)) < len(self.specs):
            raise ValueError(f"sweep {self.name} has a cell twice; a cell is trained once")
        known = {corpus.hash for corpus in self.data}
        if foreign := {spec.data_hash for spec in self.specs} - known:
            raise refusal("sweep-unnamed", name=self.name, data=min(foreign)[:16])


@dataclass(frozen=True, slots=True)
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

    A sweep that is stopped has then tried everything once; within a seed those that take longest
    go first, since the last to end has a GPU for itself.
    """
    listed = list(cells)
    specs: dict[RunSpec, None] = {}
    for at, seed in enumerate(seeds):
        runs = [c.spec(seed) for c in listed if c.most_seeds is None or at < c.most_seeds]
        specs |= dict.fromkeys(sorted(runs, key=gpu_seconds, reverse=True))
    return tuple(specs)


def at_neighbouring_rates(sweep: Sweep) -> Sweep:
    """Every run also at half and at twice its rate; those at the rates given come first."""
    tuned = (spec.at_rate(factor) for factor in (1.0, 0.5, 2.0) for spec in sweep.specs)
    return replace(sweep, specs=tuple(dict.fromkeys(tuned)))


def used_corpora(corpora: Iterable[Corpus], specs: Iterable[RunSpec]) -> tuple[Corpus, ...]:
    """The data sets that some of the runs are trained on."""
    used = {spec.data_hash for spec in specs}
    return tuple(corpus for corpus in corpora if corpus.hash in used)


def recipe_of(name: str) -> RunOptions:
    """The recipe of a scale, or another of the table: how networks are trained to be compared."""
    return RunOptions(**packed_table(NAMED_SWEEPS)["recipes"][name])


# ---- networks of equal size


def nearest_width(size: Callable[[int], int], target: int, *, step: int) -> int:
    """The multiple of `step` whose size, which grows with it, comes nearest to the target."""
    most = 1
    while size(most * step) < target:  # not beyond: no network has a width of billions
        most *= 2
    above = step * first_whole(lambda number: size(number * step) >= target, 1, most)
    candidates = (above - step, above) if above > step else (above,)
    return min(candidates, key=lambda width: abs(size(width) - target))


def block_size(options: RunOptions) -> int:
    """Weights in blocks of the network, in the papers 12 L d^2; what it reads does not count."""
    return options.architecture(vocab=2).block_params


def at_size(options: RunOptions, target: int, size: Callable[[RunOptions], int]) -> RunOptions:
    """The network as it is but for its width, which brings a size of it nearest to the target.

    Where heads divide the width it is a multiple of them, and rotary positions need even heads.
    """
    by_heads = max(1, options.heads) * (2 if options.block == "llama" else 1)
    step = 1 if options.head_dim else by_heads
    width = nearest_width(lambda width: size(replace(options, width=width)), target, step=step)
    return replace(options, width=width)


def equal_total(options: RunOptions, *, vocab: int, params: int) -> RunOptions:
    """The network of the width that so many parameters in all allow."""
    return at_size(options, params, lambda sized: sized.architecture(vocab).params)


def ranks_below(limit: int, ranks: Sequence[int]) -> tuple[int, ...]:
    """Those that are a limit; where a small vocabulary leaves none, the smallest there are."""
    below = tuple(rank for rank in ranks if rank < limit)
    return below or tuple(rank for rank in (1, 2, 4)[: len(ranks)] if rank < limit)
