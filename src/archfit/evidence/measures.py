"""What a finding is: the paper's sentence, our numbers with intervals, and a verdict.

Code computes; what the numbers mean in words is in `resources/evidence/claims.toml`.
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import CellResult
from archfit.fit.depths import BestDepth, Crossing
from archfit.fit.fitted import Fits
from archfit.fit.noise import Noise
from archfit.spec.estimate import Estimate
from archfit.spec.files import packed_file

CLAIMS = "evidence/claims.toml"
BYTES, BPE = 257, 2000  # vocabularies of the English text
NEAR = 1.5  # "about" a number: within this factor
PAIR = (2, 8)  # depths that several sweeps compare

Verdict = Literal["confirmed", "refuted", "undecided", "new"]  # new: no paper says anything
Unit = Literal["share", "width", "block parameters", "nats", "bits a byte", "layers", "number"]
UNIT_STYLES: dict[Unit, tuple[float, str, str]] = {  # factor, format and sign
    "share": (100, ".1f", " %"), "width": (1, ",.0f", ""), "layers": (1, ",.0f", ""),
    "block parameters": (1e-6, ".2f", "M"), "nats": (1, "+.4f", ""), "bits a byte": (1, "+.4f", ""),
    "number": (1, ".4g", ""),
}  # fmt: skip
InnerSizes: TypeAlias = tuple[int | None, int | None, int | None]


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
        factor, style, unit = UNIT_STYLES[self.unit]
        value, low, high = (
            "" if number is None else f"{factor * number:{style}}{unit}"
            for number in self.estimate.row().values()
        )
        if value:
            return f"{value} ({low or '…'} to {high or '…'})" if low or high else value
        if low:
            return f"at least {low}"
        return f"at most {high}" if high else "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceFinding:
    """One thing that the runs say."""

    id: str
    question: int  # of seven
    asks: str
    paper: str  # what it says, and where
    measures: tuple[Measure, ...]
    verdict: Verdict
    because: str  # of the verdict, and what to bear in mind
    sweeps: tuple[str, ...]

    def measure(self, what: str) -> Measure:
        """The measure of this name."""
        return next(measure for measure in self.measures if measure.what == what)


def finding(
    claim: str, measures: Iterable[Measure], verdict: Verdict, *, id_: str = "", **words: object
) -> EvidenceFinding:
    """The claim of this name with its numbers; `words` fill the braces of its sentences."""
    text = claim_table()["claims"][claim]
    return EvidenceFinding(
        id=id_ or claim,
        question=text["question"],
        asks=text["asks"].format(**words),
        paper=text["paper"].format(**words),
        measures=tuple(measures),
        verdict=verdict,
        because=text["because"].format(**words),
        sweeps=tuple(sweep.format(**words) for sweep in text["sweeps"]),
    )


@cache
def claim_table() -> dict[str, Any]:
    """The claims by name, and the kinds of data that some are asked of."""
    return tomllib.loads(packed_file(CLAIMS).read_text(encoding="utf-8"))


def verdict_of(*, confirmed: Iterable[bool], refuted: Iterable[bool]) -> Verdict:
    """Confirmed where all that it needs holds, refuted where anything against it does."""
    if any(refuted):
        return "refuted"
    return "confirmed" if all(confirmed) else "undecided"


def within(measures: Sequence[Measure], bands: Sequence[tuple[float, float]]) -> Verdict:
    """Confirmed where all intervals lie inside their bands, refuted where any lies outside."""
    pairs = [(measure.estimate, *band) for measure, band in zip(measures, bands, strict=True)]
    return verdict_of(
        confirmed=(own.is_above(low) and own.is_below(high) for own, low, high in pairs),
        refuted=(own.is_above(high) or own.is_below(low) for own, low, high in pairs),
    )


def share_of(item: MeasuredRedundancy, what: str, *, series: str = "") -> Measure:
    """A redundancy, at its ratio."""
    at, estimate, seeds = item.ratio, item.estimate, item.seeds
    return Measure(what=what, at=at, estimate=estimate, unit="share", seeds=seeds, series=series)


def width_of(item: Crossing, what: str) -> Measure:
    """The shallow width at a crossing; without one nothing is known of it but the range."""
    return Measure(what=what, estimate=item.width, unit="width", seeds=item.seeds)


def size_of(item: Crossing, what: str) -> Measure:
    """The size at a crossing; beyond the range it is a limit."""
    size, (smallest, largest) = item.size, item.range
    if not item.is_crossing and item.beyond == "below":
        size = Estimate(value=None, low=None, high=smallest)
    if not item.is_crossing and item.beyond == "above":
        size = Estimate(value=None, low=largest, high=None)
    return Measure(what=what, estimate=size, unit="block parameters", seeds=item.seeds)


def depth_at(item: BestDepth, what: str) -> Measure:
    """The best depth at one size; the ends are depths that cannot be told from it."""
    return Measure(what=what, at=item.size, estimate=item.estimate, unit="layers", seeds=item.seeds)


def loss_difference(
    source: Fits | Noise, first: CellResult, second: CellResult, what: str, at: float | None = None
) -> Measure:
    """The loss of `first` less that of `second`, which are of one data set and recipe."""
    noise = source if isinstance(source, Noise) else noise_about(source, first)
    half = noise.t(first, second) * noise.error(first, second)
    value, seeds = first.mean - second.mean, min(first.seeds, second.seeds)
    estimate = Estimate(value=value, low=value - half, high=value + half)
    return Measure(what=what, at=at, estimate=estimate, unit="nats", seeds=seeds)


def noise_about(fits: Fits, cell: CellResult) -> Noise:
    """The noise of the data set and recipe of a cell."""
    return next(noise for noise in fits.noise if cell in noise.cells)


def by_inner_sizes(fits: Fits, *, width: int) -> dict[InnerSizes, CellResult]:
    """The cells of this width by the inner sizes of embedding, positions and head."""
    shapes = ((cell.architecture, cell) for cell in fits.cells if cell.architecture.width == width)
    return {
        (s.embedding.inner_size, s.positions.inner_size, getattr(s.head, "inner", None)): cell
        for s, cell in shapes
    }


def pair_of(fits: Fits, *, vocab: int, cap: int | None) -> Crossing:
    """The comparison of 2 and 8 layers for this vocabulary, the embedding's rank capped or not."""
    (found,) = (
        crossing
        for crossing in fits.crossings
        if (crossing.shallow.depth, crossing.deep.depth) == PAIR
        and crossing.shallow.input.vocab == vocab
        and crossing.shallow.embedding.inner_size == cap
    )
    return found
