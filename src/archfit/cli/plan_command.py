"""`archfit plan`: the shape for a budget and data, and what speaks for and against it."""

from __future__ import annotations

from pathlib import Path

import typer

from archfit.advise.plan_request import PlanOptions
from archfit.advise.planner import make_plan
from archfit.cli.options import Chart, chosen, with_words
from archfit.cli.output import show
from archfit.report.plan_document import plan_document


@with_words("plan", fields_of=PlanOptions)
def plan(
    invocation: typer.Context,
    vocab: int | None = None,
    tokenizer: Path | None = None,
    data: Path | None = None,
    chart: Chart = None,
    **_fields: object,
) -> None:
    """The shape for a budget and your data, and how sure that is; nothing is trained."""
    wanted = chosen(PlanOptions, invocation, vocab=_one_vocab(vocab, tokenizer, data))
    if data is None:
        request = wanted.request()
    else:
        from archfit.advise.source import facts_of, vocabulary_of
        from archfit.data.prepared import open_prepared

        prepared = open_prepared(data)
        request = wanted.request(vocabulary_of(prepared), facts_of(prepared))
    document = plan_document(make_plan(request))
    show(document, chart=chart, figure="depths")


def _one_vocab(vocab: int | None, tokenizer: Path | None, data: Path | None) -> int | None:
    """The vocabulary that was named or that a tokenizer has; data brings its own."""
    given = {"--vocab": vocab, "--tokenizer": tokenizer, "--data": data}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise ValueError(f"{' and '.join(named)} each give a vocabulary; give one of them")
    if tokenizer is None:
        return vocab
    from archfit.data.kinds import tokenizer_rows

    return tokenizer_rows(tokenizer)
