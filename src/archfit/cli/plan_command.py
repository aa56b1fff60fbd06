"""`archfit plan`: the shape for a budget and data, and what speaks for and against it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archfit.advise.budgets import CHINCHILLA_TOKENS
from archfit.advise.law import DEEPEST_TRAINED
from archfit.advise.plan_request import PlanOptions
from archfit.advise.planner import make_plan
from archfit.cli import options
from archfit.cli.options import AsJson, Chart, Why, byte_size, chosen, flag, size, word
from archfit.cli.output import show
from archfit.report.plan_document import plan_document

PATCH = word("Values embedded at a position, as numbers.", metavar="16x16x3")
TOKENIZER = word("A tokenizer.json, for its vocabulary.", metavar="FILE")
DATA = word("Prepared data: used vocabulary, tokens.", metavar="DIR")
TOKENS_PER_PARAM = word("Training tokens for each parameter.")
MINUTES = word("Budget: training time on --gpu.")


def plan(
    invocation: typer.Context,
    params: Annotated[int | None, options.PARAMS] = None,
    block_params: Annotated[int | None, size("Budget: blocks alone, 12 L d^2.")] = None,
    flops: Annotated[int | None, size("Budget: operations of the training.", "C")] = None,
    minutes: Annotated[float | None, MINUTES] = None,
    gpu: Annotated[str, word("A machine that was timed: h200, cpu.", metavar="NAME")] = "",
    bytes: Annotated[int | None, byte_size("Budget: room for the weights.")] = None,
    weight_bits: Annotated[int, word("Of a weight, for --bytes.")] = 16,
    tokens: Annotated[int | None, size("Budget: tokens of data, read up to 4 times.")] = None,
    family: Annotated[str, options.FAMILY] = "",
    vocab: Annotated[int | None, size("Tokens; else as the budget allows.", "V")] = None,
    rank: Annotated[int | None, size("Inner size of a factorised embedding.", "R")] = None,
    patch: Annotated[str, PATCH] = "",
    tokenizer: Annotated[Path | None, TOKENIZER] = None,
    data: Annotated[Path | None, DATA] = None,
    context: Annotated[int, options.CONTEXT] = 1024,
    tied: Annotated[bool, flag("--tied", "The embedding is the head, too.")] = False,
    max_depth: Annotated[int, options.MAX_DEPTH] = DEEPEST_TRAINED,
    block: Annotated[str, options.BLOCK] = "gpt2",
    objective: Annotated[str, options.OBJECTIVE] = "causal",
    multiple_of: Annotated[int | None, size("Of the width; else as GPUs like it.", "M")] = None,
    tokens_per_param: Annotated[float, TOKENS_PER_PARAM] = CHINCHILLA_TOKENS,
    why: Why = False,
    chart: Chart = None,
    as_json: AsJson = False,
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
    show(document, as_json=as_json, why=why, chart=chart, figure="depths")


def _one_vocab(vocab: int | None, tokenizer: Path | None, data: Path | None) -> int | None:
    """The vocabulary that was named or that a tokenizer has; data brings its own."""
    given = {"--vocab": vocab, "--tokenizer": tokenizer, "--data": data}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise ValueError(f"{' and '.join(named)} each give a vocabulary; give one of them")
    if tokenizer is None:
        return vocab
    from archfit.data.tokenizer_files import tokenizer_rows

    return tokenizer_rows(tokenizer)
