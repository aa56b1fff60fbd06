"""The report of an advice: the answer first, then charts, tables, and how to make it again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from archfit.plan.advisers import evidence_against
from archfit.plan.planner import Plan
from archfit.report.chart_file import write_page
from archfit.report.page_file import rendered, save_figures
from archfit.report.sweep_look import Figure
from archfit.report.sweep_tables import Table, numeric_columns

NOT_KNOWN = "…"


@dataclass(frozen=True, kw_only=True, slots=True)
class AdviceReport:
    """What the page says, in its order."""

    title: str
    answer: str
    status: str  # held, refuted, undecided or unchecked
    headline: str
    check: tuple[str, ...]  # sentences; without a check, how to have one
    further: tuple[str, ...]  # what else the runs say, and what they do not
    reasons: tuple[str, ...]
    plan: Plan
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]  # of data and check
    commands: tuple[str, ...]
    provenance: tuple[Table, ...]
    version: str


def write_advice(report: AdviceReport, file: Path) -> dict[str, list[Path]]:
    """Write the page and each of its charts as SVG and PNG; the files of each figure by name."""
    tables = (*report.tables, *plan_tables(report.plan))
    words: dict[str, object] = {
        "report": report,
        "warnings": report.plan.warnings,
        "against": evidence_against(),
        "opinions": [one for one in report.plan.advice if one.depth is None and not one.depths],
        "tables": [(table, numeric_columns(table)) for table in tables],
        "provenance": [(table, numeric_columns(table)) for table in report.provenance],
        "stem": file.stem,
    }
    page = rendered("advice.html", report.figures, words)
    written = save_figures(report.figures, file)
    write_page(page, file)
    return written


def plan_tables(plan: Plan) -> Sequence[Table]:
    """Shapes, repairs, advisers and costs."""
    every = (_shapes(plan), _repairs(plan), _advisers(plan), _costs(plan))
    return [table for table in every if table.rows]


def _shapes(plan: Plan) -> Table:
    shape, params = plan.shape, plan.params
    return Table(
        title="The plan for the data as they are",
        columns=("shape", "depth", "width", "heads", "parameters"),
        rows=(
            (
                "recommended",
                f"{shape.depth:,}",
                f"{shape.width:,}",
                f"{shape.heads} x {shape.head_dim}",
                f"{params.total:,}",
            ),
            (
                "ideal, before rounding",
                f"{plan.ideal.depth:,.1f}",
                f"{plan.ideal.width:,.1f}",
                "",
                "",
            ),
            (
                "text-shaped, without the rank limit",
                f"{plan.text_shape.depth:,.1f}",
                f"{plan.text_shape.width:,.1f}",
                "",
                "",
            ),
        ),
    )


def _repairs(plan: Plan) -> Table:
    return Table(
        title="Repairs at the same budget",
        columns=("repair", "depth", "width", "parameters", "command"),
        rows=tuple(
            (
                repair.change,
                str(repair.shape.depth),
                str(repair.shape.width),
                f"{repair.params.total:,}",
                repair.command,
            )
            for repair in plan.repairs
        ),
    )


def _advisers(plan: Plan) -> Table:
    rows = []
    for one in plan.advice:
        depth = f"{one.depth:,.1f}" if one.depth is not None else ""
        if one.depth is None and one.depths is not None:
            depth = f"{one.depths[0]:,.0f} to {one.depths[1]:,.0f}"
        width = f"{one.width:,.0f}" if one.width is not None else ""
        if depth:
            within = "yes" if one.in_range else "no"
            rows.append((one.name, depth, width, within, f"{one.source}; {one.seen_in}"))
    return Table(
        title="What other advice says at this size",
        columns=("adviser", "depth", "width", "in its range", "source; where it was seen"),
        rows=tuple(rows),
    )


def _costs(plan: Plan) -> Table:
    costs, memory = plan.costs, plan.costs.memory
    return Table(
        title="What training it takes",
        columns=("quantity", "value"),
        rows=(
            ("tokens", f"{costs.tokens:,} ({plan.request.tokens_per_param:g} a parameter)"),
            ("operations", f"{costs.flops:.3g} FLOPs, {costs.attention_flops:.3g} for attention"),
            ("memory", f"{memory.total / 1e9:,.2f} GB for {memory.batch_sequences} sequences"),
            ("latency", f"{costs.relative_latency:.2f} times that of the text shape"),
            ("learning rate to start from", f"{costs.start.learning_rate:g}"),
        ),
    )
