"""A plan as a document: the shape, how sure it is, what to do next; then why, and what it takes."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import accumulate

from archfit.advise.advisers import Advice, evidence_against
from archfit.advise.budgets import BlockParams, TrainingMinutes
from archfit.advise.planner import Plan
from archfit.advise.prior import DepthOutlook
from archfit.report.document import Command, Document, Figure, Section, Table, json_of, loaded
from archfit.report.theory_document import bounds_figure
from archfit.theory.shape import Shape

Json = dict[str, object]
TITLE = "Which Transformer architecture fits my data?"
MANY_KINDS = 4  # that are named one by one
NOTES = 230  # characters of notes beside the answer, three lines; more is for those who ask why


def plan_document(plan: Plan) -> Document:
    """What `archfit plan` says."""
    shown, more = notes(plan)
    return Document(
        title=TITLE,
        headline=f"{shape_words(plan)} for {plan.request.budget}",
        sections=(
            Section.of("", *confidence(plan), *shown),
            Section.of("Next", *_next(plan)),
            Section.of("More notes", *more, is_why=True),
            *why_sections(plan),
        ),
        data=plan_json(plan),
    )


def notes(plan: Plan) -> tuple[list[str], list[str]]:
    """Warnings for which there is room beside the answer, and the others."""
    found = [f"Note: {warning}." for warning in plan.warnings]
    ends = accumulate(map(len, found))
    shown = [note for note, end in zip(found, ends, strict=True) if end <= NOTES] or found[:1]
    return shown, found[len(shown) :]


def why_sections(plan: Plan) -> tuple[Section, ...]:
    """What stands behind the answer."""
    return (
        Section.of("Depths", *_depths(plan), is_why=True),
        Section.of("Inputs of a higher rank, at the same budget", *_repairs(plan), is_why=True),
        *adviser_sections(plan),
        Section.of("Training", *_training(plan), is_why=True),
        Section.of("Figures", depth_figure(plan), is_detail=True),
    )


def shape_words(plan: Plan) -> str:
    """The shape in a line."""
    shape, layers = plan.shape, "layer" if plan.shape.depth == 1 else "layers"
    heads = f"{shape.heads} {'head' if shape.heads == 1 else 'heads'} of {shape.head_dim}"
    return f"{shape.depth} {layers} of width {shape.width}, {heads}"


def confidence(plan: Plan) -> Iterator[str]:
    """How large the network is, how sure its depth, and what that rests on."""
    regret, basis = plan.regret, plan.basis
    yield f"{plan.params.total:,} parameters, {plan.params.embedding:,} of them in embeddings."
    low, high = plan.depth_range
    if low < high:
        yield f"{low} to {high} layers are about as good: within 0.01 bits per byte."
    yield (
        f"Expected to lose {regret.expected:.3f} {regret.unit} to the best depth "
        f"(90 %: below {regret.at_most:.3f})."
    )
    size = _size(basis.largest)
    where = f"{basis.family} data" if basis.family else "data of all kinds"
    if basis.source == "ladder":
        yield f"Measured: {basis.runs} networks of up to {size} parameters on your data."
    else:
        yield f"It rests on {basis.runs} networks of up to {size} parameters on other {where}."


def _size(params: float) -> str:
    return f"{params / 1e9:.2g}B" if params >= 1e9 else f"{params / 1e6:.2g}M"


def _next(plan: Plan) -> Iterator[str]:
    if plan.basis.source == "prior" and plan.request.patch is None:
        yield Command(f"archfit advise YOUR-DATA {_advised_budget(plan)}  # measures on your data")
    if plan.export_command is not None:
        yield Command(plan.export_command)


def _advised_budget(plan: Plan) -> str:
    """The budget as `archfit advise` takes it: blocks alone are none, and minutes say of what."""
    budget = plan.request.budget
    if isinstance(budget, BlockParams):
        return f"--params {plan.params.total}"
    if isinstance(budget, TrainingMinutes):
        return f"{budget.option} --minutes-to-measure 5"
    return budget.option


def _depths(plan: Plan) -> Iterator[str]:
    """What more and less depth would do, the papers' law, and what caps the input's rank."""
    outlook, ideal, request = plan.best.outlook, plan.ideal, plan.request
    yield (
        f"best depth {outlook.depth:.1f} before rounding; half of it is better by over 1 % of loss "
        f"with {outlook.half_better:.0%}, twice of it with {outlook.double_better:.0%}"
    )
    yield f"the papers' law would take {ideal.depth:,.1f} layers of width {ideal.width:,.0f}"
    kinds = plan.basis.kinds
    named = ", ".join(kinds) if len(kinds) <= MANY_KINDS else f"{len(kinds)} kinds of data"
    yield f"prior: {named} (docs/atlas.md; what it is worth: archfit backtest)"
    units = request.hidden_units(plan.shape.depth, plan.shape.width)
    apart = {  # from a decoder of GPT-2's blocks
        f"blocks of Llama: RMS norms, {units:,} gated units, rotary positions, no biases": (
            request.block == "llama"
        ),
        "an encoder that fills in masked tokens, the mask token counted": (
            request.objective == "masked"
        ),
    }
    if any(apart.values()):
        yield "; ".join(words for words, is_so in apart.items() if is_so)
    if plan.bottleneck is not None:
        yield (
            f"a {request.limit.kind} of {request.limit.limit:,} caps the rank of the input below "
            f"the width of {plan.shape.width:,}: the papers call that a bottleneck"
        )


def named_shape(advice: Advice) -> str:
    """Depth and width, or a band of depths, or nothing."""
    if advice.depth is not None and advice.width is not None:
        return f"{advice.depth:,.1f} x {advice.width:,.0f}"
    if advice.depths is not None:
        return f"{advice.depths[0]:,.0f} to {advice.depths[1]:,.0f} layers"
    return ""


def _repairs(plan: Plan) -> Iterator[str]:
    """Each with its command on a line of its own, so that it can be copied whole."""
    for repair in plan.repairs:
        needs = f" ({repair.needs})" if repair.needs else ""
        yield (
            f"{repair.kind}: {repair.change}: {repair.shape.depth} x {repair.shape.width}, "
            f"{repair.params.total:,} parameters{needs}"
        )
        yield Command(repair.command)


def adviser_sections(plan: Plan) -> tuple[Section, ...]:
    """What others advise at this size, with and without a shape, and what speaks against us."""
    shaped = [advice for advice in plan.advice if named_shape(advice)]
    ours = ("archfit", f"{plan.shape.depth} x {plan.shape.width}", "", "", "this plan")
    table = Table.of("advisers", shaped, shape=named_shape)
    opinions = (
        f"{advice.name}: {advice.says} ({advice.source}; {advice.seen_in})"
        for advice in plan.advice
        if advice not in shaped
    )
    return (
        Section.of("", replace(table, rows=(ours, *table.rows)), is_why=True),
        Section.of("Advice that names no shape", *opinions, is_why=True),
        Section.of("Evidence against us", *evidence_against(), is_why=True),
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
    outside = "" if start.in_range else "; outside its range here"
    yield (
        f"start at learning rate {start.learning_rate:g}, batches of {start.batch_tokens:,} "
        f"tokens ({start.source}{outside})"
    )


def depth_figure(plan: Plan, before: DepthOutlook | None = None) -> Figure:
    """What each depth is expected to lose, also `before` anything was measured on the data."""
    named = (f"{each.name} {named_shape(each)}" for each in plan.advice if each.depth is not None)
    return Figure.of(
        "depths",
        f"Expected loss against depth: recommended {plan.shape.depth} layers; {'; '.join(named)}.",
        lambda page: loaded("depth_charts").depth_chart(plan, page, before),
    )


def theory_figure(plan: Plan) -> Figure:
    """Bounds on what more depth can add, for those who ask for theory."""
    request, shape = plan.request, plan.shape
    network = Shape(depth=shape.depth, width=shape.width, heads=shape.heads)
    if request.patch is None:
        network = replace(network, vocab=request.input_dimensions, rank=request.rank)
    elif request.limit.limit < shape.width:
        network = replace(network, rank=request.limit.limit)
    return bounds_figure(network)


def plan_json(plan: Plan) -> Json:
    """The document that `archfit plan --json` prints."""
    repairs = [
        {name: value for name, value in asdict(repair).items() if name != "params"}
        | {"shape": json_of("shape", repair.shape) | {"params": asdict(repair.params)}}
        for repair in plan.repairs
    ]
    memory = plan.costs.memory
    return json_of(
        "plan",
        plan,
        feed_forward=plan.request.hidden_units(plan.shape.depth, plan.shape.width),
        ideal_params=round(plan.ideal.block_params),
        repaired=repairs,
        advisers=[_advice_json(advice) for advice in plan.advice],
        evidence_against=evidence_against(),
        memory_bytes=asdict(memory) | {"total": memory.total},
    )


def _advice_json(advice: Advice) -> Json:
    depth, width, depths = advice.depth, advice.width, advice.depths
    return asdict(advice) | {
        "depth": None if depth is None else round(depth, 1),
        "width": None if width is None else round(width),
        "depths": None if depths is None else [round(depth, 1) for depth in depths],
    }
