"""Published models at a glance: shapes beside good depths, bottlenecks, spectra of embeddings."""

import math
from collections.abc import Iterable, Sequence

import altair

from archfit.advise.law import DEEPEST_TRAINED, WEIGHTS, law_width
from archfit.audit.auditor import AuditResult
from archfit.audit.findings import RULES, Finding, good_depths
from archfit.report.charts import look
from archfit.report.charts.look import Ends, Frame, Panel, Row
from archfit.report.document import WIDE

WORDS = {rule.id: rule.short.replace("-", " ") for rule in RULES if rule.is_bottleneck}
NOTHING = "none"
KINDS = (*WORDS.values(), NOTHING)
LAW = "law of Levine et al. 2020"
GOOD = ("on text: fewest good layers", "on text: best", "on text: most good layers")


def gallery_chart(models: Sequence[AuditResult]) -> altair.VConcatChart:
    """Depth against width with good depths; below it rank ratios and attention ratios."""
    count = len(models)
    stacked: altair.VConcatChart = altair.vconcat(
        _shapes(models),
        altair.hconcat(
            _bars(_rank_ratios(models), "embedding rank / width, where below 1"),
            _bars(_attention_ratios(models), "heads x head_dim / width, where above 1"),
        ),
        title=altair.TitleParams(f"{count} published Transformers", anchor="start", fontSize=16),
    ).properties(description=f"Depth, width and bottlenecks of {count} published models")
    # One legend is enough, and those that are left out must not be merged with it.
    chart: altair.VConcatChart = stacked.resolve_legend(
        color="independent", shape="independent", strokeDash="independent"
    )
    return chart


def _shapes(models: Sequence[AuditResult]) -> Panel:
    points: list[Row] = [
        {
            "name": audited.model.name,
            "depth": float(stack.depth),
            "width": float(stack.width),
            "bottleneck": _bottleneck(audited.findings),
            "modality": audited.model.modality or "",
        }
        for audited in models
        for stack in audited.model.stacks
        if stack.depth is not None
    ]
    lines: list[Row] = [
        {"line": LAW, "depth": float(depth), "width": law_width(depth)} for depth in range(2, 110)
    ]
    lines += _good_depths()
    rows = {"lines": lines, "stacks": points}
    chart: Panel = look.panel("gallery-shapes", rows, Frame(), WIDE, KINDS).properties(
        title="Depth and width, beside depths that trained networks are good at"
    )
    return chart


def _good_depths() -> list[Row]:
    """The best depth on text of each size, and the fewest and the most layers that are as good."""
    rows: list[Row] = []
    for size, found in good_depths():
        for line, depth in zip(GOOD, (found.low, found.depth, found.high), strict=True):
            if depth < DEEPEST_TRAINED - 0.5:  # else nobody knows where it ends
                width = math.sqrt(size / WEIGHTS / depth)
                rows.append({"line": line, "depth": depth, "width": width})
    return rows


def _bottleneck(findings: Iterable[Finding]) -> str:
    """The severest of these, or the word for none."""
    return next((WORDS[found.id] for found in findings if found.id in WORDS), NOTHING)


def _rank_ratios(models: Iterable[AuditResult]) -> list[Row]:
    return [
        {
            "name": audited.model.name,
            "ratio": audited.rank_ratio,
            "bottleneck": _bottleneck(each for each in audited.findings if each.stack == "input"),
        }
        for audited in models
        if audited.rank_ratio is not None and audited.rank_ratio < 1
    ]


def _attention_ratios(models: Iterable[AuditResult]) -> list[Row]:
    return [
        {
            "name": audited.model.name,
            "ratio": max(stack.attention_ratio or 0 for stack in audited.model.stacks),
            "bottleneck": "attention",
        }
        for audited in models
        if any(found.id == "attention-bottleneck" for found in audited.findings)
    ]


def _bars(rows: list[Row], title: str) -> Panel:
    ratios = [*look.numbers(rows, "ratio"), 1.0]
    frame = Frame(Ends(min(ratios) / 1.2, max(ratios) * 1.2), titles={"x": title})
    stems = [row | {"start": 1.0} for row in rows]
    return look.panel("gallery-ratios", {"stems": stems}, frame, WIDE, KINDS)


def spectrum_chart(models: Sequence[AuditResult]) -> Panel:
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
    line = {
        "x": altair.X("index:Q", title="singular value, by size"),
        "y": altair.Y(
            "share:Q",
            title="share of the largest",
            scale=altair.Scale(type="log"),
            axis=altair.Axis(format="~e"),
        ),
        "color": altair.Color("model:N", legend=altair.Legend(title=None, orient="bottom")),
        "strokeDash": altair.StrokeDash("model:N", legend=None),
    }
    words = [
        f"{name}: rank {spectrum.numerical_rank:,} of {spectrum.width:,} (dotted), stable rank "
        f"{spectrum.stable_rank:.1f}, effective rank {spectrum.effective_rank:.1f}"
        for name, spectrum in measured
    ]
    return altair.layer(
        look.rows_of(values).mark_line(strokeWidth=2).encode(**line),
        look.rows_of(ranks).mark_rule(strokeDash=[2, 3]).encode(x="rank:Q", color="model:N"),
        width=560,
        height=320,
        title=altair.TitleParams("Spectrum of the embedding", subtitle=words, anchor="start"),
        description="Singular values of " + "; ".join(words),
    )
