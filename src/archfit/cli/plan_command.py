"""`archfit plan`: the shape for a budget and data, and what speaks for and against it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archfit.advise.request import facts_of, vocabulary_of
from archfit.cli.output import print_json, print_table
from archfit.cli.sizes import size_option
from archfit.plan.advisers import evidence_against
from archfit.plan.document import plan_json
from archfit.plan.law import DEEPEST_TRAINED
from archfit.plan.planner import Plan, make_plan
from archfit.plan.request import CHINCHILLA_TOKENS, PlanOptions, PlanRequest
from archfit.plan.wording import bottleneck_sentence, effect_sentence, named_shape


def plan(
    params: Annotated[
        int | None, typer.Option(parser=size_option, metavar="N", help="Budget: all parameters.")
    ] = None,
    block_params: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="N", help="Budget: blocks alone, 12 L d^2."),
    ] = None,
    flops: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="C", help="Budget: operations of the training."),
    ] = None,
    vocab: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="V", help="Tokens; else 50257, GPT-2's."),
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="R", help="Inner size of a factorised embedding."),
    ] = None,
    patch: Annotated[
        str, typer.Option(metavar="16x16x3", help="Values embedded at a position, as numbers.")
    ] = "",
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A tokenizer.json, for its vocabulary.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Prepared data: used vocabulary, tokens.")
    ] = None,
    context: Annotated[
        int, typer.Option(parser=size_option, metavar="N", help="Positions seen at once.")
    ] = 1024,
    tied: Annotated[bool, typer.Option("--tied", help="The embedding is the head, too.")] = False,
    max_depth: Annotated[
        int, typer.Option(parser=size_option, metavar="L", help="Layers that you would train.")
    ] = DEEPEST_TRAINED,
    multiple_of: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="M", help="Of the width; else as GPUs like it."),
    ] = None,
    tokens_per_param: Annotated[
        float, typer.Option(help="Training tokens for each parameter.")
    ] = CHINCHILLA_TOKENS,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw depth against width: .svg .png .html")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """The shape that a budget and your data ask for, and why."""
    asked = PlanOptions(
        params=params,
        block_params=block_params,
        flops=flops,
        vocab=_one_vocab(vocab, tokenizer, data),
        rank=rank,
        patch=patch,
        context=context,
        tied=tied,
        max_depth=max_depth,
        multiple_of=multiple_of,
        tokens_per_param=tokens_per_param,
    )
    question = asked.request() if data is None else _question_about(asked, data)
    if chart is not None:
        from archfit.report.chart_file import check_chart_file

        check_chart_file(chart)
    made = make_plan(question)
    if chart is not None:
        from archfit.audit.zoo import known_shapes
        from archfit.report.chart_file import save_chart
        from archfit.report.plan_chart import iso_parameter_chart

        save_chart(iso_parameter_chart(made, known_shapes()), chart)
    if as_json:
        return print_json(plan_json(made) | ({"chart": str(chart)} if chart else {}))
    return _print_for_people(made, chart)


def _one_vocab(vocab: int | None, tokenizer: Path | None, data: Path | None) -> int | None:
    """The vocabulary that was named or that a tokenizer has; data brings its own."""
    given = {"--vocab": vocab, "--tokenizer": tokenizer, "--data": data}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise ValueError(f"{' and '.join(named)} each give a vocabulary; give one of them")
    if tokenizer is None:
        return vocab
    from archfit.data.tokenizer_size import tokenizer_rows

    return tokenizer_rows(tokenizer)


def _question_about(asked: PlanOptions, folder: Path) -> PlanRequest:
    from archfit.data.prepared import open_prepared

    prepared = open_prepared(folder)
    return asked.request(vocabulary_of(prepared), facts_of(prepared))


def _print_for_people(made: Plan, chart: Path | None) -> None:
    if made.leads_with_repairs:
        _print_bottleneck(made)
        _print_repairs(made)
        typer.echo(
            f"If you cannot repair it: the best shape within {made.request.max_depth} layers."
        )
    _print_shape(made)
    if made.bottleneck and not made.leads_with_repairs:
        _print_bottleneck(made)
        _print_repairs(made)
    _print_advisers(made)
    _print_costs(made)
    for warning in made.warnings:
        typer.echo(f"Note: {warning}.")
    typer.echo(f"Test it: {made.check.command}")
    typer.echo(f"  The plan is refuted if {made.check.refuted_if}.")
    if made.export_command is not None:
        typer.echo(f"Export it: {made.export_command}")
    if chart is not None:
        typer.echo(f"Chart: {chart}")


def _print_shape(made: Plan) -> None:
    shape, ideal, sizes = made.shape, made.ideal, made.params
    typer.echo(
        f"{shape.depth} layers x width {shape.width}, {shape.heads} heads of {shape.head_dim} "
        f"for {made.request.budget}"
    )
    typer.echo(
        f"  {sizes.total:,} parameters: {sizes.blocks:,} in blocks, {sizes.embedding:,} in tables, "
        f"{sizes.biases_and_norms:,} biases and norms"
    )
    typer.echo(
        f"  embedding rank {made.embedding_rank:,}; ideal {ideal.depth:,.1f} x {ideal.width:,.0f} "
        f"before rounding, which changes the size by {made.rounding_cost:+.1%}"
    )
    typer.echo(f"  expected: {effect_sentence(made)}")


def _print_bottleneck(made: Plan) -> None:
    typer.echo(f"Bottleneck: {bottleneck_sentence(made)}")


def _print_repairs(made: Plan) -> None:
    """Each on lines of its own, so that its command can be copied whole."""
    if not made.repairs:
        return typer.echo("No repair that we know of removes it at this budget and context.")
    typer.echo("Repairs, at the same budget:")
    for repair in made.repairs:
        typer.echo(
            f"  {repair.kind}: {repair.change}: {repair.shape.depth} x {repair.shape.width}, "
            f"{repair.params.total:,} parameters"
        )
        typer.echo(f"    {repair.command}")
        if repair.needs:
            typer.echo(f"    ({repair.needs})")
    return None


def _print_advisers(made: Plan) -> None:
    shaped = [advice for advice in made.advice if named_shape(advice)]
    print_table(
        "Advisers",
        ("adviser", "depth x width", "in range", "source; where it was seen"),
        [
            ("archfit", f"{made.shape.depth} x {made.shape.width}", "", "this plan"),
            *(
                (
                    advice.name,
                    named_shape(advice),
                    "yes" if advice.in_range else "no",
                    f"{advice.source}; {advice.seen_in}",
                )
                for advice in shaped
            ),
        ],
    )
    typer.echo("Advice that names no shape:")
    for advice in made.advice:
        if advice not in shaped:
            typer.echo(f"  {advice.name}: {advice.says} ({advice.source}; {advice.seen_in})")
    typer.echo("Evidence against us:")
    for sentence in evidence_against():
        typer.echo(f"  {sentence}")


def _print_costs(made: Plan) -> None:
    costs, memory, start = made.costs, made.costs.memory, made.costs.start
    typer.echo(
        f"Training: {costs.tokens:,} tokens ({made.request.tokens_per_param:g} a parameter), "
        f"{costs.flops:.3g} FLOPs and {costs.attention_flops:.3g} for attention"
    )
    typer.echo(
        f"  memory {memory.total / 1e9:,.2f} GB: weights {memory.weights / 1e9:,.2f}, gradients "
        f"{memory.gradients / 1e9:,.2f}, Adam {memory.optimiser / 1e9:,.2f}, activations "
        f"{memory.activations / 1e9:,.2f} for {memory.batch_sequences} sequences of "
        f"{made.request.context:,}"
    )
    typer.echo(
        f"  latency {costs.relative_latency:.2f} times that of the text shape (linear in depth)"
    )
    outside = "" if start.in_range else "; outside its range here"
    typer.echo(
        f"  start at learning rate {start.learning_rate:g}, batches of {start.batch_tokens:,} "
        f"tokens ({start.source}{outside})"
    )
