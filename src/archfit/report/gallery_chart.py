"""Published models at a glance: their shapes beside the law, and their bottlenecks."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from archfit.audit.auditor import AuditResult
from archfit.audit.findings import RULES
from archfit.plan.law import law_width

if TYPE_CHECKING:
    import altair

Row = dict[str, str | float]

WORDS = {rule.id: rule.short.replace("-", " ") for rule in RULES if rule.is_bottleneck}
NOTHING = "none"
KINDS = (*WORDS.values(), NOTHING)
COLOURS = ("#d08a2e", "#b5241b", "#6a3d9a", "#14365e", "#9a9a9a")
SHAPES = ("square", "circle", "triangle-up", "diamond", "cross")


def gallery_chart(models: Sequence[AuditResult]) -> "altair.VConcatChart":
    """Depth against width with the law; below it rank ratios and attention ratios."""
    import altair

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


def _shapes(models: Sequence[AuditResult]) -> "altair.LayerChart | altair.FacetChart":
    import altair

    points = altair.Chart(altair.InlineData(values=list(_points(models)))).mark_point(
        size=60, filled=True, opacity=0.8
    )
    lines = altair.Chart(altair.InlineData(values=list(_lines()))).mark_line(color="#333333")
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
    for one in models:
        for stack in one.model.stacks:
            if stack.depth is not None:
                yield {
                    "name": one.model.name,
                    "depth": float(stack.depth),
                    "width": float(stack.width),
                    "bottleneck": _bottleneck(one),
                    "modality": one.model.modality or "",
                }


def _bottleneck(one: AuditResult) -> str:
    """The severest one."""
    return next((WORDS[found.id] for found in one.findings if found.id in WORDS), NOTHING)


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
    for one in models:
        ratio = one.rank_ratio
        if ratio is not None and ratio < 1:
            yield {"name": one.model.name, "ratio": ratio, "bottleneck": _input_kind(one)}


def _input_kind(one: AuditResult) -> str:
    found = (finding.id for finding in one.findings if finding.stack == "input")
    return next((WORDS[id_] for id_ in found if id_ in WORDS), NOTHING)


def _attention_ratios(models: Iterable[AuditResult]) -> Iterator[Row]:
    for one in models:
        ids = {finding.id for finding in one.findings}
        ratio = max((stack.attention_ratio or 0 for stack in one.model.stacks), default=0)
        if "attention-bottleneck" in ids:
            yield {"name": one.model.name, "ratio": ratio, "bottleneck": "attention"}


def _bars(rows: list[Row], title: str) -> "altair.LayerChart | altair.FacetChart":
    """Dots on stems: bars on a logarithmic axis would start nowhere."""
    import altair

    ends = [float(row["ratio"]) for row in rows] + [1.0]
    base = altair.Chart(altair.InlineData(values=[row | {"one": 1.0} for row in rows]))
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
