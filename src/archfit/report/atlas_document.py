"""The atlas in words and figures: which depth is best at each size, kind by kind.

docs/atlas.md is this document.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

from archfit.advise.advisers import NetworkFacts, all_advice
from archfit.fit.atlas import (
    Atlas,
    AtlasKind,
    Series,
    foretold_by_fingerprints,
    plain_of_kinds,
    size_of,
)
from archfit.fit.best_depth import FAILED, LEAST_DEPTHS, DepthCurve
from archfit.fit.foretelling import AFTER_TWO, Foretold
from archfit.fit.noise import LEAST_DEGREES
from archfit.report.document import Document, Figure, Section, Table, json_of, said, size_words

Curves: TypeAlias = tuple[DepthCurve, ...]
RULES = ("always 8 layers", "nanochat 2026", "Depth Delusion 2026", "Levine 2020")
SOME_DEPTHS = (2, 8, 32)
EXPLAINED = 0.9  # of the variance, below which a curve is an exception
MOST_SURPRISES = 12
LARGEST = "Best number of layers (90 % interval) at the largest size, in parameters"
OF_A_KIND = "depth-"  # how the name of the figure of a kind begins


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleLoss:
    """What a rule of others loses at one kind and size, by the curve."""

    rule: str
    kind: str
    curve: DepthCurve
    depth: float
    loses: float | None  # in bits; None where its depth lies beyond those trained


def _loss_at(curve: DepthCurve, depth: float) -> float | None:
    """What a depth loses against the best; None where it lies beyond those trained."""
    is_trained = curve.depths[0] <= depth <= curve.depths[-1]
    return curve.regret(depth) if is_trained else None


@dataclass(frozen=True, kw_only=True, slots=True)
class AtlasView:
    """The atlas with all that is computed from it, once."""

    atlas: Atlas
    curves: Mapping[Series, Curves]
    kinds: Mapping[AtlasKind, tuple[str, Curves]]  # name and curves of its plain series
    rules: tuple[RuleLoss, ...]
    foretold: tuple[Foretold, ...]

    @classmethod
    def of(cls, atlas: Atlas) -> "AtlasView":
        """Fit everything."""
        curves = atlas.curves()
        plain = plain_of_kinds(atlas, curves)
        own = {kind: plain[kind.name] for kind in atlas.kinds if kind.name in plain}
        rules = tuple(
            RuleLoss(rule=rule, kind=kind, curve=curve, depth=at, loses=_loss_at(curve, at))
            for kind, series in plain.items()
            for curve in curves[series]
            for rule, at in rule_depths(curve.size).items()
        )
        return cls(
            atlas=atlas,
            curves=curves,
            kinds={kind: (series.words, curves[series]) for kind, series in own.items()},
            rules=rules,
            foretold=foretold_by_fingerprints(atlas, curves, plain),
        )

    def by_size(self, title: str, words: Callable[[DepthCurve, bool], str]) -> Table:
        """A row a series that has curves, a column a size, and in it the words for the curve, and
        whether its networks have learnt more than which token follows two others."""
        sizes = sorted({curve.size for curves in self.curves.values() for curve in curves})
        rows = []
        for series, curves in self.curves.items():
            least = (self.atlas.features(series) or {}).get(AFTER_TWO, math.inf)
            cells = {curve.size: words(curve, curve.least < least) for curve in curves}
            if cells:
                told = (cells.get(size, "") for size in sizes)
                rows.append((series.kind, series.words, *told))
        columns = ("data", "tokens", *map(size_words, sizes))
        return Table(title=title, columns=columns, rows=tuple(rows))


def rule_depths(size: int) -> dict[str, float]:
    """What others advise for this many parameters, as if all were in blocks."""
    facts = NetworkFacts(block_params=size, rank_limit=size, is_text=True, is_vision=False)
    advice = {each.name: each.depth for each in all_advice(facts)}
    return {name: max(1.0, depth) for name in RULES if (depth := advice[name]) is not None}


def atlas_document(atlas: Atlas) -> Document:
    """Best depths first; what they cost, rules, vocabularies and single kinds for pages."""
    view = AtlasView.of(atlas)
    headline = said("atlas.runs", len(atlas.runs), len({run.kind for run in atlas.runs}))
    if last := [curves[-1].best.value or 1.0 for _, curves in view.kinds.values()]:
        headline += said("atlas.ends", min(last), max(last))
    intervals = view.by_size("Intervals", lambda curve, _: _best(curve))
    return Document(
        title="Which depth is best at each size",
        headline=headline,
        sections=(
            Section.of(*_largest(view), title=LARGEST),
            _best_section(view),
            Section.of_page("atlas-intervals", intervals),
            Section.of_page("atlas-worth", _costs(view)),
            _rules_section(view),
            _surprises_section(view),
            _variants_section(view),
            _foretold_section(view),
            *(_kind_section(kind, *plain) for kind, plain in view.kinds.items()),
            _exceptions_section(view),
        ),
        data=_json(view),
    )


def _json(view: AtlasView) -> dict[str, object]:
    """Everything that the runs say, kind by kind."""
    series: dict[str, list[object]] = {kind.name: [] for kind in view.atlas.kinds}
    for each, curves in view.curves.items():
        series[each.kind].append(json_of("atlas-series", each, sizes=curves))
    runs = Counter(run.kind for run in view.atlas.runs)
    kinds = [
        asdict(kind) | {"runs": runs[kind.name], "series": series[kind.name]}
        for kind in view.atlas.kinds
    ]
    return {
        "runs": len(view.atlas.runs),
        "kinds": kinds,
        "rules": [json_of("rule-loss", each) for each in view.rules],
        "foretold": [asdict(each) | {"helps": each.helps} for each in view.foretold],
    }


def atlas_rows(atlas: Atlas) -> list[dict[str, object]]:
    """A run a row: its network, training and loss, in plain values."""
    family = {kind.name: kind.family for kind in atlas.kinds}
    rows = []
    for run in atlas.runs:
        last = run.record.evaluations[-1] if run.record.status == "finished" else None
        more = {"family": family[run.kind], "size": size_of(run.spec), "last": last}
        rows.append(json_of("atlas-run", run, **more))
    return rows


def _largest(view: AtlasView) -> Iterator[str]:
    """The best depth at the largest size of each kind, a sentence a family."""
    families: dict[str, list[str]] = {}
    for kind, (_, (*_, curve)) in view.kinds.items():
        words = f"{kind.name} {size_words(curve.size)} {_best(curve, '.0f')}"
        families.setdefault(kind.family, []).append(words)
    yield from (f"{family}: {'; '.join(some)}." for family, some in families.items())


def _best_section(view: AtlasView) -> Section:
    table = view.by_size(
        "Best depth", lambda curve, is_trained: _best(curve, is_brief=True) + "*" * (not is_trained)
    )
    if not table.rows:
        return Section.of(said("atlas.none", depths=LEAST_DEPTHS, repeats=LEAST_DEGREES))
    return Section.of_page("atlas-best", table, is_why=True)


def _best(curve: DepthCurve, form: str = ".2g", *, is_brief: bool = False) -> str:
    """The best depth with its interval, or what is known of it; in brief, one number and a sign."""
    low, high = curve.best.low, curve.best.high
    if high is None and low == curve.depths[0]:  # where depths end an end says nothing
        low = None
    if low is None and high is None:
        return "?" if is_brief else "not resolved"
    above, below = ("≥", "≤") if is_brief else ("at least ", "at most ")
    limit = f"{above}{low:.0f}" if high is None else f"{below}{high:.0f}"
    if is_brief or not curve.is_inside:
        return f"{curve.best.value:{form}}" if curve.is_inside else limit
    ends = limit if low is None or high is None else f"{low:{form}} to {high:{form}}"
    return f"{curve.best.value:{form}} ({ends})"


def _costs(view: AtlasView) -> Table:
    rows = []
    for kind, (_, (*_, curve)) in view.kinds.items():
        lost = (said("atlas.lost", _loss_at(curve, depth)) for depth in SOME_DEPTHS)
        least = f"{curve.least:.3f} per {kind.unit}"
        rows.append((kind.name, size_words(curve.size), _best(curve), least, *lost))
    columns = ("data", "largest size", "best depth", "bits", *(f"{d} layers" for d in SOME_DEPTHS))
    return Table(title="Bits lost", columns=columns, rows=tuple(rows))


def _rules_section(view: AtlasView) -> Section:
    sizes = sorted({each.curve.size for each in view.rules})
    families: dict[str, dict[str, Curves]] = {}
    for kind, (_, curves) in view.kinds.items():
        families.setdefault(kind.family, {})[kind.name] = curves
    rules: dict[str, dict[int, float]] = {}
    lost: dict[tuple[str, int], list[float]] = {}
    for each in view.rules:
        rules.setdefault(each.rule, {})[each.curve.size] = each.depth
        if each.loses is not None:
            lost.setdefault((each.rule, each.curve.size), []).append(each.loses)
    means = {at: f"{math.fsum(some) / len(some):.3f} ({len(some)})" for at, some in lost.items()}
    table = Table(
        title="Mean regret of rules, bits (data sets)",
        columns=("rule", *map(size_words, sizes)),
        rows=tuple((rule, *(means.get((rule, size), "") for size in sizes)) for rule in RULES),
    )
    described = f"{LARGEST}: {' '.join(_largest(view))}"
    figures = [Figure.of("best-depth", described, families, rules)] if view.kinds else []
    return Section.of_page("atlas-rules", *[table] * bool(sizes), *figures)


def _surprises_section(view: AtlasView) -> Section:
    """Where a rule's depth lies outside of the interval of the best, and costs most."""
    shares = [
        (each, each.loses / each.curve.least)
        for each in view.rules
        if each.loses is not None and not each.curve.best.contains(each.depth)
    ]
    worst = sorted(shares, key=lambda row: -row[1])[:MOST_SURPRISES]
    table = Table.of("surprises", worst, best=lambda row: _best(row[0].curve))
    return Section.of_page("atlas-surprises", table)


def _variants_section(view: AtlasView) -> Section:
    """Series of a kind that differ in tokens, and what their best networks lose at equal size."""
    found: dict[str, dict[str, Curves]] = {}
    for series, curves in view.curves.items():
        if curves:
            found.setdefault(series.kind, {})[series.words] = curves
    several = {kind: variants for kind, variants in found.items() if len(variants) > 1}
    table = view.by_size("Least loss", lambda curve, _: f"{curve.least:.3f}")
    table = replace(table, rows=tuple(row for row in table.rows if row[0] in several))
    figure = Figure.of("vocabularies", said("atlas.variants", several), several)
    return Section.of_page("atlas-variants", table, figure)


def _foretold_section(view: AtlasView) -> Section:
    if not view.foretold:
        return Section()
    alone, *features = view.foretold
    helping = [each.feature for each in features if each.helps]
    table = Table.of(
        "foretold",
        view.foretold,
        factor=lambda each: math.exp(each.error),
        gain=lambda each: each.gain if each.feature else None,
        interval=lambda each: said("report.ends", each) if each.feature else "",
    )
    answer = said("atlas.helps" if helping else "atlas.helpless", helping)
    return Section.of_page("atlas-predicted", table, answer=answer, regret=alone.regret)


def _kind_section(kind: AtlasKind, name: str, curves: Curves) -> Section:
    best = ", ".join(f"{size_words(curve.size)}: {_best(curve)}" for curve in curves)
    described, words = said("atlas.figure", kind, best=best), {"kind": kind.name, "tokens": name}
    figure = Figure.of("depth-{kind}", described, curves, kind.unit, **words)
    return Section.of(said("atlas.kind", kind, best=best), figure, title=kind.name, is_detail=True)


def _exceptions_section(view: AtlasView) -> Section:
    rough, failed = [], []
    for series, curves in view.curves.items():
        for curve in curves:
            name = f"{series.kind}, {series.words}, {size_words(curve.size)}"
            rough += [name] * (curve.explained < EXPLAINED)
            failed += [f"{name}, {point.depth} layers" for point in curve.failed]
    words = ("; ".join(names) or "none" for names in (rough, failed))
    told = said("atlas.exceptions", EXPLAINED, *words, FAILED)
    return Section.of(*[told] * any(view.curves.values()), title="Exceptions", is_detail=True)
