"""A plan as a document: the shape, why, what others say, repairs, costs, and how to test it."""

from collections.abc import Iterator
from dataclasses import asdict, replace

from archfit.plan.advisers import Advice, evidence_against
from archfit.plan.law import IdealShape
from archfit.plan.planner import Plan
from archfit.plan.request import PlanRequest
from archfit.plan.shapes import RoundedShape
from archfit.report.document import Command, Document, Figure, Section, Table, loaded
from archfit.report.theory_document import bounds_figure
from archfit.theory.bounds import Shape

Json = dict[str, object]
NO_REPAIR = "No repair that we know of removes it at this budget and context."


def plan_document(plan: Plan) -> Document:
    """What `archfit plan` says; where no repair leads, the shape comes first."""
    shape = f"{shape_words(plan)} for {plan.request.budget}"
    repairs = _repairs(plan)
    first: tuple[Section, ...] = (Section(sentences=tuple(_about_shape(plan))),)
    headline = shape
    if plan.leads_with_repairs:
        headline = bottleneck_sentence(plan)
        title = f"If you cannot repair it: the best shape within {plan.request.max_depth} layers"
        first = (repairs, Section(title=title, sentences=(shape, *_about_shape(plan))))
    elif plan.bottleneck:
        first += (Section(sentences=(bottleneck_sentence(plan),)), repairs)
    export = () if plan.export_command is None else (Command(plan.export_command),)
    refuted = f"The plan is refuted if {plan.check.refuted_if}."
    return Document(
        title="Which Transformer architecture fits my data?",
        headline=headline,
        sections=(
            *first,
            *adviser_sections(plan),
            Section(title="Training", sentences=tuple(_training(plan))),
            Section(sentences=tuple(f"Note: {warning}." for warning in plan.warnings)),
            Section(title="Test it", sentences=(Command(plan.check.command), refuted)),
            Section(title="Export it", sentences=export),
            *detail_sections(plan),
        ),
        data=_plan_json(plan),
    )


def shape_words(plan: Plan) -> str:
    """The shape in a line."""
    shape = plan.shape
    heads = f"{shape.heads} heads of {shape.head_dim}"
    return f"{shape.depth} layers x width {shape.width}, {heads}"


def network_words(plan: Plan) -> str:
    """What sets the network apart from a decoder of GPT-2's blocks; empty for that one."""
    units = plan.request.hidden_units(plan.shape.depth, plan.shape.width)
    llama = f"blocks of Llama: RMS norms, {units:,} gated units, rotary positions, no biases"
    parts = [llama] if plan.request.block == "llama" else []
    parts += ["an encoder that fills in masked tokens, the mask token counted"] * (
        plan.request.objective == "masked"
    )
    return "; ".join(parts)


def bottleneck_sentence(plan: Plan) -> str:
    """What caps the rank of the input, and what that does to the shape; or that nothing does."""
    limit, width = plan.request.limit, f"{plan.text_shape.width:,.0f}"
    if plan.bottleneck is None:
        return (
            f"No bottleneck: the input has a rank of up to {limit.limit:,}, and text of this size "
            f"would use a width of {width}."
        )
    return (
        f"Bottleneck: a {limit.kind} of {limit.limit:,} caps the rank of the input, and text of "
        f"this size would use a width of {width}; width beyond the cap is wasted. The law asks for "
        f"{plan.ideal.depth:,.0f} layers."
    )


def effect_sentence(plan: Plan) -> str:
    """What the shape is expected to gain over a text-shaped one of its size."""
    effect = plan.effect
    text = f"{effect.against.depth:,.1f} x {effect.against.width:,.0f}"
    if effect.saved is not None:
        return (
            f"a text-shaped network ({text}) of this size could do without {effect.saved} of its "
            f"parameters ({effect.saved.basis}; {effect.source})"
        )
    assert effect.loss_percent is not None
    low, high = effect.loss_percent
    return f"{low:g} to {high:g} % of loss ({effect.source})"


def named_shape(advice: Advice) -> str:
    """Depth and width, or a band of depths, or nothing."""
    if advice.depth is not None and advice.width is not None:
        return f"{advice.depth:,.1f} x {advice.width:,.0f}"
    if advice.depths is not None:
        return f"{advice.depths[0]:,.0f} to {advice.depths[1]:,.0f} layers"
    return ""


def _about_shape(plan: Plan) -> Iterator[str]:
    sizes, ideal = plan.params, plan.ideal
    yield (
        f"{sizes.total:,} parameters: {sizes.blocks:,} in blocks, {sizes.embedding:,} in tables, "
        f"{sizes.biases_and_norms:,} biases and norms"
    )
    if words := network_words(plan):
        yield words
    yield (
        f"embedding rank {plan.embedding_rank:,}; ideal {ideal.depth:,.1f} x {ideal.width:,.0f} "
        f"before rounding, which changes the size by {plan.rounding_cost:+.1%}; width / depth "
        f"{plan.aspect_ratio:.1f}"
    )
    yield f"expected: {effect_sentence(plan)}"


def _repairs(plan: Plan) -> Section:
    """Each with its command on a line of its own, so that it can be copied whole."""
    if not plan.repairs:
        return Section(sentences=(NO_REPAIR,))
    lines: list[str] = []
    for repair in plan.repairs:
        needs = f" ({repair.needs})" if repair.needs else ""
        lines.append(
            f"{repair.kind}: {repair.change}: {repair.shape.depth} x {repair.shape.width}, "
            f"{repair.params.total:,} parameters{needs}"
        )
        lines.append(Command(repair.command))
    return Section(title="Repairs, at the same budget", sentences=tuple(lines))


def adviser_sections(plan: Plan) -> tuple[Section, ...]:
    """What others advise at this size, with and without a shape, and what speaks against us."""
    shaped = [advice for advice in plan.advice if named_shape(advice)]
    ours = ("archfit", f"{plan.shape.depth} x {plan.shape.width}", "", "this plan")
    table = Table.of(
        "Advisers",
        shaped,
        {
            "adviser": lambda advice: advice.name,
            "depth x width": named_shape,
            "in range": lambda advice: "yes" if advice.in_range else "no",
            "source; where it was seen": lambda advice: f"{advice.source}; {advice.seen_in}",
        },
    )
    table = replace(table, rows=(ours, *table.rows))
    opinions = tuple(
        f"{advice.name}: {advice.says} ({advice.source}; {advice.seen_in})"
        for advice in plan.advice
        if advice not in shaped
    )
    return (
        Section(tables=(table,)),
        Section(title="Advice that names no shape", sentences=opinions),
        Section(title="Evidence against us", sentences=evidence_against()),
    )


def _training(plan: Plan) -> Iterator[str]:
    costs, memory, start = plan.costs, plan.costs.memory, plan.costs.start
    yield (
        f"{costs.tokens:,} tokens ({plan.request.tokens_per_param:g} a parameter), "
        f"{costs.flops:.3g} FLOPs and {costs.attention_flops:.3g} for attention"
    )
    yield (
        f"memory {memory.total / 1e9:,.2f} GB: weights {memory.weights / 1e9:,.2f}, gradients "
        f"{memory.gradients / 1e9:,.2f}, Adam {memory.optimiser / 1e9:,.2f}, activations "
        f"{memory.activations / 1e9:,.2f} for {memory.batch_sequences} sequences of "
        f"{plan.request.context:,}"
    )
    yield f"latency {costs.relative_latency:.2f} times that of the text shape (linear in depth)"
    outside = "" if start.in_range else "; outside its range here"
    yield (
        f"start at learning rate {start.learning_rate:g}, batches of {start.batch_tokens:,} "
        f"tokens ({start.source}{outside})"
    )


def detail_sections(plan: Plan) -> tuple[Section, ...]:
    """The three shapes side by side, and the charts."""
    shape, ideal, text = plan.shape, plan.ideal, plan.text_shape
    heads, total = f"{shape.heads} x {shape.head_dim}", f"{plan.params.total:,}"
    without_limit = "text-shaped, without the rank limit"
    table = Table(
        title="The plan for the data as they are",
        columns=("shape", "depth", "width", "heads", "parameters"),
        rows=(
            ("recommended", f"{shape.depth:,}", f"{shape.width:,}", heads, total),
            ("ideal, before rounding", f"{ideal.depth:,.1f}", f"{ideal.width:,.1f}", "", ""),
            (without_limit, f"{text.depth:,.1f}", f"{text.width:,.1f}", "", ""),
        ),
    )
    return (
        Section(title="Shapes", tables=(table,), is_detail=True),
        Section(title="Figures", figures=plan_figures(plan), is_detail=True),
    )


def plan_figures(plan: Plan) -> tuple[Figure, Figure]:
    """All shapes of the plan's size, and bounds on what more depth can add."""
    shape, named = plan.shape, [advice for advice in plan.advice if advice.depth is not None]
    shapes = Figure(
        name="shapes",
        title="All shapes of this size",
        caption="Every adviser at the same number of block parameters, and published models of "
        "about this size. Where the rank of the input is dotted, width beyond it is wasted.",
        description=f"Depth against width: recommended {shape.depth} x {shape.width}; "
        + "; ".join(f"{advice.name} {named_shape(advice)}" for advice in named)
        + ".",
        chart=lambda layout: loaded("report.charts.plan").iso_parameter_chart(
            plan, loaded("audit.zoo").known_shapes(), is_narrow=layout.columns == 1
        ),
    )
    request, network = plan.request, Shape(depth=shape.depth, width=shape.width, heads=shape.heads)
    if request.patch is None:
        network = replace(network, vocab=request.input_dimensions, rank=request.rank)
    elif request.limit.limit < shape.width:
        network = replace(network, rank=request.limit.limit)
    return shapes, bounds_figure(network)


def _plan_json(plan: Plan) -> Json:
    """The document that `archfit plan --json` prints."""
    request, costs, effect = plan.request, plan.costs, plan.effect
    change, lost = round(plan.rounding_cost, 4), effect.loss_percent
    return {
        "question": _request_json(request),
        "recommended": _shape_json(plan.shape)
        | {
            "vocab": request.vocabulary.size if request.vocabulary else None,
            "embedding_rank": plan.embedding_rank,
            "aspect_ratio": round(plan.aspect_ratio, 2),
            "block": request.block,
            "objective": request.objective,
            "kv_heads": plan.shape.heads,
            "feed_forward": request.hidden_units(plan.shape.depth, plan.shape.width),
            "params": asdict(plan.params),
        },
        "ideal": _ideal_json(plan.ideal),
        "rounding": {"of": _ideal_json(plan.allowed), "params_change": change},
        "bottleneck": asdict(plan.bottleneck) if plan.bottleneck else None,
        "leads_with": "repairs" if plan.leads_with_repairs else "shape",
        "repairs": [
            {name: value for name, value in asdict(repair).items() if name != "params"}
            | {"shape": _shape_json(repair.shape) | {"params": asdict(repair.params)}}
            for repair in plan.repairs
        ],
        "expected_effect": {
            "against": _ideal_json(effect.against),
            "params_saved": effect.saved.as_json() if effect.saved else None,
            "loss_percent": dict(zip(("low", "high"), lost, strict=True)) if lost else None,
            "source": effect.source,
        },
        "advisers": [_advice_json(advice) for advice in plan.advice],
        "evidence_against": list(evidence_against()),
        "check": asdict(plan.check),
        "export": plan.export_command,
        "training": {
            "tokens": costs.tokens,
            "tokens_per_param": request.tokens_per_param,
            "flops": costs.flops,
            "attention_flops": costs.attention_flops,
            "relative_latency": round(costs.relative_latency, 3),
            "start": asdict(costs.start),
        },
        "memory_bytes": asdict(costs.memory) | {"total": costs.memory.total},
        "warnings": list(plan.warnings),
    }


def _request_json(request: PlanRequest) -> Json:
    vocabulary, data = request.vocabulary, request.data
    return {
        "budget": request.budget.option,
        "vocab": vocabulary.size if vocabulary else None,
        "used_vocab": vocabulary.used if vocabulary else None,
        "rank": request.rank,
        "patch": list(request.patch) if request.patch else None,
        "rank_limit": request.limit.limit,
        "context": request.context,
        "tied": request.is_tied,
        "max_depth": request.max_depth,
        "block": request.block,
        "objective": request.objective,
        "data": asdict(data) if data else None,
    }


def _ideal_json(shape: IdealShape) -> Json:
    size = round(shape.block_params)
    return {"depth": round(shape.depth, 4), "width": round(shape.width, 2), "block_params": size}


def _shape_json(shape: RoundedShape) -> Json:
    return {name: getattr(shape, name) for name in ("depth", "width", "heads", "head_dim")}


def _advice_json(advice: Advice) -> Json:
    depth, width, depths = advice.depth, advice.width, advice.depths
    return asdict(advice) | {
        "depth": None if depth is None else round(depth, 1),
        "width": None if width is None else round(width),
        "depths": None if depths is None else [round(depth, 1) for depth in depths],
    }
