"""The gallery as one page that opens without a network: claims, chart, sortable table."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from archfit.audit.audited import Audited
from archfit.audit.claims import checked_claims
from archfit.audit.findings import Finding
from archfit.report.chart_file import write_page
from archfit.report.gallery_chart import gallery_chart


@dataclass(frozen=True, slots=True)
class Column:
    """A heading."""

    title: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """What is shown, and the number it is sorted by, if it is one."""

    text: str
    value: float | None


COLUMNS = (
    Column("model", is_number=False),
    Column("modality", is_number=False),
    Column("depth", is_number=True),
    Column("width", is_number=True),
    Column("heads", is_number=True),
    Column("head_dim", is_number=True),
    Column("attention ratio", is_number=True),
    Column("vocabulary", is_number=True),
    Column("rank limit", is_number=True),
    Column("rank ratio", is_number=True),
    Column("million parameters", is_number=True),
    Column("findings", is_number=False),
)


def write_gallery(models: Sequence[Audited], file: Path, version: str) -> None:
    """Write the page; the file appears complete."""
    import vl_convert
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    chart = gallery_chart(models)
    # `</` would end the script in which the chart stands.
    spec = json.dumps(chart.to_dict()).replace("</", "<\\/")
    bundle = vl_convert.javascript_bundle(
        f"vegaEmbed('#chart', {spec}, {{actions: false, renderer: 'svg'}});"
    )
    pages = Environment(loader=PackageLoader("archfit.report"), autoescape=True)
    page = pages.get_template("gallery.html").render(
        rows=[
            {"cells": cells(one), "findings": [finding_words(found) for found in one.findings]}
            for one in models
        ],
        columns=COLUMNS,
        claims=checked_claims(models),
        summary=summary(models),
        description=f"Depth, width and bottlenecks of {len(models)} published models",
        bundle=Markup(bundle),  # our own script, from the package that draws the charts
        file=file.name,
        version=version,
    )
    write_page(page, file)


def summary(models: Sequence[Audited]) -> str:
    """How many models have which bottleneck."""
    counts = Counter(id_ for one in models for id_ in {found.id for found in one.findings})
    found = [f"{count} with {id_}" for id_, count in counts.most_common()]
    return f"Of {len(models)} models: {', '.join(found) or 'nothing found'}."


def cells(one: Audited) -> list[Cell]:
    """The row of a model, without its findings."""
    model, first = one.model, one.model.stacks[0]
    return [
        Cell(model.name, None),
        Cell((model.modality or "").replace("_", " "), None),
        _number(model.depth),
        _number(model.width),
        _number(first.heads),
        _number(first.head_dim),
        _ratio(first.attention_ratio),
        _number(model.input.vocab),
        _number(model.rank_limit),
        _ratio(one.rank_ratio),
        _millions(model.parameters.total),
    ]


def _number(value: int | None) -> Cell:
    return Cell("", None) if value is None else Cell(f"{value:,}", value)


def _millions(value: int | None) -> Cell:
    if value is None:
        return Cell("", None)
    return Cell(f"{value / 1e6:,.0f}" if value >= 10**9 else f"{value / 1e6:.4g}", value)


def _ratio(value: float | None) -> Cell:
    return Cell("", None) if value is None else Cell(f"{value:.3g}", value)


def finding_words(finding: Finding) -> dict[str, str]:
    """A finding as a page shows it."""
    share = finding.redundancy
    return {
        "id": finding.id,
        "severity": finding.severity,
        "stack": finding.stack,
        "evidence": finding.evidence,
        "fix": finding.fix,
        "share": "" if share is None else str(share),
    }
