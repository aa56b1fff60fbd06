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
from archfit.fit.foretelling import AFTER_TWO, Foretold
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
    written,
)

Curves: TypeAlias = tuple[DepthCurve, ...]
RULES = ("always 8 layers", "nanochat 2026", "Depth Delusion 2026", "Levine 2020")
SOME_DEPTHS = (2, 8, 32)
EXPLAINED = 0.9  # of the variance, below which a curve is an exception
MOST_SURPRISES = 12
LARGEST = "Best number of layers (90 % interval) at the largest size, in parameters"
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
    facts = NetworkFacts(block_params=size, rank_limit=size, is_text=True, is_vision=False)
    advice = {each.name: each.depth for each in all_advice(facts)}
    return {name: max(1.0, depth) for name in RULES if (depth := advice[name]) is not None}


def atlas_document(atlas: Atlas) -> Document:
    """Best depths first; what they cost, rules, vocabularies and single kinds for pages."""
    view = AtlasView.of(atlas)
    kinds = counted(len({run.kind for run in atlas.runs}), "kind")
    headline = f"{len(atlas.runs):,} runs on {kinds} of data"
    if last := [curves[-1].best.value or 1.0 for curves in view.kinds.values()]:
        ends = f"{min(last):.0f} to {max(last):.0f} layers"
        headline += f": best depths of {ends} at the largest size of each"
    return Document(
        title="Which depth is best at each size",
        headline=headline,
        sections=(
            Section.of(LARGEST, *_largest(view)),
            _best_section(view),
            _intervals_section(view),
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
    """The best depth at the largest size of each kind, a sentence a family."""
    families: dict[str, list[str]] = {}
    for kind, curves in view.kinds.items():
        said = f"{kind.name} {size_words(curves[-1].size)} {_best(curves[-1], '.0f')}"
        families.setdefault(kind.family, []).append(said)
    yield from (f"{family}: {'; '.join(some)}." for family, some in families.items())


def _data(view: AtlasView) -> dict[str, object]:
    return atlas_json(view.atlas, view.curves) | {
        "rules": [json_of("rule-loss", each) for each in view.rules],
        "foretold": [asdict(each) | {"helps": each.helps} for each in view.foretold],
    }


def _best_section(view: AtlasView) -> Section:
    rows = _rows(view, lambda curve, is_trained: _in_brief(curve) + "*" * (not is_trained))
    table = _by_size("Best depth", view.sizes, rows)
    if not table.rows:
        return Section.of(
            "",
            f"A best depth needs a size with {LEAST_DEPTHS} depths and {LEAST_DEGREES} repeats by "
            "other seeds, or more depths; there is none.",
        )
    said = written("sections")["atlas-best"]["sentences"]
    return Section.of("", *said, table, is_why=True)


def _intervals_section(view: AtlasView) -> Section:
    table = _by_size("Intervals", view.sizes, _rows(view, lambda curve, _: _best(curve)))
    return Section.of_page("atlas-intervals", table) if table.rows else Section()


Cells: TypeAlias = tuple[str, str, dict[int, str]]


def _rows(view: AtlasView, words: Callable[[DepthCurve, bool], str]) -> Iterator[Cells]:
    """Kind and name of each series, and words for each size of it: of a curve, and whether its
    networks have learnt more than which token follows two others."""
    for series, curves in view.curves.items():
        least = (view.atlas.features(series) or {}).get(AFTER_TWO, math.inf)
        yield series.kind, _name(series), {c.size: words(c, c.least < least) for c in curves}


def _by_size(title: str, sizes: Sequence[int], rows: Iterable[Cells]) -> Table:
    """A row a series that has curves, a column a size, and in it the words for the curve."""
    told = tuple(
        (kind, name, *(cells.get(size, "") for size in sizes))
        for kind, name, cells in rows
        if cells
    )
    return Table(title=title, columns=("data", "tokens", *map(size_words, sizes)), rows=told)


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


def _ends(curve: DepthCurve) -> tuple[float | None, float | None]:
    """Of the best depth; an end where depths end says nothing, but for a single layer."""
    low, high = curve.best.low, curve.best.high
    return None if high is None and low == curve.depths[0] else low, high


def _best(curve: DepthCurve, form: str = ".2g") -> str:
    """The best depth with its interval, or what is known of it."""
    low, high = _ends(curve)
    if low is None and high is None:
        return "not resolved"
    if curve.is_inside and low is not None and high is not None:
        return f"{curve.best.value:{form}} ({low:{form}} to {high:{form}})"
    limit = f"at least {low:.0f}" if high is None else f"at most {high:.0f}"
    return f"{curve.best.value:{form}} ({limit})" if curve.is_inside else limit


def _in_brief(curve: DepthCurve) -> str:
    """The best depth, or the limit that is known of it, for a table that has little room."""
    low, high = _ends(curve)
    if low is None and high is None:
        return "?"
    if curve.is_inside:
        return f"{curve.best.value:.2g}"
    return f"≥{low:.0f}" if high is None else f"≤{high:.0f}"


def _cost_section(view: AtlasView) -> Section:
    rows = []
    for kind, (*_, curve) in view.kinds.items():
        lost = (Template().format("{:.3f|}", loss_at(curve, depth)) for depth in SOME_DEPTHS)
        least = f"{curve.least:.3f} per {kind.unit}"
        rows.append((kind.name, size_words(curve.size), _best(curve), least, *lost))
    columns = ("data", "largest size", "best depth", "bits", *(f"{d} layers" for d in SOME_DEPTHS))
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
    title = "Mean regret of rules, bits (data sets)"
    table = Table(title=title, columns=columns, rows=tuple(rows))
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
        f"{LARGEST}: {' '.join(_largest(view))}",
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
        best=lambda each: _best(each.curve),
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
    rows = (row for row in _rows(view, lambda curve, _: f"{curve.least:.3f}") if row[0] in several)
    figure = Figure.of(
        "vocabularies",
        f"Least losses of {', '.join(several)} by vocabulary; the table has them.",
        lambda page: loaded("depth_charts").variant_chart(several, page),
    )
    table = _by_size("Least loss", view.sizes, rows)
    return Section.of_page("atlas-variants", table, figure)


def _foretold_section(view: AtlasView) -> Section:
    told = view.foretold
    if not told:
        return Section()
    (alone, *features), about = told, written("sections")["atlas-predicted"]
    helping = [each.feature for each in features if each.helps]
    answer = (
        f"Yes: {', '.join(helping)}."
        if helping
        else "No: with none of these numbers is the regret significantly less than by size alone."
    )
    table = Table.of(
        "foretold",
        told,
        factor=lambda each: math.exp(each.error),
        gain=lambda each: each.gain if each.feature else None,
        interval=lambda each: f"{each.low:+.4f} to {each.high:+.4f}" if each.feature else "",
    )
    said = (sentence.format(alone.regret) for sentence in about["sentences"])
    return Section.of(about["title"], answer, *said, table, is_detail=True)


def _kind_section(view: AtlasView, kind: AtlasKind) -> Section:
    series, curves = view.plain[kind.name], view.kinds[kind]
    best = ", ".join(f"{size_words(curve.size)}: {_best(curve)}" for curve in curves)
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
    rough = (
        f"{series.kind}, {_name(series)}, {size_words(curve.size)}"
        for series, curve in listed
        if curve.explained < EXPLAINED
    )
    said = f"R² of the fitted curve below {EXPLAINED} after seed noise is taken off"
    return Section.of("Exceptions", f"{said}: {'; '.join(rough) or 'none'}.", is_detail=True)
