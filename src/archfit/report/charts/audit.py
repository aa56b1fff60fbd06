"""Published models at a glance: shapes beside the law, bottlenecks, and spectra of embeddings."""

import math
from collections.abc import Iterable, Iterator, Sequence

import altair

from archfit.audit.auditor import AuditResult
from archfit.audit.embedding_spectrum import EmbeddingSpectrum
from archfit.audit.findings import RULES
from archfit.plan.law import law_width
from archfit.report.charts.look import Row, rows_of

WORDS = {rule.id: rule.short.replace("-", " ") for rule in RULES if rule.is_bottleneck}
NOTHING = "none"
KINDS = (*WORDS.values(), NOTHING)
COLOURS = ("#d08a2e", "#b5241b", "#6a3d9a", "#14365e", "#9a9a9a")
SHAPES = ("square", "circle", "triangle-up", "diamond", "cross")


def gallery_chart(models: Sequence[AuditResult]) -> altair.VConcatChart:
    """Depth against width with the law; below it rank ratios and attention ratios."""
    stacked: altair.VConcatChart = altair.vconcat(
        _shapes(models),
        altair.hconcat(
            _bars(list(_rank_ratios(models)), "embedding rank / width, where below 1"),
            _bars(list(_attention_ratios(models)), "heads x head_dim / width, where above 1"),
        ),
        title=altair.TitleParams(
            f"{len(models)} published Transformers", anchor="start", fontSize=16
        ),
    ).properties(description=f"Depth, width and bottlenecks of {len(models)} published models")
    # One legend is enough, and those that are left out must not be merged with it.
    chart: altair.VConcatChart = stacked.resolve_legend(
        color="independent", shape="independent", strokeDash="independent"
    )
    return chart


def _shapes(models: Sequence[AuditResult]) -> altair.LayerChart | altair.FacetChart:
    points = rows_of(list(_points(models))).mark_point(size=60, filled=True, opacity=0.8)
    lines = rows_of(list(_lines())).mark_line(color="#333333")
    x = altair.X("width:Q", scale=altair.Scale(type="log", nice=False), title="width")
    y = altair.Y(
        "depth:Q", scale=altair.Scale(type="log", nice=False), title="depth of a stack (layers)"
    )
    legend = altair.Legend(title="bottleneck", orient="right")
    return altair.layer(
        lines.encode(
            x=x,
            y=y,
            strokeDash=altair.StrokeDash(
                "line:N", legend=altair.Legend(title=None, orient="right", labelLimit=300)
            ),
        ),
        points.encode(
            x=x,
            y=y,
            color=altair.Color(
                "bottleneck:N", scale=altair.Scale(domain=KINDS, range=COLOURS), legend=legend
            ),
            shape=altair.Shape(
                "bottleneck:N", scale=altair.Scale(domain=KINDS, range=SHAPES), legend=legend
            ),
            tooltip=["name:N", "depth:Q", "width:Q", "bottleneck:N", "modality:N"],
        ),
        width=680,
        height=380,
        title="Depth and width, beside the law and the threshold",
    )


def _points(models: Iterable[AuditResult]) -> Iterator[Row]:
    for audited in models:
        for stack in audited.model.stacks:
            if stack.depth is not None:
                yield {
                    "name": audited.model.name,
                    "depth": float(stack.depth),
                    "width": float(stack.width),
                    "bottleneck": _bottleneck(audited),
                    "modality": audited.model.modality or "",
                }


def _bottleneck(audited: AuditResult) -> str:
    """The severest one."""
    return next((WORDS[found.id] for found in audited.findings if found.id in WORDS), NOTHING)


def _lines() -> Iterator[Row]:
    for depth in range(2, 110):
        yield {"line": "law of Levine et al.", "depth": float(depth), "width": law_width(depth)}
    for width in (64, 256, 1024, 4096, 16384, 32768):
        yield {
            "line": "threshold log3(width)",
            "depth": math.log(width, 3),
            "width": float(width),
        }


def _rank_ratios(models: Iterable[AuditResult]) -> Iterator[Row]:
    for audited in models:
        ratio = audited.rank_ratio
        if ratio is not None and ratio < 1:
            yield {"name": audited.model.name, "ratio": ratio, "bottleneck": _input_kind(audited)}


def _input_kind(audited: AuditResult) -> str:
    found = (finding.id for finding in audited.findings if finding.stack == "input")
    return next((WORDS[id_] for id_ in found if id_ in WORDS), NOTHING)


def _attention_ratios(models: Iterable[AuditResult]) -> Iterator[Row]:
    for audited in models:
        ids = {finding.id for finding in audited.findings}
        ratio = max((stack.attention_ratio or 0 for stack in audited.model.stacks), default=0)
        if "attention-bottleneck" in ids:
            yield {"name": audited.model.name, "ratio": ratio, "bottleneck": "attention"}


def _bars(rows: list[Row], title: str) -> altair.LayerChart | altair.FacetChart:
    """Dots on stems: bars on a logarithmic axis would start nowhere."""
    ends = [float(row["ratio"]) for row in rows] + [1.0]
    base = rows_of([row | {"one": 1.0} for row in rows])
    y = altair.Y("name:N", sort=altair.EncodingSortField("ratio"), title=None)
    x = altair.X(
        "ratio:Q",
        title=title,
        scale=altair.Scale(type="log", nice=False, domain=[min(ends) / 1.2, max(ends) * 1.2]),
    )
    colour = altair.Color(
        "bottleneck:N", scale=altair.Scale(domain=KINDS, range=COLOURS), legend=None
    )
    shape = altair.Shape(
        "bottleneck:N", scale=altair.Scale(domain=KINDS, range=SHAPES), legend=None
    )
    return altair.layer(
        base.mark_rule(color="#bbbbbb").encode(x=x, x2="one:Q", y=y),
        base.mark_point(filled=True, size=55, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=["name:N", "ratio:Q", "bottleneck:N"]
        ),
        width=250,
        height={"step": 14},
    )


def spectrum_chart(models: Sequence[AuditResult]) -> altair.LayerChart | altair.FacetChart:
    """One curve for each model, as a share of its largest value; a rule marks its rank."""
    measured = [
        (audited.model.name, audited.spectrum) for audited in models if audited.spectrum is not None
    ]
    values: list[Row] = [
        {"model": name, "index": index, "share": value / spectrum.singular_values[0]}
        for name, spectrum in measured
        for index, value in spectrum.points()
        if value > 0  # the axis is logarithmic
    ]
    ranks: list[Row] = [
        {"model": name, "rank": spectrum.numerical_rank} for name, spectrum in measured
    ]
    curves = (
        rows_of(values)
        .mark_line(strokeWidth=2)
        .encode(
            x=altair.X("index:Q", title="singular value, by size"),
            y=altair.Y(
                "share:Q",
                title="share of the largest",
                scale=altair.Scale(type="log"),
                axis=altair.Axis(format="~e"),
            ),
            color=altair.Color("model:N", legend=altair.Legend(title=None, orient="bottom")),
            strokeDash=altair.StrokeDash("model:N", legend=None),
        )
    )
    rules = rows_of(ranks).mark_rule(strokeDash=[2, 3]).encode(x="rank:Q", color="model:N")
    return altair.layer(
        curves,
        rules,
        width=560,
        height=320,
        title=altair.TitleParams(
            "Spectrum of the embedding",
            subtitle=[_words(name, spectrum) for name, spectrum in measured],
            anchor="start",
        ),
        description="Singular values of "
        + "; ".join(_words(name, spectrum) for name, spectrum in measured),
    )


def _words(name: str, spectrum: EmbeddingSpectrum) -> str:
    return (
        f"{name}: rank {spectrum.numerical_rank:,} of {spectrum.width:,} (dotted), stable rank "
        f"{spectrum.stable_rank:.1f}, effective rank {spectrum.effective_rank:.1f}"
    )
