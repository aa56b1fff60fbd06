"""`archfit plan`: the shape for a budget and data, and what speaks for and against it."""

from __future__ import annotations

from pathlib import Path

from archfit import answers
from archfit.advise.plan_request import PlanOptions
from archfit.cli.options import Chart, with_words
from archfit.cli.output import bar, show


@with_words("plan", fields_of=PlanOptions)
def plan(
    tokenizer: Path | None = None, data: Path | None = None, chart: Chart = None, **options: object
) -> None:
    """The shape for a budget and a kind of data, and how sure it is; trains nothing."""
    with bar("reading", of_bytes=True) as reading:
        made = answers.plan(data=data, tokenizer=tokenizer, reading=reading, **options)
    show(made.document, chart=chart, figure="depths")
