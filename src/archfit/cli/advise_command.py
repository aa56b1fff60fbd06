"""`archfit advise`: which Transformer fits my data? The whole journey in one command."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.advise.document import check_json
from archfit.advise.request import AdviceRequest, Source, planned
from archfit.advise.stored import check_place, store
from archfit.advise.verdict import check_folder, checked
from archfit.advise.words import UNCHECKED, answer, check_sentences, headline, limits_of, reasons
from archfit.cli.data_commands import progress
from archfit.cli.output import print_json
from archfit.cli.sizes import size_option
from archfit.cli.sweep_asked import MOST_SEEDS
from archfit.cli.sweep_table import watched
from archfit.data.settings import KINDS
from archfit.data.sources import SAMPLE
from archfit.journey import check_replaceable, write_config
from archfit.plan.document import plan_json
from archfit.plan.law import DEEPEST_TRAINED
from archfit.spec.checks import check_at_least, check_choice, check_real
from archfit.sweep.local import usual_places
from archfit.sweep.signals import SweepStopped
from archfit.sweep.worker import DEVICES

if TYPE_CHECKING:
    from archfit.advise.verdict import CheckResult
    from archfit.data.prepared import PreparedData
    from archfit.plan.planner import Plan

REPORT, MODEL = "report.html", "model"
SOME_FAILED = 1  # exit status
Data, Checking = "Your data", "The check"


def advise(
    source: Annotated[
        str,
        typer.Argument(
            help="File, folder, 'pattern', hf:NAME, or a folder that data prepare made; left out: "
            "the sample archfit ships with."
        ),
    ] = SAMPLE,
    params: Annotated[
        int, typer.Option(parser=size_option, metavar="N", help="Budget: all parameters.")
    ] = 10_000_000,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the advice; else advice-SOURCE.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Train the sweep that could refute the advice.")
    ] = False,
    minutes: Annotated[
        float, typer.Option(help="How long the check may train.", rich_help_panel=Checking)
    ] = 10.0,
    seeds: Annotated[
        int | None,
        typer.Option(
            parser=size_option,
            metavar="N",
            help="Seeds of every network; else as many as fit into --minutes.",
            rich_help_panel=Checking,
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cuda, mps or cpu.", rich_help_panel=Checking)
    ] = "auto",
    workers: Annotated[
        int | None,
        typer.Option(
            parser=size_option,
            metavar="N",
            help="Networks trained at a time; else as many as there are cores.",
            rich_help_panel=Checking,
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option(help=f"{', '.join(KINDS)}; guessed if left out.", rich_help_panel=Data)
    ] = "",
    vocab: Annotated[
        int | None,
        typer.Option(
            parser=size_option, metavar="V", help="Tokens to prepare.", rich_help_panel=Data
        ),
    ] = None,
    heldout: Annotated[
        str, typer.Option(help="Held-out source; else 5 % by content.", rich_help_panel=Data)
    ] = "",
    field: Annotated[
        str,
        typer.Option(help="Key of .jsonl, .parquet or .npz to read.", rich_help_panel=Data),
    ] = "",
    context: Annotated[
        int, typer.Option(parser=size_option, metavar="N", help="Positions seen at once.")
    ] = 1024,
    max_depth: Annotated[
        int, typer.Option(parser=size_option, metavar="L", help="Layers that you would train.")
    ] = DEEPEST_TRAINED,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Which Transformer fits my data? Prepare, plan, check by experiment, and write a report."""
    request = AdviceRequest(
        source=Source(
            words=source, kind=kind, vocab=vocab, heldout=heldout or None, field=field or None
        ),
        params=params,
        context=context,
        max_depth=max_depth,
    )
    check_real(0.1, 1e5, minutes=minutes)
    check_choice(DEVICES, device=device)
    if importlib.util.find_spec("altair") is None:  # a bare checkout: nothing could be drawn
        raise ValueError(
            "altair is missing, which draws the report; pip install archfit, or use archfit plan "
            "and archfit sweep, which do without"
        )
    if seeds is not None:
        check_real(2, MOST_SEEDS, seeds=seeds)  # one says nothing about noise
    if workers is not None:
        check_at_least(1, workers=workers)
    folder = out or Path(f"advice-{request.source.name}")
    check_place(folder, (REPORT, MODEL))
    check_replaceable(folder / MODEL)
    with progress() as report:
        data, plan = planned(request, folder, report)
    folder.mkdir(parents=True, exist_ok=True)
    found = None
    if check:
        found = _checked(plan, data, folder, minutes, seeds, device, workers, silent=as_json)
    _finish(request, data, plan, found, folder, as_json=as_json)
    if found is not None and found.trained.failures:
        raise SystemExit(SOME_FAILED)


def _checked(
    plan: Plan,
    data: PreparedData,
    out: Path,
    minutes: float,
    seeds: int | None,
    device: str,
    workers: int | None,
    *,
    silent: bool,
) -> CheckResult:
    from archfit.advise.check import CheckRunner

    folder = check_folder(out, plan, data, minutes)
    try:
        with watched(silent=silent) as watch:
            runner = CheckRunner(
                folder=folder,
                device=device,
                where=lambda: usual_places(device, workers, threads=1),
                watch=watch,
            )
            return checked(plan, data, runner, minutes=minutes, seeds=seeds)
    except SweepStopped as stopped:
        typer.echo(f"archfit: {stopped}", err=True)
        raise SystemExit(128 + stopped.signal_number) from stopped


def _finish(
    request: AdviceRequest,
    data: PreparedData,
    plan: Plan,
    found: CheckResult | None,
    out: Path,
    *,
    as_json: bool,
) -> None:
    """Write config and report, and say the answer."""
    from archfit.advise.page import advice_report
    from archfit.cli.version import version_line
    from archfit.report.advice_page import write_advice

    store(out, request, data, found, _typed())  # first: it says whose the other files are
    files = write_config(plan, data, out / MODEL)
    page = advice_report(request, data, plan, found, command=_typed(), version=version_line())
    figures = write_advice(page, out / REPORT)
    if as_json:
        return print_json(
            {
                "data": data.description | {"folder": str(data.folder)},
                "plan": plan_json(plan),
                "check": check_json(plan, found) if found else None,
                "export": {"files": [str(file) for file in files]},
                "report": {
                    "file": str(out / REPORT),
                    "figures": [
                        {"name": name, "files": [str(path) for path in paths]}
                        for name, paths in figures.items()
                    ],
                },
            }
        )
    typer.echo(answer(plan))
    for sentence in reasons(plan):
        typer.echo(f"  {sentence}")
    if found is None:
        typer.echo(UNCHECKED)
    else:
        typer.echo(f"{headline(plan, found.verdict)}.")
        limits = limits_of(plan, found.trained, found.verdict)
        for sentence in (*check_sentences(plan, found.trained, found.verdict), *limits):
            typer.echo(f"  {sentence}")
    typer.echo(f"Report: {out / REPORT}, config: {files[0]}")
    return None


def _typed() -> str:
    """The command as it can be typed again."""
    return shlex.join(["archfit", *sys.argv[1:]])
