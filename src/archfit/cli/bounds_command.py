"""`archfit bounds`: all bounds for one architecture."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.cli.options import size_option
from archfit.cli.output import print_json, print_table, short_real
from archfit.cli.theory_command import print_verdict
from archfit.report.document import Figure, Layout
from archfit.theory.bounds import SATURATION_IS, Bound, BoundsReport, Shape, bounds_report, notes
from archfit.theory.catalogue import NETWORK
from archfit.theory.counterexample import Verdict, refute_for_shape

if TYPE_CHECKING:
    from archfit.report.document import Drawing


def bounds(
    depth: Annotated[int, typer.Option(parser=size_option, metavar="L", help="Number of layers.")],
    width: Annotated[int, typer.Option(parser=size_option, metavar="D", help="Residual stream.")],
    heads: Annotated[int, typer.Option(parser=size_option, metavar="H", help="Heads in a layer.")],
    head_dim: Annotated[
        int | None, typer.Option(parser=size_option, metavar="K", help="Default: width / heads.")
    ] = None,
    positions: Annotated[
        int | None, typer.Option(parser=size_option, metavar="N", help="Default: any number.")
    ] = None,
    vocab: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="V", help="Default: continuous inputs."),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(parser=size_option, metavar="R", help="Of the embedding.")
    ] = None,
    position_rank: Annotated[
        int, typer.Option(parser=size_option, metavar="R", help="0: no positional vectors.")
    ] = 0,
    residual: Annotated[
        bool, typer.Option("--residual", help="With residual connections.")
    ] = False,
    counterexample: Annotated[
        bool, typer.Option("--counterexample", help="Try to refute the disputed bound.")
    ] = False,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw bounds over depth: .svg .png .html")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """All bounds on the separation rank of one architecture, the best proved pair first."""
    shape = Shape(
        depth=depth,
        width=width,
        heads=heads,
        head_dim=head_dim,
        positions=positions,
        vocab=vocab,
        rank=rank,
        position_rank=position_rank,
        residual=residual,
    )
    if chart is not None:
        from archfit.report.page import check_chart_file, save_figure

        check_chart_file(chart)
    report = bounds_report(shape)
    verdict = refute_for_shape(report) if counterexample else None
    if chart is not None:
        save_figure(bounds_figure(shape), chart)
    if as_json:
        document: dict[str, object] = dict(report.as_json())
        document |= verdict.as_json() if verdict else {}
        return print_json(document | ({"chart": str(chart)} if chart else {}))
    return _print_for_people(report, verdict, chart)


def bounds_figure(shape: Shape) -> Figure:
    """Bounds over depth, for this width and others."""
    return Figure(
        name="bounds",
        title="Bounds on the separation rank over depth",
        caption="",
        description=f"Lower and upper bounds for networks of width {shape.width} and others.",
        chart=partial(_bounds_chart, shape),
    )


def _bounds_chart(shape: Shape, layout: Layout) -> "Drawing":
    from archfit.report.charts.theory import bounds_over_depth

    return bounds_over_depth(shape, columns=layout.columns, width=min(330, layout.width))


def _print_for_people(report: BoundsReport, verdict: Verdict | None, chart: Path | None) -> None:
    shape, regime = report.shape, report.regime
    print_table(
        f"Separation rank at depth {shape.depth}, width {shape.width}, heads {shape.heads} "
        "(best that hold: first two)",
        ("", "bound", "log3", "status"),
        [(b.side, b.id, short_real(b.log3), _short_status(b)) for b in report.bounds],
    )
    lower, upper = report.lower, report.upper
    typer.echo(f"3^{short_real(lower.log3)} <= separation rank <= 3^{short_real(upper.log3)}")
    typer.echo(f"Network: {NETWORK}.")
    typer.echo(f"Regime: depth {shape.depth} is {regime.name}.")
    typer.echo(f"  paper's threshold      log3(d)             = {regime.paper_threshold:.3f}")
    typer.echo(f"  corrected threshold    2 log3(d) + log3(2) = {regime.corrected_threshold:.3f}")
    typer.echo(f"Saturation: {report.saturation:.2%}: {SATURATION_IS}.")
    for note in notes(shape):
        typer.echo(f"Note: {note}.")
    if verdict is not None:
        print_verdict(verdict)
    typer.echo("Sources and conditions: --json, or `archfit theory`.")
    if chart is not None:
        typer.echo(f"Chart: {chart}")


def _short_status(bound: Bound) -> str:
    return bound.status_line if bound.status == "disputed" else bound.status
