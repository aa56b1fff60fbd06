"""The runs that ship with archfit, and what a finding from them is.

Records of sweeps on one GPU, with where and how they were made; `docs/evidence/pack.py` puts them
into the package. A finding is the paper's sentence, our numbers with intervals, and a verdict, but
none where the networks are outside of what the sentence assumes. Code computes; what the numbers
mean in words, and what is assumed, is in `resources/evidence/claims.toml`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Literal

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import CellResult, cells_of
from archfit.fit.comparisons import CellDifference, difference_of
from archfit.fit.depths import BestDepth, Crossing
from archfit.fit.evidence_points import OUTSIDE
from archfit.fit.fitted import Fits, fitted
from archfit.fit.noise import LEAST_DEGREES
from archfit.spec import Architecture, RunRecord, loads
from archfit.spec.estimate import Estimate
from archfit.spec.files import packed_file, packed_lines
from archfit.spec.packed import packed_table

SWEEPS, RECORDS = "evidence/sweeps.json", "evidence/records.jsonl.xz"
CLAIMS = "evidence/claims.toml"

Verdict = Literal[  # new: no paper says anything
    "confirmed", "refuted", "undecided", "new", "outside the claim's hypotheses"
]  # fmt: skip
Unit = Literal[
    "share", "width", "block parameters", "nats", "bits a byte", "layers", "number", "nats, one run"
]


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

    @property
    def is_repeated(self) -> bool:
        """Whether its runs have seeds enough to be fitted alone."""
        cells = cells_of(evidence_records(self.name))
        return sum(cell.seeds - 1 for cell in cells) >= LEAST_DEGREES

    def trained(self) -> tuple[RunRecord, ...]:
        """The records that this sweep trained itself."""
        known = {record.spec for record in evidence_records(*self.reuses)}
        return tuple(record for record in evidence_records(self.name) if record.spec not in known)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The sweeps and their data; the records are `evidence_records`."""

    data: tuple[LabelledData, ...]
    sweeps: tuple[ShippedSweep, ...]

    @property
    def shipped(self) -> tuple[ShippedSweep, ...]:
        """The sweeps whose records are there; of some only the command is known yet."""
        return tuple(sweep for sweep in self.sweeps if evidence_records(sweep.name))

    @property
    def labels(self) -> dict[str, str]:
        """What the data are, in words, by their hash."""
        return {data.hash: data.label for data in self.data}


@cache
def packed_runs() -> tuple[PackedRun, ...]:
    """The records of all sweeps; runs that several share stand with each."""
    return tuple(packed_lines(PackedRun, RECORDS))


def evidence_records(*sweeps: str) -> tuple[RunRecord, ...]:
    """The records of these sweeps, each run once."""
    lines = (line for line in packed_runs() if line.sweep in sweeps)
    return tuple({line.record.spec: line.record for line in lines}.values())


@cache
def evidence_fits(*sweeps: str) -> Fits:
    """What these sweeps say together; computed once."""
    return fitted(evidence_records(*sweeps))


def read_evidence() -> Evidence:
    """What ships with this version."""
    return loads(Evidence, packed_file(SWEEPS).read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """A number with its 90 % interval; an end is None where the sizes that were trained end.

    Without a value only the ends that are there are known: at least `low`, or at most `high`.
    """

    what: str
    at: float | None = None  # the ratio, rank, size or number of steps that it belongs to
    estimate: Estimate
    unit: Unit
    seeds: int
    series: str = ""  # the curve that it belongs to, where a finding has several

    def __str__(self) -> str:
        factor, style, unit = claim_table()["units"][self.unit]
        numbers = self.estimate.row().values()
        value, low, high = ("" if n is None else f"{factor * n:{style}}{unit}" for n in numbers)
        if value:
            return f"{value} ({low or '…'} to {high or '…'})" if low or high else value
        if low:
            return f"at least {low}"
        return f"at most {high}" if high else "unknown"


# What hypotheses of claims are about, where it is no attribute of a network; claims.toml has the
# range that each claim was made for.
TOKENS = "training tokens"  # what else a claim may have been made for
QUANTITIES: Mapping[str, Callable[[Architecture], float]] = {
    "depth less log3 of the width": lambda shape: shape.depth - math.log(shape.width, 3),
    "rank less heads": lambda shape: shape.embedding_rank - shape.heads,
    "width less rank": lambda shape: shape.width - shape.embedding_rank,
    "hidden units over attention": lambda s: s.feed_forward / (s.heads * s.head_dim),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedHypothesis:
    """What a claim assumes, and the first of the networks that are to decide it but are not so."""

    says: str
    holds: bool
    outside: str  # empty where it holds

    def __str__(self) -> str:
        return f"{self.says}: {'holds' if self.holds else f'not so for {self.outside}'}"


def checked_hypotheses(
    claim: str, shapes: Sequence[Architecture], tokens: float = math.nan
) -> tuple[CheckedHypothesis, ...]:
    """All that the claim assumes, for these networks and the tokens they were trained on; those
    outside neither confirm nor refute."""
    found = []
    for name in claim_table()["claims"][claim]["assumes"]:
        about, words = claim_table()["hypotheses"][name], ""
        quantity, low, high = (about[key] for key in ("quantity", "least", "most"))
        if quantity == TOKENS:
            words = "" if low <= tokens <= high else f"{tokens / 1e6:,.0f}M"
        else:
            of = QUANTITIES.get(quantity) or attrgetter(quantity)
            out = next((shape for shape in shapes if not low <= of(shape) <= high), None)
            words = f"{out.depth} x {out.width} ({of(out):.3g})" if out else ""
        found.append(CheckedHypothesis(says=about["says"], holds=not words, outside=words))
    return tuple(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceFinding:
    """One thing that the runs say."""

    id: str
    question: int  # of seven
    asks: str
    paper: str  # what it says, and where
    measures: tuple[Measure, ...]
    verdict: Verdict
    hypotheses: tuple[CheckedHypothesis, ...]  # of the claim; none where no paper claims anything
    because: str  # of the verdict, and what to bear in mind
    sweeps: tuple[str, ...]


def finding(
    claim: str,
    measures: Iterable[Measure],
    verdict: Verdict,
    shapes: Iterable[Architecture],
    trained_on: float = math.nan,  # tokens
    /,
    *,
    id_: str = "",
    **words: Any,
) -> EvidenceFinding:
    """The claim of this name with its numbers; `words` fill the braces of its sentences.

    `shapes` are the networks that decide; where a hypothesis does not hold for one, nothing does.
    """
    text, deciding = claim_table()["claims"][claim], tuple(shapes)
    hypotheses = checked_hypotheses(claim, deciding, trained_on)
    is_inside = bool(deciding) and all(one.holds for one in hypotheses)
    return EvidenceFinding(
        id=id_ or claim,
        question=text["question"],
        measures=tuple(measures),
        verdict=verdict if is_inside or verdict == "new" else OUTSIDE,
        hypotheses=hypotheses,
        sweeps=tuple(sweep.format(**words) for sweep in text["sweeps"]),
        **{name: text[name].format(**words) for name in ("asks", "paper", "because")},
    )


def is_inside(claim: str, *shapes: Architecture) -> bool:
    """Whether all of these networks are what the claim is about."""
    return all(one.holds for one in checked_hypotheses(claim, shapes))


def claim_table() -> dict[str, Any]:
    """The claims by name, what they may assume, and the kinds of data that some are asked of."""
    return packed_table(CLAIMS)


def verdict_of(confirmed: Iterable[bool], refuted: Iterable[bool]) -> Verdict:
    """Confirmed where all that it needs holds, refuted where anything against it does."""
    if any(refuted):
        return "refuted"
    return "confirmed" if all(confirmed) else "undecided"


def all_above(limit: float, *measures: Measure) -> Verdict:
    """Whether all intervals lie above a number; refuted where any lies below it."""
    own = [measure.estimate for measure in measures]
    return verdict_of((one.is_above(limit) for one in own), (one.is_below(limit) for one in own))


def all_larger(pairs: Iterable[tuple[Measure, Measure]]) -> Verdict:
    """Whether the first of each pair lies above the second; refuted where any lies below."""
    own = [(first.estimate, second.estimate) for first, second in pairs]
    return verdict_of((a.lies_above(b) for a, b in own), (b.lies_above(a) for a, b in own))


def within(measures: Iterable[Measure], bands: Iterable[tuple[float, float]]) -> Verdict:
    """Confirmed where all intervals lie inside their bands, refuted where any lies outside."""
    own = [(measure.estimate, *band) for measure, band in zip(measures, bands, strict=True)]
    return verdict_of(
        confirmed=(one.is_above(low) and one.is_below(high) for one, low, high in own),
        refuted=(one.is_above(high) or one.is_below(low) for one, low, high in own),
    )


def measured(
    item: MeasuredRedundancy | BestDepth | CellDifference,
    what: str,
    unit: Unit,
    at: float | None = None,
    series: str = "",
) -> Measure:
    """What was found, as a measure; of a best depth the ends are depths that it is tied with."""
    estimate, seeds = item.estimate, item.seeds
    return Measure(what=what, at=at, estimate=estimate, unit=unit, seeds=seeds, series=series)


def crossing_at(item: Crossing, what: str, unit: Literal["width", "block parameters"]) -> Measure:
    """The size at a crossing, or the shallow width; beyond the range it is a limit."""
    (smallest, largest), low, high = item.range, item.beyond == "above", item.beyond == "below"
    found = {"width": item.width, "block parameters": item.size}[unit]
    if not item.is_crossing:
        found = Estimate(value=None, low=largest if low else None, high=smallest if high else None)
        if unit == "width":
            found = found.rising(lambda size: math.sqrt(size / (12 * item.shallow.depth)))
    return Measure(what=what, estimate=found, unit=unit, seeds=item.seeds)


def loss_difference(
    fits: Fits, first: CellResult, second: CellResult, what: str, at: float | None = None
) -> Measure:
    """The loss of `first` less that of `second`, which are of one data set and recipe."""
    return measured(difference_of(first, second, fits.noise_about(first)), what, "nats", at)
