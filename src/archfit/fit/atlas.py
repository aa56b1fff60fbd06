"""The atlas: depths at equal size on many kinds of data, and the best depth of each.

Records ship in resources/atlas (docs/atlas/pack.py puts them there), kinds are described in
kinds.toml. A series is what may be compared: one kind and vocabulary, one block, context, rank and
number of tokens a parameter; in it every size has its depths.
"""

import math
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

from archfit.fit.best_depth import DepthCurve, DepthPoint, depth_curves
from archfit.fit.foretelling import Foretold, KindCurves, foretold, shipped_fingerprints
from archfit.spec import RunRecord, RunSpec
from archfit.spec.architecture import BlockFamily
from archfit.spec.files import packed_file, packed_lines
from archfit.spec.frames import frame_of

Labels: TypeAlias = Mapping[str, str]
RECORDS, KINDS = "atlas/records.jsonl.xz", "atlas/kinds.toml"
DOUBLINGS = 1_000_000  # sizes are this times powers of 2, about: 60k and 125k, not 62.5k
ROUND = {62_500: 60_000, 31_250: 30_000, 15_625: 15_000}


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

    def row(self) -> dict[str, object]:
        """Its network, training and loss, in plain values."""
        shape, recipe, record = self.spec.architecture, self.spec.recipe, self.record
        names = ("depth", "width", "heads", "block", "context", "embedding_rank", "params")
        last = record.evaluations[-1] if record.status == "finished" else None
        return {
            "vocabulary": self.vocabulary,
            "size": size_of(self.spec),
            **{name: getattr(shape, name) for name in names},
            "vocab": shape.input.vocab,
            "tokens": self.spec.training_tokens,
            "steps": recipe.steps,
            "learning_rate": recipe.peak_learning_rate,
            "seed": self.spec.seed,
            "status": record.status,
            "bits": last and last.heldout_bits_per_byte,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """What depths and sizes are compared within."""

    kind: str
    vocabulary: str
    block: BlockFamily
    context: int
    rank: int | None  # of the input embedding, where a factorised table caps it
    tokens_a_parameter: int

    @property
    def is_plain(self) -> bool:
        """Whether it is what most runs of the atlas are; others differ from it in one thing."""
        facts = self.block, self.rank, self.context, self.tokens_a_parameter
        return facts == ("gpt2", None, 256, 20)

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
        )


def size_of(spec: RunSpec) -> int:
    """The size that a network was meant to have: 1M times a power of 2, the nearest."""
    doublings = round(math.log2(spec.architecture.params / DOUBLINGS))
    exact = round(DOUBLINGS * 2.0**doublings)
    return ROUND.get(exact, exact)


def size_words(size: int) -> str:
    """60k, 125k, 1M."""
    return f"{size / 1e6:g}M" if size >= 1e6 else f"{size / 1e3:g}k"


@dataclass(frozen=True, kw_only=True, slots=True)
class Atlas:
    """Kinds, and runs on them."""

    kinds: tuple[AtlasKind, ...]
    runs: tuple[AtlasRun, ...]

    def __repr__(self) -> str:
        kinds = len({run.kind for run in self.runs})
        return f"Atlas({len(self.runs):,} runs on {kinds} kinds of data; to_frame() has them)"

    def rows(self) -> list[dict[str, object]]:
        """A run a row, with its loss."""
        families = {kind.name: kind for kind in self.kinds}
        return [
            {"kind": run.kind, "family": families[run.kind].family, **run.row()}
            for run in self.runs
        ]

    def to_dict(self) -> dict[str, object]:
        """What `archfit fit --atlas --json` says of the curves."""
        return atlas_json(self, self.curves())

    def to_frame(self) -> Any:
        """The rows as a DataFrame, of pandas or else of polars."""
        return frame_of(self.rows())

    def curves(self) -> dict[Series, tuple[DepthCurve, ...]]:
        """The curve of each size in each series."""
        cells: dict[Series, dict[int, dict[RunSpec, list[RunRecord]]]]
        cells = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        for run in self.runs:
            if run.record.status == "finished":
                series, cell = Series.of(run), _without_seed(run.spec)
                cells[series][size_of(run.spec)][cell].append(run.record)
        return {
            series: depth_curves(
                repr(series),
                {size: [_point(*each) for each in found.items()] for size, found in sizes.items()},
            )
            for series, sizes in sorted(cells.items(), key=lambda item: repr(item[0]))
        }

    def points(self) -> Iterator[tuple[Series, int, DepthPoint, int, int]]:
        """Every finished run alone: its series, size, loss, seed and vocabulary."""
        for run in self.runs:
            if run.record.status == "finished":
                point, vocab = _point(run.spec, [run.record]), run.spec.architecture.input.vocab
                yield Series.of(run), size_of(run.spec), point, run.spec.seed, vocab

    def features(self, kind: str) -> dict[str, float] | None:
        """What the data of a kind are like, in the vocabulary that they were given in."""
        table = shipped_fingerprints()
        hashes = (run.spec.data_hash for run in self.runs if run.kind == kind)
        return next((table[each] for each in hashes if each in table), None)


def plain_of_kinds(
    atlas: Atlas, curves: Mapping[Series, tuple[DepthCurve, ...]]
) -> dict[str, tuple[DepthCurve, ...]]:
    """For each kind, the curves of its plain series that has most runs."""
    found = {}
    for kind in atlas.kinds:
        plain = [s for s in curves if s.kind == kind.name and s.is_plain and curves[s]]
        if plain:
            found[kind.name] = max(
                (curves[series] for series in plain),
                key=lambda curves: sum(len(p.losses) for c in curves for p in c.points),
            )
    return found


def foretold_by_fingerprints(
    atlas: Atlas, plain: Mapping[str, tuple[DepthCurve, ...]]
) -> tuple[Foretold, ...]:
    """Whether fingerprints foretell the best depths of a family left out."""
    kinds = [
        KindCurves(kind=kind.name, family=kind.family, curves=plain[kind.name], features=features)
        for kind in atlas.kinds
        if kind.name in plain and (features := atlas.features(kind.name)) is not None
    ]
    return foretold(kinds)


def _without_seed(spec: RunSpec) -> RunSpec:
    return replace(spec, seed=0)


def _point(spec: RunSpec, records: Iterable[RunRecord]) -> DepthPoint:
    losses = tuple(record.evaluations[-1].heldout_bits_per_byte for record in records)
    shape = spec.architecture
    return DepthPoint(depth=shape.depth, params=shape.params, losses=losses)


def atlas_json(atlas: Atlas, curves: Mapping[Series, tuple[DepthCurve, ...]]) -> dict[str, object]:
    """Everything that the runs say, kind by kind."""
    return {
        "runs": len(atlas.runs),
        "kinds": [
            {
                **{name: getattr(kind, name) for name in ("name", "family", "unit")},
                **{name: getattr(kind, name) for name in ("source", "licence")},
                "runs": sum(run.kind == kind.name for run in atlas.runs),
                "series": [
                    _series_json(series, found)
                    for series, found in curves.items()
                    if series.kind == kind.name
                ],
            }
            for kind in atlas.kinds
        ],
    }


def _series_json(series: Series, curves: Iterable[DepthCurve]) -> dict[str, object]:
    names = ("vocabulary", "block", "context", "rank", "tokens_a_parameter")
    return {name: getattr(series, name) for name in names} | {
        "sizes": [
            {
                "params": curve.size,
                "best_depth": curve.best.row(),
                "is_inside": curve.is_inside,
                "bits": curve.least,
                "std_of_seeds": curve.noise,
                "explained": curve.explained,
                "depths": [
                    {"depth": p.depth, "params": p.params, "bits": p.mean, "seeds": len(p.losses)}
                    for p in curve.points
                ],
            }
            for curve in curves
        ]
    }


def with_own(atlas: Atlas, name: str, records: Iterable[RunRecord], labels: Labels) -> Atlas:
    """The atlas with somebody's own runs: on data of a kind it has, or as one more kind.

    `labels` names data by their hash; those of the atlas have theirs.
    """
    known = {run.spec.data_hash: run.vocabulary for run in atlas.runs if run.kind == name}
    found = {run.spec: run for run in atlas.runs}
    for record in records:
        if known and record.spec.data_hash not in known:
            raise ValueError(
                f"{name} is a kind of the atlas, and these runs were trained on other data; rename "
                "the folder, or give the sweep another --kind"
            )
        label = (known or labels).get(record.spec.data_hash, "as given")
        found[record.spec] = AtlasRun(kind=name, vocabulary=label, record=record)
    if known:
        return replace(atlas, runs=tuple(found.values()))
    kind = AtlasKind(name=name, family="own", unit="byte", source="your runs", licence="yours")
    return replace(atlas, kinds=(*atlas.kinds, kind), runs=tuple(found.values()))


@cache
def read_atlas() -> Atlas:
    """What ships with this version."""
    table = tomllib.loads(packed_file(KINDS).read_text(encoding="utf-8"))
    kinds = tuple(AtlasKind(name=name, **facts) for name, facts in table.items())
    return Atlas(kinds=kinds, runs=tuple(packed_lines(AtlasRun, RECORDS)))
