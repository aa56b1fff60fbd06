"""The atlas in words and figures: which depth is best at each size, kind by kind.

docs/atlas.md is this document.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias

from archfit.advise.advisers import NetworkFacts, all_advice
from archfit.fit.atlas import (
    Atlas,
    AtlasKind,
    Series,
    atlas_json,
    foretold_by_fingerprints,
    plain_of_kinds,
    size_words,
)
from archfit.fit.best_depth import LEAST_DEPTHS, DepthCurve
from archfit.fit.foretelling import Foretold
from archfit.fit.noise import LEAST_DEGREES
from archfit.report.document import Document, Figure, Section, Table, loaded

Curves: TypeAlias = tuple[DepthCurve, ...]
RULES = ("always 8 layers", "nanochat 2026", "Depth Delusion 2026", "Levine 2020")
SOME_DEPTHS = (2, 8, 32)
EXPLAINED = 0.9  # of the variance, below which a curve is an exception
MOST_SURPRISES = 12
OF_A_KIND = "depth-"  # how the name of the figure of a kind begins


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleLoss:
    """What a rule of others loses at one kind and size, by the curve."""

    rule: str
    kind: str
    curve: DepthCurve
    depth: float

    @property
    def is_trained(self) -> bool:
        """Whether the rule's depth lies among those trained."""
        return bool(self.curve.depths[0] <= self.depth <= self.curve.depths[-1])

    @property
    def loses(self) -> float:
        """Bits; of a depth that was trained."""
        return self.curve.regret(self.depth)


@dataclass(frozen=True, kw_only=True, slots=True)
class AtlasView:
    """The atlas with all that is computed from it, once."""

    atlas: Atlas
    curves: Mapping[Series, Curves]
    plain: Mapping[str, Series]
    rules: tuple[RuleLoss, ...]
    foretold: tuple[Foretold, ...]

    @classmethod
    def of(cls, atlas: Atlas) -> "AtlasView":
        """Fit everything."""
        curves = atlas.curves()
        plain = plain_of_kinds(atlas, curves)
        rules = tuple(
            RuleLoss(rule=rule, kind=kind, curve=curve, depth=depth)
            for kind, series in plain.items()
            for curve in curves[series]
            for rule, depth in rule_depths(curve.size).items()
        )
        told = foretold_by_fingerprints(atlas, curves, plain)
        return cls(atlas=atlas, curves=curves, plain=plain, rules=rules, foretold=told)

    @property
    def kinds(self) -> tuple[AtlasKind, ...]:
        """Those that have a curve."""
        return tuple(kind for kind in self.atlas.kinds if kind.name in self.plain)

    def of_kind(self, kind: AtlasKind) -> Curves:
        """Its plain curves."""
        return self.curves[self.plain[kind.name]]

    @property
    def sizes(self) -> list[int]:
        """All of them, in order."""
        return sorted({curve.size for curves in self.curves.values() for curve in curves})


def rule_depths(size: int) -> dict[str, float]:
    """What others advise for this many parameters, as if all were in blocks."""
    facts = NetworkFacts(block_params=size, rank_limit=size, vocab=0, is_text=True, is_vision=False)
    advice = {each.name: each.depth for each in all_advice(facts)}
    return {name: max(1.0, depth) for name in RULES if (depth := advice[name]) is not None}


def atlas_document(atlas: Atlas) -> Document:
    """Best depths first; what they cost, rules, vocabularies and single kinds for pages."""
    view = AtlasView.of(atlas)
    kinds = len({run.kind for run in atlas.runs})
    return Document(
        title="Which depth is best at each size",
        headline=f"{len(atlas.runs):,} runs on {kinds} kind{'s' * (kinds != 1)} of data",
        sections=(
            _best_section(view),
            _cost_section(view),
            _rules_section(view),
            _surprises_section(view),
            _variants_section(view),
            _foretold_section(view),
            *(_kind_section(view, kind) for kind in view.kinds),
            _exceptions_section(view),
        ),
        data=_data(view),
    )


def _data(view: AtlasView) -> dict[str, object]:
    return atlas_json(view.atlas, view.curves) | {
        "rules": [
            {
                "rule": each.rule,
                "kind": each.kind,
                "params": each.curve.size,
                "depth": each.depth,
                "loses": each.loses if each.is_trained else None,
            }
            for each in view.rules
        ],
        "foretold": [asdict(each) | {"helps": each.helps} for each in view.foretold],
    }


def _best_section(view: AtlasView) -> Section:
    rows = tuple(
        (series.kind, _name(series), *(_best(curves, size) for size in view.sizes))
        for series, curves in view.curves.items()
        if curves
    )
    columns = ("kind", "tokens", *map(size_words, view.sizes))
    said = (
        "Layers that lose least at equal total size, with 90 % intervals; < and > where the best "
        "may lie beyond the depths trained."
        if rows
        else f"No size has {LEAST_DEPTHS} depths and {LEAST_DEGREES} repeats by other seeds, or "
        "depths enough to do without, which a best depth needs."
    )
    return Section(
        sentences=(said,), tables=(Table(title="Best depth", columns=columns, rows=rows),)
    )


def _name(series: Series) -> str:
    """What sets a series apart from the plain one of its kind."""
    parts = [series.vocabulary]
    if series.block != "gpt2":
        parts.append(series.block)
    if not series.is_plain:
        parts += [f"context {series.context}"] * (series.context != 256)
        parts += [f"rank {series.rank}"] * (series.rank is not None)
        more = series.tokens_a_parameter
        parts += [f"{more} tokens a parameter"] * (more != 20)
        parts += [series.precision] * (series.precision != "bfloat16")
    return ", ".join(parts)


def _best(curves: Iterable[DepthCurve], size: int) -> str:
    return next((_interval(curve) for curve in curves if curve.size == size), "")


def _interval(curve: DepthCurve) -> str:
    best = curve.best
    low = "<" if best.low is None else f"{best.low:.2g}"
    high = ">" if best.high is None else f"{best.high:.2g}"
    return f"{best.value:.2g} ({low} to {high})"


def _cost_section(view: AtlasView) -> Section:
    rows = []
    for kind in view.kinds:
        curve = view.of_kind(kind)[-1]
        lost = (_loss_at(curve, depth) for depth in SOME_DEPTHS)
        least = f"{curve.least:.3f} per {kind.unit}"
        rows.append((kind.name, size_words(curve.size), _interval(curve), least, *lost))
    columns = ("kind", "largest size", "best depth", "bits", *(f"{d} layers" for d in SOME_DEPTHS))
    return Section(
        title="What depth is worth",
        sentences=(
            "At the largest size of each kind: the least loss, and what other depths lose.",
        ),
        tables=(Table(title="Bits lost", columns=columns, rows=tuple(rows)),),
        is_detail=True,
    )


def _loss_at(curve: DepthCurve, depth: float) -> str:
    inside = curve.depths[0] <= depth <= curve.depths[-1]
    return f"{curve.regret(depth):.3f}" if inside else ""


def _rules_section(view: AtlasView) -> Section:
    sizes = sorted({each.curve.size for each in view.rules})
    rows = []
    for rule in RULES:
        row = [rule]
        for size in sizes:
            some = [each for each in view.rules if (each.rule, each.curve.size) == (rule, size)]
            lost = [each.loses for each in some if each.is_trained]
            row.append(f"{math.fsum(lost) / len(lost):.3f} ({len(lost)})" if lost else "")
        rows.append(tuple(row))
    columns = ("rule", *map(size_words, sizes))
    table = Table(title="Mean loss of rules, bits (kinds)", columns=columns, rows=tuple(rows))
    return Section(
        title="Best depth against size, and the rules of others",
        sentences=(
            "What each rule loses against the best depth, by the curves, in the mean over the "
            "kinds whose trained depths it lies among. Rules count parameters of blocks; here they "
            "are told the whole size.",
        ),
        tables=(table,) if view.rules else (),
        figures=tuple(_best_figure(view)),
        is_detail=True,
    )


def _best_figure(view: AtlasView) -> Iterator[Figure]:
    families: dict[str, dict[str, Curves]] = {}
    for kind in view.kinds:
        families.setdefault(kind.family, {})[kind.name] = view.of_kind(kind)
    if not families:
        return
    rules: dict[str, dict[int, float]] = {}
    for each in view.rules:
        rules.setdefault(each.rule, {})[each.curve.size] = each.depth

    last = {kind.name: _interval(view.of_kind(kind)[-1]) for kind in view.kinds}
    yield Figure(
        name="best-depth",
        title="Best depth against size",
        caption="Points are best depths, bars 90 % intervals that end with the depths trained; "
        "dashes are rules of others.",
        description="Best depth at the largest size: "
        + ", ".join(f"{name} {words}" for name, words in last.items()),
        chart=lambda page: loaded("report.charts.atlas").best_depth_chart(families, rules, page),
    )


def _surprises_section(view: AtlasView) -> Section:
    outside = [
        each for each in view.rules if each.is_trained and not each.curve.best.contains(each.depth)
    ]
    worst = sorted(outside, key=lambda each: -each.loses / each.curve.least)[:MOST_SURPRISES]
    table = Table.of(
        "Rules that lose most",
        worst,
        {
            "kind": lambda each: each.kind,
            "size": lambda each: size_words(each.curve.size),
            "rule": lambda each: each.rule,
            "its depth": lambda each: f"{each.depth:.2g}",
            "best depth": lambda each: _interval(each.curve),
            "loses (bits)": lambda each: f"{each.loses:.3f}",
            "of the loss": lambda each: f"{100 * each.loses / each.curve.least:.1f} %",
        },
    )
    said = "Where a rule's depth lies outside the interval of the best, and costs most."
    return Section(
        title="What surprised", sentences=(said,) * bool(worst), tables=(table,), is_detail=True
    )


def _variants_section(view: AtlasView) -> Section:
    """Series of a kind that differ in tokens, and what their best networks lose at equal size."""
    found: dict[str, dict[str, Curves]] = {}
    for series, curves in view.curves.items():
        if curves:
            found.setdefault(series.kind, {})[_name(series)] = curves
    several = {kind: variants for kind, variants in found.items() if len(variants) > 1}
    rows = [
        (kind, name, *(_least(curves, size) for size in view.sizes))
        for kind, variants in several.items()
        for name, curves in variants.items()
    ]

    figure = Figure(
        name="vocabularies",
        title="The least loss at each size, by what is read",
        caption="Each point is the loss of the best depth by its curve. Bits are per byte or "
        "symbol of the source; every network has the same number of parameters, tables included, "
        "and of tokens for each, so a larger vocabulary has read more bytes.",
        description=f"Least losses of {', '.join(several)} by vocabulary; the table has them.",
        chart=lambda page: loaded("report.charts.atlas").variant_chart(
            several, "tokens", "bits", page
        ),
    )
    columns = ("kind", "tokens", *map(size_words, view.sizes))
    return Section(
        title="Vocabularies and other variants",
        sentences=(
            "Bits of the best depth, at equal size, tables included. Levels of grey are other "
            "data, whose bits cannot be compared.",
        )
        * bool(rows),
        tables=(Table(title="Least loss", columns=columns, rows=tuple(rows)),),
        figures=(figure,) * bool(several),
        is_detail=True,
    )


def _least(curves: Iterable[DepthCurve], size: int) -> str:
    return next((f"{curve.least:.3f}" for curve in curves if curve.size == size), "")


def _foretold_section(view: AtlasView) -> Section:
    told = view.foretold
    if not told:
        return Section()
    alone, *features = told
    helping = [each.feature for each in features if each.helps]
    answer = (
        f"Yes: {', '.join(helping)}."
        if helping
        else "No: none of these numbers loses less, beyond doubt, than the size alone."
    )
    table = Table.of(
        "Best depths foretold for families left out",
        told,
        {
            "from size and": lambda each: each.feature or "nothing else",
            "mean loss (bits)": lambda each: f"{each.regret:.4f}",
            "error (factor of depth)": lambda each: f"{math.exp(each.error):.2f}",
            "gain over size alone": lambda each: f"{each.gain:+.4f}" if each.feature else "",
            "interval": lambda each: f"{each.low:+.4f} to {each.high:+.4f}" if each.feature else "",
        },
    )
    return Section(
        title="Do statistics of the data foretell the best depth?",
        sentences=(
            answer,
            f"Each family was left out in turn; size alone loses {alone.regret:.4f} bits in the "
            "mean. Intervals are over families, 90 % for all numbers together.",
        ),
        tables=(table,),
        is_detail=True,
    )


def _kind_section(view: AtlasView, kind: AtlasKind) -> Section:
    series, curves = view.plain[kind.name], view.of_kind(kind)

    best = ", ".join(f"{size_words(curve.size)}: {_interval(curve)}" for curve in curves)
    figure = Figure(
        name=f"{OF_A_KIND}{kind.name}",
        title=f"{kind.name}, {_name(series)}",
        caption="Points are means over seeds, brought to the size; lines are fitted curves. A "
        "diamond marks the best depth, the bar its 90 % interval.",
        description=f"Loss over depth of {kind.name}. Best depth by size: {best}.",
        chart=lambda page: loaded("report.charts.atlas").depth_chart(curves, kind.unit, page),
    )
    return Section(
        title=kind.name,
        sentences=(f"{kind.source}. Licence: {kind.licence}. Best depth: {best}.",),
        figures=(figure,),
        is_detail=True,
    )


def _exceptions_section(view: AtlasView) -> Section:
    listed = [(series, curve) for series, curves in view.curves.items() for curve in curves]
    rough = [each for each in listed if each[1].explained < EXPLAINED]
    outside = [each for each in listed if not each[1].is_inside]

    def words(some: Iterable[tuple[Series, DepthCurve]]) -> str:
        named = (f"{s.kind}, {_name(s)}, {size_words(c.size)}" for s, c in some)
        return "; ".join(named) or "none"

    return Section(
        title="Exceptions",
        sentences=(
            f"The curve explains less than {EXPLAINED:.0%} of what seeds do not: {words(rough)}.",
            f"The best depth is the least or largest trained: {words(outside)}.",
        )
        * bool(listed),
        is_detail=True,
    )
