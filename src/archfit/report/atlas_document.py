"""The atlas in words and figures: which depth is best at each size, kind by kind.

docs/atlas.md is this document.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from archfit.report.document import (
    Document,
    Figure,
    Section,
    Table,
    Template,
    counted,
    json_of,
    loaded,
)

Curves: TypeAlias = tuple[DepthCurve, ...]
RULES = ("always 8 layers", "nanochat 2026", "Depth Delusion 2026", "Levine 2020")
SOME_DEPTHS = (2, 8, 32)
EXPLAINED = 0.9  # of the variance, below which a curve is an exception
MOST_SURPRISES = 12
OF_A_KIND = "depth-"  # how the name of the figure of a kind begins


def loss_at(curve: DepthCurve, depth: float) -> float | None:
    """What a depth loses against the best; None where it lies beyond those trained."""
    is_trained = curve.depths[0] <= depth <= curve.depths[-1]
    return curve.regret(depth) if is_trained else None


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleLoss:
    """What a rule of others loses at one kind and size, by the curve."""

    rule: str
    kind: str
    curve: DepthCurve
    depth: float
    loses: float | None  # bits; None where its depth lies beyond those trained


@dataclass(frozen=True, kw_only=True, slots=True)
class AtlasView:
    """The atlas with all that is computed from it, once."""

    atlas: Atlas
    curves: Mapping[Series, Curves]
    plain: Mapping[str, Series]
    rules: tuple[RuleLoss, ...]
    foretold: tuple[Foretold, ...]
    kinds: Mapping[AtlasKind, Curves]  # those that have plain curves, and these

    @classmethod
    def of(cls, atlas: Atlas) -> "AtlasView":
        """Fit everything."""
        curves = atlas.curves()
        plain = plain_of_kinds(atlas, curves)
        rules = tuple(
            RuleLoss(rule=rule, kind=kind, curve=curve, depth=depth, loses=loss_at(curve, depth))
            for kind, series in plain.items()
            for curve in curves[series]
            for rule, depth in rule_depths(curve.size).items()
        )
        told = foretold_by_fingerprints(atlas, curves, plain)
        kinds = {kind: curves[plain[kind.name]] for kind in atlas.kinds if kind.name in plain}
        return cls(atlas=atlas, curves=curves, plain=plain, rules=rules, foretold=told, kinds=kinds)

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
    kinds = counted(len({run.kind for run in atlas.runs}), "kind")
    headline = f"{len(atlas.runs):,} runs on {kinds} of data"
    if last := [curves[-1].best.value or 1.0 for curves in view.kinds.values()]:
        headline += f": best depths of {min(last):.2g} to {max(last):.2g} layers, by kind and size"
    return Document(
        title="Which depth is best at each size",
        headline=headline,
        sections=(
            Section.of("", *_largest(view)),
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


def _largest(view: AtlasView) -> Iterator[str]:
    """The best depth at the largest size of each kind."""
    if view.kinds:
        said = (
            f"{kind.name} {size_words(curves[-1].size)}: {_interval(curves[-1])}"
            for kind, curves in view.kinds.items()
        )
        yield f"Best number of layers at the largest size, with 90 % intervals: {'; '.join(said)}."


def _data(view: AtlasView) -> dict[str, object]:
    return atlas_json(view.atlas, view.curves) | {
        "rules": [json_of("rule-loss", each) for each in view.rules],
        "foretold": [asdict(each) | {"helps": each.helps} for each in view.foretold],
    }


def _best_section(view: AtlasView) -> Section:
    named = [(series.kind, _name(series), curves) for series, curves in view.curves.items()]
    table = _by_size("Best depth", view.sizes, named, _interval)
    said = (
        "Best number of layers at equal total size, with 90 % intervals; < and > mean that it may "
        "lie beyond the depths trained."
        if table.rows
        else f"A best depth needs a size with {LEAST_DEPTHS} depths and {LEAST_DEGREES} repeats by "
        "other seeds, or more depths; there is none."
    )
    return Section.of("", said, table, is_why=bool(table.rows))


def _by_size(
    title: str,
    sizes: Sequence[int],
    series: Iterable[tuple[str, str, Curves]],
    words: Callable[[DepthCurve], str],
) -> Table:
    """A row a series that has curves, a column a size, and in it the words for the curve."""
    rows = []
    for kind, name, curves in series:
        found = {curve.size: words(curve) for curve in curves}
        if found:
            rows.append((kind, name, *(found.get(size, "") for size in sizes)))
    columns = ("kind", "tokens", *map(size_words, sizes))
    return Table(title=title, columns=columns, rows=tuple(rows))


def _name(series: Series) -> str:
    """What sets a series apart from the plain one of its kind."""
    parts = [series.vocabulary] + [series.block] * (series.block != "gpt2")
    if not series.is_plain:
        more = series.tokens_a_parameter
        parts += [f"context {series.context}"] * (series.context != 256)
        parts += [f"rank {series.rank}"] * (series.rank is not None)
        parts += [f"{more} tokens a parameter"] * (more != 20)
        parts += [series.precision] * (series.precision != "bfloat16")
    return ", ".join(parts)


def _interval(curve: DepthCurve) -> str:
    return Template().format("{0.value:.2g} ({0.low:.2g|<} to {0.high:.2g|>})", curve.best)


def _cost_section(view: AtlasView) -> Section:
    rows = []
    for kind, (*_, curve) in view.kinds.items():
        lost = (Template().format("{:.3f|}", loss_at(curve, depth)) for depth in SOME_DEPTHS)
        least = f"{curve.least:.3f} per {kind.unit}"
        rows.append((kind.name, size_words(curve.size), _interval(curve), least, *lost))
    columns = ("kind", "largest size", "best depth", "bits", *(f"{d} layers" for d in SOME_DEPTHS))
    table = Table(title="Bits lost", columns=columns, rows=tuple(rows))
    return Section.of_page("atlas-worth", table)


def _rules_section(view: AtlasView) -> Section:
    sizes = sorted({each.curve.size for each in view.rules})
    rows = []
    for rule in RULES:
        row = [rule]
        for size in sizes:
            some = [each for each in view.rules if (each.rule, each.curve.size) == (rule, size)]
            lost = [each.loses for each in some if each.loses is not None]
            row.append(f"{math.fsum(lost) / len(lost):.3f} ({len(lost)})" if lost else "")
        rows.append(tuple(row))
    columns = ("rule", *map(size_words, sizes))
    table = Table(title="Mean loss of rules, bits (kinds)", columns=columns, rows=tuple(rows))
    tables, figures = [table] * bool(view.rules), [_best_figure(view)] if view.kinds else []
    return Section.of_page("atlas-rules", *tables, *figures)


def _best_figure(view: AtlasView) -> Figure:
    families: dict[str, dict[str, Curves]] = {}
    for kind, curves in view.kinds.items():
        families.setdefault(kind.family, {})[kind.name] = curves
    rules: dict[str, dict[int, float]] = {}
    for each in view.rules:
        rules.setdefault(each.rule, {})[each.curve.size] = each.depth
    return Figure.of(
        "best-depth",
        "".join(_largest(view)),
        lambda page: loaded("depth_charts").best_depth_chart(families, rules, page),
    )


def _surprises_section(view: AtlasView) -> Section:
    outside = [
        each
        for each in view.rules
        if each.loses is not None and not each.curve.best.contains(each.depth)
    ]
    worst = sorted(outside, key=lambda each: -(each.loses or 0) / each.curve.least)[:MOST_SURPRISES]
    table = Table.of(
        "surprises",
        worst,
        size=lambda each: size_words(each.curve.size),
        best=lambda each: _interval(each.curve),
        share=lambda each: 100 * each.loses / each.curve.least,
    )
    return Section.of_page("atlas-surprises", table) if worst else Section()


def _variants_section(view: AtlasView) -> Section:
    """Series of a kind that differ in tokens, and what their best networks lose at equal size."""
    found: dict[str, dict[str, Curves]] = {}
    for series, curves in view.curves.items():
        if curves:
            found.setdefault(series.kind, {})[_name(series)] = curves
    several = {kind: variants for kind, variants in found.items() if len(variants) > 1}
    if not several:
        return Section()
    listed = [(kind, *variant) for kind, some in several.items() for variant in some.items()]
    figure = Figure.of(
        "vocabularies",
        f"Least losses of {', '.join(several)} by vocabulary; the table has them.",
        lambda page: loaded("depth_charts").variant_chart(several, page),
    )
    table = _by_size("Least loss", view.sizes, listed, lambda curve: f"{curve.least:.3f}")
    return Section.of_page("atlas-variants", table, figure)


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
        "foretold",
        told,
        factor=lambda each: math.exp(each.error),
        gain=lambda each: each.gain if each.feature else None,
        interval=lambda each: f"{each.low:+.4f} to {each.high:+.4f}" if each.feature else "",
    )
    return Section.of(
        "Do statistics of the data foretell the best depth?",
        answer,
        f"Each family was left out in turn; size alone loses {alone.regret:.4f} bits in the mean. "
        "Intervals are over families, 90 % for all numbers together.",
        table,
        is_detail=True,
    )


def _kind_section(view: AtlasView, kind: AtlasKind) -> Section:
    series, curves = view.plain[kind.name], view.kinds[kind]
    best = ", ".join(f"{size_words(curve.size)}: {_interval(curve)}" for curve in curves)
    figure = Figure.of(
        "depth-{kind}",
        f"Loss over depth of {kind.name}. Best depth by size: {best}.",
        lambda page: loaded("depth_charts").kind_chart(curves, kind.unit, page),
        kind=kind.name,
        tokens=_name(series),
    )
    said = f"{kind.source}. Licence: {kind.licence}. Best depth: {best}."
    return Section.of(kind.name, said, figure, is_detail=True)


def _exceptions_section(view: AtlasView) -> Section:
    listed = [(series, curve) for series, curves in view.curves.items() for curve in curves]
    if not listed:
        return Section()

    def words(some: Iterable[tuple[Series, DepthCurve]]) -> str:
        named = (f"{s.kind}, {_name(s)}, {size_words(c.size)}" for s, c in some)
        return "; ".join(named) or "none"

    rough = words(each for each in listed if each[1].explained < EXPLAINED)
    outside = words(each for each in listed if not each[1].is_inside)
    return Section.of(
        "Exceptions",
        f"The curve explains less than {EXPLAINED:.0%} of what seeds do not: {rough}.",
        f"The best depth is the least or largest trained: {outside}.",
        is_detail=True,
    )
