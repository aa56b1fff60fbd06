"""`archfit plan` and `archfit advise`: which Transformer fits, by the atlas or as measured."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path

from archfit import answers
from archfit.advise.plan_request import PlanOptions
from archfit.cli.shared import MANNER, NAME, bar, say, say_stopped, show, with_words
from archfit.spec.data_kinds import DATA_KINDS, SAMPLE
from archfit.spec.signals import Stopped

SOME_FAILED = 1  # exit status


@with_words("plan", PlanOptions)
def plan(
    tokenizer: Path | None = None,
    data: Path | None = None,
    chart: Path | None = None,
    **options: object,
) -> None:
    """The shape for a budget and a kind of data, and how sure it is; trains nothing."""
    with bar("reading", of_bytes=True) as reading:
        made = answers.plan(data=data, tokenizer=tokenizer, reading=reading, **options)
    show(made.document, chart=chart, figure="depths")


@with_words("advise", PlanOptions, answers.AdviseOptions, kinds=DATA_KINDS)
def advise(source: str = SAMPLE, out: Path | None = None, **options: object) -> None:
    """The shape for your data: train small networks on it, choose, write a report and a config."""
    from archfit.cli.progress import watched

    watching = answers.Watching(
        reading=partial(bar, "reading", of_bytes=True),
        training=watched,
        say=(lambda _: None) if MANNER.get().is_silent else say,
        warn=say,
        command=shlex.join([NAME, *sys.argv[1:]]),  # as it can be typed again
    )
    try:
        found = answers.advise(source, out=out, watching=watching, **options)
    except Stopped as stopped:
        say_stopped(f"{stopped}")
        raise SystemExit(128 + stopped.signal_number) from stopped
    show(found.document)
    if found.value.failures and not found.value.runs:
        raise SystemExit(SOME_FAILED)
