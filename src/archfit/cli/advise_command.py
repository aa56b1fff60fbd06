"""`archfit advise`: which Transformer fits my data? The whole journey in one command."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from archfit.advise.plan_request import PlanOptions
from archfit.advise.source import DATA, Source, prepared_source
from archfit.cli.options import chosen, with_words
from archfit.cli.output import NAME, bar, manner, say, show, version_line
from archfit.cli.progress import watched
from archfit.data.sources import SAMPLE
from archfit.journey import advice_of, check_replaceable, write_config
from archfit.report.document import NEXT, Section
from archfit.report.fit_document import page_document
from archfit.report.page import save_report
from archfit.spec.data_kinds import DATA_KINDS
from archfit.spec.errors import check_at_least, check_choice, check_real
from archfit.sweep.local import usual_slots
from archfit.sweep.runner import DEVICES, SweepStopped

if TYPE_CHECKING:
    from archfit.advise.advice import Advice
    from archfit.advise.measure import LadderRunner

REPORT, MODEL = "report.html", "model"
SOME_FAILED = 1  # exit status
USUAL_MINUTES = {True: 2.0, False: 5.0}  # with a GPU, and without
USUAL_PARAMS = 10_000_000


@with_words("advise", fields_of=PlanOptions, kinds=DATA_KINDS)
def advise(
    invocation: typer.Context,
    source: str = SAMPLE,
    out: Path | None = None,
    params: int | None = None,
    flops: int | None = None,
    minutes: float | None = None,
    bytes: int | None = None,
    tokens: int | None = None,
    minutes_to_measure: float | None = None,
    no_measure: bool = False,
    device: str = "auto",
    workers: int | None = None,
    kind: str = "",
    vocab: int | None = None,
    heldout: str = "",
    field: str = "",
    **_fields: object,
) -> None:
    """Which Transformer fits my data? Measure small networks on it, decide, write a report."""
    from archfit.advise.advice import AdviceRequest, advised
    from archfit.advise.measure import Measuring
    from archfit.advise.stored import check_place

    _check_measuring(minutes, minutes_to_measure, device, workers, no_measure=no_measure)
    named = Source(
        words=source, kind=kind, vocab=vocab, heldout=heldout or None, field=field or None
    )
    if all(given is None for given in (params, flops, minutes, bytes, tokens)):
        params = USUAL_PARAMS
    wanted = chosen(PlanOptions, invocation, vocab=None, params=params)
    request = AdviceRequest(source=named, options=wanted)
    can_train = not no_measure and _can_train(device)
    if not can_train:
        wanted.request()  # refuses minutes that are those of no machine
    folder = out or Path(f"advice-{named.name}")
    check_place(folder, (REPORT, MODEL))  # refuses one in which something else would be lost
    check_replaceable(folder / MODEL)
    with bar("reading", of_bytes=True) as report:
        data = prepared_source(named, folder / DATA, report)
    folder.mkdir(parents=True, exist_ok=True)
    measuring = None
    if can_train:
        runner = _runner(folder, device, workers, silent=manner().is_silent)
        seconds = 60 * (minutes_to_measure or USUAL_MINUTES[runner.scale == "small"])
        measuring = Measuring(runner=runner, data=data, seconds=seconds)
    try:
        found = advised(request, data, folder, measuring)
    except SweepStopped as stopped:
        say(f"{NAME}: {stopped}")
        raise SystemExit(128 + stopped.signal_number) from stopped
    _write(found, wanted, folder)


def _write(found: Advice, options: PlanOptions, folder: Path) -> None:
    """The files of an advice, and what is printed of it."""
    from archfit.advise.stored import store

    command = shlex.join(["archfit", *sys.argv[1:]])  # as it can be typed again
    store(folder, found, options, command)  # first: it says whose the other files are
    files = [str(file) for file in write_config(found.plan, found.data, folder / MODEL)]
    document = advice_of(found, command=command, version=version_line())
    page = str(folder / REPORT)
    written, told = None, f"The report: {page}; the config: {files[0]}."
    if importlib.util.find_spec("altair") is None:  # a bare checkout, where nothing can be drawn
        told = f"The config: {files[0]}. No report is drawn: pip install altair vl-convert-python."
    else:
        written = page_document(Path(page), save_report(document, Path(page))).data
    assert isinstance(document.data, dict)
    data = document.data | {"export": {"files": files}, "report": written}
    show(replace(document, sections=(*document.sections, Section.of(NEXT, told)), data=data))
    if found.failures and not found.runs:
        raise SystemExit(SOME_FAILED)


def _check_measuring(
    minutes: float | None,
    to_measure: float | None,
    device: str,
    workers: int | None,
    *,
    no_measure: bool,
) -> None:
    """Refuse what cannot be meant, before anything is read."""
    if minutes is not None and to_measure is None and not no_measure:
        raise ValueError(
            f"--minutes {minutes:g} is now the time of the training that advice is for, and was "
            "the time to measure: add --minutes-to-measure M for that, or --no-measure"
        )
    if to_measure is not None:
        if no_measure:
            raise ValueError("--minutes-to-measure and --no-measure are given; give one of them")
        check_real(0.1, 1e5, minutes_to_measure=to_measure)
    check_choice(DEVICES, device=device)
    if workers is not None:
        check_at_least(1, workers=workers)


def _can_train(device: str) -> bool:
    """Whether torch is there; the line says what to install where it is not."""
    if importlib.util.find_spec("torch") is not None:
        if device not in ("auto", "cpu"):  # which are on every machine: torch need not be asked
            from archfit.train.hardware import choose_device

            choose_device(device)
        return True
    say(
        f"{NAME}: torch is missing, so nothing is measured and the atlas answers; "
        "pip install 'archfit[train]'"
    )
    return False


def _runner(folder: Path, device: str, workers: int | None, *, silent: bool) -> LadderRunner:
    from archfit.advise.measure import LADDER, LadderRunner

    return LadderRunner(
        folder=folder / LADDER,
        device=device,
        where=lambda: usual_slots(device, workers, threads=1),
        watch=lambda: watched(silent=silent),
        say=lambda sentence: None if silent else say(sentence),
    )
