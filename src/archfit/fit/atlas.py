"""The atlas: depths at equal size on many kinds of data, and the best depth of each.

Records ship in resources/atlas (docs/atlas/pack.py puts them there), kinds are described in
kinds.toml. A series is what may be compared: one kind and vocabulary, one block, context, rank and
number of tokens a parameter; in it every size has its depths.

Beside them stand other people's grids of depth and width, for back-tests: facts from public
repositories (MIT).
"""

import csv
import lzma
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

from archfit.fit.best_depth import DepthCurve, DepthPoint, depth_curves
from archfit.fit.cells import grouped
from archfit.fit.foretelling import Foretold, KindCurves, foretold, shipped_fingerprints
from archfit.spec import RunRecord, RunSpec
from archfit.spec.architecture import BlockFamily
from archfit.spec.errors import refuse_if
from archfit.spec.files import packed_file, packed_lines
from archfit.spec.packed import packed_table

RECORDS, KINDS = "atlas/records.jsonl.xz", "atlas/kinds.toml"
HELD_BACK = "atlas/held_back.jsonl.xz"  # kinds that no rate, form or prior has seen
OWN = "own"  # the family of kinds that users add
KIND_NAME = re.compile(r"\w[\w .-]{0,60}")
DOUBLINGS = 1_000_000  # sizes are this times powers of 2, about: 60k and 125k, not 62.5k
ROUND = {62_500: 60_000, 31_250: 30_000, 15_625: 15_000}
GRIDS = "atlas/public_grids.csv.xz"
SOURCES = {
    "gemstones": "McLeish et al. 2025, Gemstones; github.com/mcleish7/gemstone-scaling-laws (MIT)",
    "gadre": "Gadre et al. 2024, tuning grid; github.com/mlfoundations/scaling (MIT)",
    "archai": "LiteTransformerSearch 2022; github.com/microsoft/archai, neurips-lts (MIT)",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class AtlasKind:
    """A kind of data."""

    name: str
    family: str  # text, code, pixels …
    unit: str  # that a bit of loss is counted per
    source: str
    licence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AtlasRun:
    """A line of the packed records."""

    kind: str
    vocabulary: str  # bytes, bpe-2000, 2-mers, 16 levels
    record: RunRecord

    @property
    def spec(self) -> RunSpec:
        """What was trained."""
        return self.record.spec


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """What depths and sizes are compared within."""

    kind: str
    vocabulary: str
    block: BlockFamily
    context: int
    rank: int | None  # of the input embedding, where a factorised table caps it
    tokens_a_parameter: int
    precision: str

    @property
    def is_usual(self) -> bool:
        """Whether only its block and tokens may differ from what most runs of the atlas are."""
        return (self.rank, self.context, self.precision) == (None, 256, "bfloat16")

    @property
    def is_plain(self) -> bool:
        """Whether it is what most runs of the atlas are; others differ from it in one thing."""
        return self.is_usual and self.block == "gpt2" and self.tokens_a_parameter == 20

    @property
    def words(self) -> str:
        """Its vocabulary, and what sets it apart from the plain series of its kind."""
        parts = [self.vocabulary] + ["Llama's blocks"] * (self.block != "gpt2")
        parts += [f"context {self.context}"] * (self.context != 256)
        parts += [f"rank {self.rank}"] * (self.rank is not None)
        parts += [f"{self.tokens_a_parameter} tokens a parameter"] * (self.tokens_a_parameter != 20)
        return ", ".join(parts + [self.precision] * (self.precision != "bfloat16"))

    @classmethod
    def of(cls, run: AtlasRun) -> "Series":
        """The series of a run."""
        shape = run.spec.architecture
        is_capped = shape.embedding_rank < min(shape.width, shape.input.vocab)
        return cls(
            kind=run.kind,
            vocabulary=run.vocabulary,
            block=shape.block,
            context=shape.context,
            rank=shape.embedding_rank if is_capped else None,
            tokens_a_parameter=round(run.spec.training_tokens / size_of(run.spec)),
            precision=run.spec.recipe.precision,
        )


def size_of(spec: RunSpec) -> int:
    """The size that a network was meant to have: 1M times a power of 2, the nearest."""
    doublings = round(math.log2(spec.architecture.params / DOUBLINGS))
    exact = round(DOUBLINGS * 2.0**doublings)
    return ROUND.get(exact, exact)


CurvesOfSeries: TypeAlias = Mapping[Series, tuple[DepthCurve, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Atlas:
    """Kinds, and runs on them."""

    kinds: tuple[AtlasKind, ...]
    runs: tuple[AtlasRun, ...]

    def __repr__(self) -> str:
        kinds = len({run.kind for run in self.runs})
        return f"Atlas({len(self.runs):,} runs on {kinds} kinds of data)"

    def curves(self) -> dict[Series, tuple[DepthCurve, ...]]:
        """The curve of each size in each series."""
        finished = [run for run in self.runs if run.record.status == "finished"]
        by_series, found = grouped(finished, Series.of), {}
        for series in sorted(by_series, key=repr):
            sizes = {}
            for size, own in grouped(by_series[series], lambda run: size_of(run.spec)).items():
                cells = grouped(own, lambda run: replace(run.spec, seed=0)).values()
                # Of a depth at several rates, or in several batches, the best counts.
                points = sorted(map(_point, cells), key=lambda point: -point.mean)
                sizes[size] = list({point.depth: point for point in points}.values())
            found[series] = depth_curves(repr(series), sizes)
        return found

    def features(self, series: Series) -> dict[str, float] | None:
        """What the data of a series are like, where that was counted."""
        table, which = shipped_fingerprints(), (series.kind, series.vocabulary)
        hashes = (r.spec.data_hash for r in self.runs if (r.kind, r.vocabulary) == which)
        return next((table[each] for each in hashes if each in table), None)


def plain_of_kinds(atlas: Atlas, curves: CurvesOfSeries) -> dict[str, Series]:
    """For each kind, its plain series that has most runs."""

    def runs(series: Series) -> int:
        return sum(point.seeds for curve in curves[series] for point in curve.points)

    plain = [series for series, own in curves.items() if series.is_plain and own]
    found = {kind.name: [s for s in plain if s.kind == kind.name] for kind in atlas.kinds}
    return {kind: max(own, key=runs) for kind, own in found.items() if own}


def foretold_by_fingerprints(
    atlas: Atlas, curves: CurvesOfSeries, plain: Mapping[str, Series]
) -> tuple[Foretold, ...]:
    """Whether fingerprints foretell the best depths of a family left out."""
    families = {kind.name: kind.family for kind in atlas.kinds}
    kinds = [
        KindCurves(family=families[kind], curves=curves[series], features=features)
        for kind, series in plain.items()
        if (features := atlas.features(series)) is not None
    ]
    return foretold(kinds)


def _point(runs: Sequence[AtlasRun]) -> DepthPoint:
    """The network of these runs, which differ in their seed."""
    shape = runs[0].spec.architecture
    losses = tuple(run.record.evaluations[-1].heldout_bits_per_byte for run in runs)
    return DepthPoint(depth=shape.depth, params=shape.params, losses=losses)


def with_own(
    atlas: Atlas, name: str, records: Sequence[RunRecord], labels: Mapping[str, str]
) -> Atlas:
    """The atlas with somebody's own runs: more of a kind that it has, or one more kind.

    On the atlas's own data they are runs of that kind, whatever their name. `labels` names data by
    their hash; those of the atlas have theirs.
    """
    known = {run.spec.data_hash: (run.kind, run.vocabulary) for run in atlas.runs}
    hashes = {record.spec.data_hash for record in records}
    kinds = {known[each][0] for each in hashes if each in known}
    family = next((kind.family for kind in atlas.kinds if kind.name == name), "")
    if len(kinds) == 1 and hashes <= known.keys():
        (name,) = kinds
        labels = {each: known[each][1] for each in hashes}
    else:
        check_kind_name(name)
        refuse_if(bool(kinds), "kind-of-both", name=name)
        refuse_if(family == OWN, "kind-twice", name=name)
        refuse_if(bool(family), "kind-of-the-atlas", name=name)
    runs = {(run.kind, run.spec): run for run in atlas.runs}
    for record in records:
        label = labels.get(record.spec.data_hash, "as given")
        runs[name, record.spec] = AtlasRun(kind=name, vocabulary=label, record=record)
    kind = AtlasKind(name=name, family=OWN, unit="byte", source="your runs", licence="yours")
    more = () if name in {known.name for known in atlas.kinds} else (kind,)
    return replace(atlas, kinds=(*atlas.kinds, *more), runs=tuple(runs.values()))


def check_kind_name(name: str) -> None:
    """Refuse a name that would be no name of a file, which figures are."""
    refuse_if(not KIND_NAME.fullmatch(name), "kind-name", name)


@cache
def read_atlas(records: str = RECORDS) -> Atlas:
    """What ships with this version, or the kinds that were held back of it."""
    runs = tuple(packed_lines(AtlasRun, records))
    there = {run.kind for run in runs}
    kinds = (
        AtlasKind(name=name, **facts)
        for name, facts in packed_table(KINDS).items()
        if name in there
    )
    return Atlas(kinds=tuple(kinds), runs=runs)


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicNetwork:
    """A network that somebody trained."""

    grid: str  # a key of SOURCES
    setting: str  # what it may be compared within: a schedule, a tuning, a search
    depth: int
    width: int
    params: int
    tokens: int  # 0: not said
    loss: float  # held-out nats per token


@cache
def public_networks() -> tuple[PublicNetwork, ...]:
    """All of them."""
    text = lzma.decompress(packed_file(GRIDS).read_bytes()).decode()
    kinds = PublicNetwork.__annotations__
    return tuple(
        PublicNetwork(**{name: kinds[name](word) for name, word in row.items()})
        for row in csv.DictReader(text.splitlines())
    )
