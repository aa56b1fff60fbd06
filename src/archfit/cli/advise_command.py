"""`archfit advise`: which Transformer fits my data? The whole journey in one command."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.advise.request import AdviceRequest, Source, planned
from archfit.advise.stored import check_place, store
from archfit.advise.verdict import check_folder, checked
from archfit.cli import options
from archfit.cli.fit_command import figures_json
from archfit.cli.options import AsJson, chosen, flag, size, word
from archfit.cli.output import bar, print_json, version_line
from archfit.cli.progress import watched
from archfit.data.sources import SAMPLE
from archfit.journey import advice_of, check_replaceable, write_config
from archfit.plan.law import DEEPEST_TRAINED
from archfit.report.page import save_report
from archfit.report.terminal import text_of
from archfit.spec.data_kinds import DATA_KINDS
from archfit.spec.errors import check_at_least, check_choice, check_real
from archfit.sweep.local import usual_slots
from archfit.sweep.runner import DEVICES, SweepStopped

if TYPE_CHECKING:
    from archfit.advise.verdict import CheckResult
    from archfit.data.prepared import PreparedData
    from archfit.plan.planner import Plan

REPORT, MODEL = "report.html", "model"
SOME_FAILED = 1  # exit status
CHECK = "The check"
SOURCE = typer.Argument(
    help="File, folder, 'pattern', hf:NAME, or a folder that data prepare made; left out: the "
    "sample archfit ships with."
)
TRAIN = flag("--check", "Train the sweep that could refute the advice.")
SEEDS = size("Seeds of every network; else as many as fit into --minutes.", "N", CHECK)
WORKERS = size("Networks trained at a time; else as many as cores.", "N", CHECK)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckOptions:
    """How a check is trained, and for how long."""

    minutes: float
    seeds: int | None  # None: as many as the minutes allow
    device: str
    workers: int | None  # None: as many as there are cores

    def __post_init__(self) -> None:
        check_real(0.1, 1e5, minutes=self.minutes)
        check_choice(DEVICES, device=self.device)
        if self.seeds is not None:
            check_real(2, options.MOST_SEEDS, seeds=self.seeds)  # one says nothing about noise
        if self.workers is not None:
            check_at_least(1, workers=self.workers)


def advise(
    invocation: typer.Context,
    source: Annotated[str, SOURCE] = SAMPLE,
    params: Annotated[int, options.PARAMS] = 10_000_000,
    out: Annotated[Path | None, word("Folder of the advice; else advice-SOURCE.")] = None,
    check: Annotated[bool, TRAIN] = False,
    minutes: Annotated[float, word("How long the check may train.", CHECK)] = 10.0,
    seeds: Annotated[int | None, SEEDS] = None,
    device: Annotated[str, options.DEVICE] = "auto",
    workers: Annotated[int | None, WORKERS] = None,
    kind: Annotated[str, word(f"{', '.join(DATA_KINDS)}; guessed if left out.", options.DATA)] = "",
    vocab: Annotated[int | None, size("Tokens to prepare.", "V", options.DATA)] = None,
    heldout: Annotated[str, word("Held-out source; else 5 % by content.", options.DATA)] = "",
    field: Annotated[str, word("Key of .jsonl, .parquet or .npz to read.", options.DATA)] = "",
    context: Annotated[int, options.CONTEXT] = 1024,
    max_depth: Annotated[int, options.MAX_DEPTH] = DEEPEST_TRAINED,
    as_json: AsJson = False,
) -> None:
    """Which Transformer fits my data? Prepare, plan, check by experiment, and write a report."""
    optional = {"heldout": heldout or None, "field": field or None}
    named = Source(words=source, kind=kind, vocab=vocab, **optional)
    request = chosen(AdviceRequest, invocation, source=named)
    how = chosen(CheckOptions, invocation)
    if importlib.util.find_spec("altair") is None:  # a bare checkout: nothing could be drawn
        raise ValueError(
            "altair is missing, which draws the report; pip install archfit, or use archfit plan "
            "and archfit sweep, which do without"
        )
    folder = out or Path(f"advice-{request.source.name}")
    check_place(folder, (REPORT, MODEL))
    check_replaceable(folder / MODEL)
    with bar("reading", of_bytes=True) as report:
        data, plan = planned(request, folder, report)
    folder.mkdir(parents=True, exist_ok=True)
    found = _checked(plan, data, folder, how, silent=as_json) if check else None
    command = shlex.join(["archfit", *sys.argv[1:]])  # as it can be typed again
    store(folder, request, data, found, command)  # first: it says whose the other files are
    files = [str(file) for file in write_config(plan, data, folder / MODEL)]
    document = advice_of(request, data, plan, found, command=command, version=version_line())
    page = str(folder / REPORT)
    written = {"file": page, "figures": figures_json(save_report(document, Path(page)))}
    if as_json:
        assert isinstance(document.data, dict)
        print_json(document.data | {"export": {"files": files}, "report": written})
    else:
        typer.echo(f"{text_of(document)}\nReport: {page}, config: {files[0]}")
    if found is not None and found.runs.failures:
        raise SystemExit(SOME_FAILED)


def _checked(
    plan: Plan, data: PreparedData, out: Path, how: CheckOptions, *, silent: bool
) -> CheckResult:
    from archfit.advise.check import CheckRunner

    folder = check_folder(out, plan, data, how.minutes)
    try:
        with watched(silent=silent) as watch:
            runner = CheckRunner(
                folder=folder,
                device=how.device,
                where=lambda: usual_slots(how.device, how.workers, threads=1),
                watch=watch,
            )
            return checked(plan, data, runner, minutes=how.minutes, seeds=how.seeds)
    except SweepStopped as stopped:
        typer.echo(f"archfit: {stopped}", err=True)
        raise SystemExit(128 + stopped.signal_number) from stopped
