"""`archfit measure --claim`: what is said about separation ranks, put to the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from archfit.cli.output import print_json, print_table
from archfit.exact.claims import Claim, claims, failures
from archfit.exact.growth import growth_bounds
from archfit.exact.inputs import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from archfit.exact.experiment import Experiment
    from archfit.exact.growth import Bounds
    from archfit.exact.measure import Measurement

    Measure = Callable[[Experiment], Measurement]

GROWTH = "growth"
GROWTH_SAYS = "with one head the rank is the proved statistics bound"  # it is not at (3, 4, 4)
LIST = "list"


def print_claims() -> None:
    """Names and sentences of all claims."""
    rows = [(claim.name, claim.says) for claim in claims()]
    print_table("Claims for --claim", ("name", "says"), [*rows, (GROWTH, GROWTH_SAYS)])


def named_claim(name: str) -> Claim:
    """The claim of that name."""
    known = {claim.name: claim for claim in claims()}
    if name not in known:
        names = ", ".join([*known, GROWTH, LIST])
        raise ValueError(f"--claim {name!r} is unknown; use one of {names}")
    return known[name]


def run_claim(claim: Claim, measure: Measure, as_json: bool) -> None:
    """Measure all its cases, then print them and the verdict."""
    groups = [[measure(case) for case in group] for group in claim.groups]
    failed = failures(claim, [[measured.rank for measured in group] for group in groups])
    verdict = _verdict(len(groups), failed)
    if as_json:
        rows = [
            {"case": number} | _row(measured)
            for number, group in enumerate(groups, 1)
            for measured in group
        ]
        document = {"claim": claim.name, "says": claim.says, "rows": rows}
        return print_json(document | {"holds": not failed, "verdict": verdict})
    print_table(
        f"Claim: {claim.says}",
        ("case", "settings", "rank", "upper bound", "exact"),
        [
            (str(number), _settings(measured.experiment), *_found(measured))
            for number, group in enumerate(groups, 1)
            for measured in group
        ],
    )
    typer.echo(f"{claim.name}: {verdict}.")
    return None


def run_growth(
    cases: Iterable[Experiment], measure: Measure, *, chart: Path | None, as_json: bool
) -> None:
    """Measure all cases, draw them if asked to, then print them beside the bounds."""
    measured = [measure(case) for case in cases]
    bounds = [growth_bounds(*_sizes(one.experiment)) for one in measured]
    failed = tuple(index for index, one in enumerate(measured) if not one.is_exact)
    verdict = _verdict(len(measured), failed)
    if chart is not None:
        from archfit.report.charts.theory import growth_chart
        from archfit.report.document import Figure
        from archfit.report.page import save_figure

        figure = Figure(
            name="growth",
            title="Measured separation ranks beside their bounds",
            caption="",
            description=f"{len(measured)} networks of one head",
            chart=lambda _layout: growth_chart(measured),
        )
        save_figure(figure, chart)
    if as_json:
        rows = [
            _row(one) | _bounds_json(bound) for one, bound in zip(measured, bounds, strict=True)
        ]
        document: dict[str, object] = {"claim": GROWTH, "says": GROWTH_SAYS, "rows": rows}
        document |= {"holds": not failed, "verdict": verdict}
        return print_json(document | ({"chart": str(chart)} if chart else {}))
    print_table(
        "Measured separation rank, one head, balanced partition",
        ("L", "d", "N", "rank", "ub_stat_N", "ub_thm1", "ub_thm2?", "lb", "lb_strong"),
        [
            (*map(str, _sizes(one.experiment)), f"{one.rank:,}", *_bounds_words(bound))
            for one, bound in zip(measured, bounds, strict=True)
        ],
    )
    typer.echo("ub_thm2 is the papers' formula for deep networks, whose proof has a gap.")
    typer.echo(f"{GROWTH}: {GROWTH_SAYS}: {verdict}.")
    if chart is not None:
        typer.echo(f"Chart: {chart}")
    return None


def _verdict(cases: int, failed: tuple[int, ...]) -> str:
    if not failed:
        return f"holds in all {cases} cases"
    return f"fails in {len(failed)} of {cases} cases: {', '.join(str(n + 1) for n in failed)}"


def _sizes(case: Experiment) -> tuple[int, int, int]:
    positions = len(case.partition.inside) + len(case.partition.outside)
    return case.network.depth, case.network.width, positions


def _found(measured: Measurement) -> tuple[str, str, str]:
    upper = "none known" if measured.upper is None else f"{measured.upper:,}"
    return f"{measured.rank:,}", upper, "yes" if measured.is_exact else "no"


def _settings(case: Experiment) -> str:
    network, partition, inputs = case.network, case.partition, case.inputs
    depth, width, positions = _sizes(case)
    words = [f"L={depth} d={width} H={network.heads} N={positions}"]
    if isinstance(inputs, Vocabulary):
        words.append(f"V={inputs.vocab}")
    if inputs.rank < width or isinstance(inputs, Vocabulary):
        words.append(f"r={inputs.rank}")
    words += ["residual"] * network.has_residual + ["causal"] * network.is_causal
    if partition.inside != tuple(range(len(partition.inside))):
        words.append(f"P={','.join(map(str, partition.inside))}")
    if partition.output:
        words.append(f"output {partition.output}")
    return " ".join(words)


def _row(measured: Measurement) -> dict[str, object]:
    case = measured.experiment
    network, inputs, (_, _, positions) = case.network, case.inputs, _sizes(case)
    return {
        "depth": network.depth,
        "width": network.width,
        "heads": network.heads,
        "positions": positions,
        "residual": network.has_residual,
        "causal": network.is_causal,
        "vocab": inputs.vocab if isinstance(inputs, Vocabulary) else None,
        "rank": inputs.rank,
        "inside": list(case.partition.inside),
        "output_position": case.partition.output,
        "separation_rank": measured.rank,
        "upper": measured.upper,
        "exact": measured.is_exact,
        "failure_probability": measured.failure_probability,
        "seconds": round(measured.seconds, 3),
    }


def _bounds_json(bounds: Bounds) -> dict[str, object]:
    return {
        "ub_stat_N": bounds.statistics,
        "ub_thm1": str(bounds.every_depth),
        "ub_thm2": str(bounds.deep),
        "lb": bounds.lower,
        "lb_strong": bounds.strong_lower,
    }


def _bounds_words(bounds: Bounds) -> tuple[str, ...]:
    values = (bounds.statistics, bounds.every_depth, bounds.deep, bounds.lower, bounds.strong_lower)
    return tuple("-" if value is None else _short(float(value)) for value in values)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
