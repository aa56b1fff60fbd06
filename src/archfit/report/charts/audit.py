"""Published models at a glance: shapes beside good depths, bottlenecks, spectra of embeddings."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import altair

from archfit.audit.auditor import AuditResult
from archfit.audit.findings import RULES, Finding, good_depths
from archfit.report.charts import look
from archfit.report.charts.look import Ends, Frame, Panel, Row
from archfit.report.document import Layout
from archfit.theory.law import DEEPEST_TRAINED, WEIGHTS, law_width

BOTTLENECKS = [id_ for id_, rule in RULES.items() if rule.get("is_bottleneck", False)]
WORDS = {id_: RULES[id_]["short"].replace("-", " ") for id_ in BOTTLENECKS}
NOTHING = "none"
KINDS = (*WORDS.values(), NOTHING)
LAW = "law of Levine et al. 2020"
NAMES = 90  # pixels that a wide panel leaves for the names of models beside it
GOOD = ("on text: fewest good layers", "on text: best", "on text: most good layers")


def gallery_chart(models: Sequence[AuditResult], page: Layout) -> altair.VConcatChart:
    """Depth against width with good depths; below it rank ratios and attention ratios."""
    beside, names = (altair.hconcat, NAMES) if page.columns > 1 else (altair.vconcat, 0)
    whole = page.for_panels(1)
    room, half = replace(whole, width=whole.width - names), replace(page, width=page.width - names)
    ranks: list[Row] = []
    heads: list[Row] = []
    for audited in models:
        name, ids = audited.model.name, [found.id for found in audited.findings]
        if audited.rank_ratio is not None and audited.rank_ratio < 1:
            limit = _bottleneck(each for each in audited.findings if each.stack == "input")
            ranks.append({"name": name, "ratio": audited.rank_ratio, "bottleneck": limit})
        if "attention-bottleneck" in ids:
            ratio = max(stack.attention_ratio or 0 for stack in audited.model.stacks)
            heads.append({"name": name, "ratio": ratio, "bottleneck": "attention"})
    bars = beside(
        _bars(ranks, "embedding rank / width, where below 1", half),
        _bars(heads, "heads x head_dim / width, where above 1", half),
    )
    # One legend is enough, and those that are left out must not be merged with it.
    chart: altair.VConcatChart = altair.vconcat(_shapes(models, room), bars).resolve_legend(
        color="independent", shape="independent", strokeDash="independent"
    )
    return chart


def _shapes(models: Sequence[AuditResult], page: Layout) -> Panel:
    points = [
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
    lines = [{"line": LAW, "depth": float(d), "width": law_width(d)} for d in range(2, 110)]
    for size, found in good_depths():  # the best on text, and the fewest and most layers as good
        for line, depth in zip(GOOD, (found.low, found.depth, found.high), strict=True):
            if depth < DEEPEST_TRAINED - 0.5:  # else nobody knows where it ends
                width = math.sqrt(size / WEIGHTS / depth)
                lines.append({"line": line, "depth": depth, "width": width})
    return look.panel("gallery-shapes", {"lines": lines, "stacks": points}, Frame(), page, KINDS)


def _bottleneck(findings: Iterable[Finding]) -> str:
    """The severest of these, or the word for none."""
    return next((WORDS[found.id] for found in findings if found.id in WORDS), NOTHING)


def _bars(rows: list[Row], title: str, page: Layout) -> Panel:
    ratios = [*look.numbers(rows, "ratio"), 1.0]
    frame = Frame(Ends(min(ratios) / 1.2, max(ratios) * 1.2), titles={"x": title})
    stems = [{**row, "start": 1.0} for row in rows]
    name = "gallery-ratios" if page.columns > 1 else "gallery-ratios-narrow"
    return look.panel(name, {"stems": stems}, frame, page, KINDS)


def spectrum_chart(models: Sequence[AuditResult], page: Layout) -> Panel:
    """One curve for each model, as a share of its largest value; a rule marks its rank."""
    measured = {
        f"{audited.model.name}: rank {found.numerical_rank:,} of {found.width:,} (dotted), stable "
        f"rank {found.stable_rank:.1f}, effective rank {found.effective_rank:.1f}": found
        for audited in models
        if (found := audited.spectrum) is not None
    }
    values = [
        {"model": name, "index": index, "share": value / spectrum.singular_values[0]}
        for name, spectrum in measured.items()
        for index, value in spectrum.points()
        if value > 0  # the axis is logarithmic
    ]
    ranks = [{"model": name, "index": found.numerical_rank} for name, found in measured.items()]
    rows = {"values": values, "ranks": ranks}
    return look.panel("spectrum", rows, Frame(), page.for_panels(1), list(measured))
