"""A plan as a document: the shape, how sure it is, what to do next; then why, and what it takes."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from archfit.advise.advisers import Advice, evidence_against
from archfit.advise.budgets import Budget, TrainingMinutes
from archfit.advise.law import DEEPEST_TRAINED
from archfit.advise.plan_request import PlanOptions
from archfit.advise.planner import Plan
from archfit.advise.prior import OURS, DepthOutlook, shipped_prior
from archfit.report.document import (
    NEXT,
    Command,
    Document,
    Figure,
    Section,
    Table,
    counted,
    json_of,
    loaded,
)
from archfit.report.theory_document import bounds_figure
from archfit.spec.rates import EPOCHS
from archfit.spec.sizes import written_size
from archfit.theory.shape import Shape

Json = dict[str, object]
TITLE = "Which Transformer architecture fits my data?"
MANY_KINDS = 4  # that are named one by one
MEASURABLE = 4e9  # parameters: 8 times the largest network that `archfit advise` trains
NOTABLE = 0.01  # of a budget: a size so far from it is said beside it


def plan_document(plan: Plan) -> Document:
    """What `archfit plan` says."""
    return Document(
        title=TITLE,
        headline=f"{shape_words(plan)} for {plan.request.budget}",
        sections=(
            Section.of("", *confidence(plan), total_words(plan)),
            Section.of(NEXT, *_next(plan)),
            *why_sections(plan),
        ),
        data=plan_json(plan),
    )


def why_sections(plan: Plan) -> tuple[Section, ...]:
    """What stands behind the answer."""
    return (
        Section.of("Depths", *_depths(plan), is_why=True),
        Section.of("Other inputs for the same budget", *_repairs(plan), is_why=True),
        *adviser_sections(plan),
        Section.of("Training", *_training(plan), is_why=True),
        Section.of("Figures", depth_figure(plan), is_detail=True),
    )


def shape_words(plan: Plan) -> str:
    """The shape in a line."""
    shape, layers = plan.shape, counted(plan.shape.depth, "layer")
    return f"{layers} of width {shape.width}, {counted(shape.heads, 'head')} of {shape.head_dim}"


def confidence(plan: Plan) -> Iterator[str]:
    """How sure the depth is, what to know of it, and what it rests on."""
    regret, basis = plan.regret, plan.basis
    yield (
        f"About {regret.expected:.3f} {regret.unit} worse than the best depth (90 %: at most "
        f"{regret.at_most:.3f})."
    )
    low, high = plan.depth_range
    if low < high:
        close = f"{regret.close:.2f} {regret.unit}"
        yield f"{low} to {high} layers: more likely than not within {close} of the best."
    if plan.costs.tokens_per_param >= plan.request.tokens_per_param:  # else a note says more
        each = f"{plan.costs.tokens_per_param:.3g} per parameter"
        tokens = written_size(round(float(f"{plan.costs.tokens:.3g}")))
        yield f"For {tokens} training tokens ({each}): fewer ask for fewer layers."
    yield from (f"Note: {warning}." for warning in plan.warnings)
    where = f"other {basis.family} data" if basis.family else "other data of all kinds"
    where = "your data" if basis.source == "ladder" else where
    largest = written_size(round(float(f"{basis.largest:.2g}")))
    networks = f"{counted(basis.runs, 'network')} of up to {largest}"
    yield f"Based on {networks} parameters, trained on {where}."


def total_words(plan: Plan) -> str:
    """How large the network is, also beside its budget where that is of parameters."""
    params, budget, beside = plan.params, plan.request.budget, ""
    wanted = budget.amount if isinstance(budget, Budget) and budget.kind == "params" else None
    if wanted is not None and abs(params.total / wanted - 1) >= NOTABLE:
        more = params.total / wanted - 1
        beside = f" ({abs(more):.1%} {'more' if more > 0 else 'fewer'})".replace("%", " %")
    output = "shared with the output" if plan.request.is_tied else "and output layer"
    return f"{params.total:,} parameters{beside}, {params.embedding:,} in embeddings {output}."


def _next(plan: Plan) -> Iterator[str]:
    data = plan.request.data
    if data is not None and data.knows_path and data.source and not Path(data.folder).exists():
        yield Command(f"archfit data prepare {shlex.quote(data.source)} --out {data.folder}")
    is_like_advised = plan.request.patch is None and plan.request.objective == "causal"
    if plan.basis.source == "prior" and is_like_advised and plan.best.size <= MEASURABLE:
        source = "YOUR-DATA" if data is None else shlex.quote(data.place)
        yield Command(f"archfit advise {source} {_advised_options(plan)}  # measures on your data")
    if plan.export_command is not None:
        yield Command(plan.export_command)
    elif plan.request.objective == "masked" and plan.request.block == "llama":
        yield "No format has encoders of Llama's blocks; archfit train trains them."


def _advised_options(plan: Plan) -> str:
    """As `archfit advise` takes them: blocks alone are no budget, and minutes say of what."""
    request, usual, option = plan.request, PlanOptions(), plan.request.budget.option
    if request.budget.kind == "block_params":
        option = f"--params {float(f'{plan.params.total:.3g}'):.0f}"
    option = re.sub(r"\b\d{4,}\b", lambda number: written_size(int(number[0])), option)
    if isinstance(request.budget, TrainingMinutes):
        option += " --minutes-to-measure 5"
    for name in ("block", "context", "max_depth", "tokens_per_param"):
        word, asked = f"--{name.replace('_', '-')}", getattr(request, name)
        if asked != getattr(usual, name) and word not in option:
            option += f" {word} {asked:g}" if isinstance(asked, float) else f" {word} {asked}"
    return option


def _trained_on(names: Sequence[str]) -> str:
    """The data of the atlas, and how many public results beside them, by names of series."""
    own = {kind.name for some in shipped_prior().runs.values() for kind in some}
    data = dict.fromkeys(name.partition(", ")[0] for name in names if name in own)
    named = ", ".join(data) if len(data) <= MANY_KINDS else counted(len(data), "data set")
    public = len([name for name in names if name not in own])
    more = f" and {counted(public, 'public result')} (docs/advising.md)" if public else ""
    return f"Fitted to networks on {named} (docs/atlas.md){more}."


def _depths(plan: Plan) -> Iterator[str]:
    """What more and less depth would do, the papers' law, and what limits the input."""
    outlook, ideal, request = plan.best.outlook, plan.ideal, plan.request
    (least, _), *_, (most, _) = outlook.regrets
    half, double = max(least, outlook.depth / 2), min(most, 2 * outlook.depth)
    yield (
        f"The best depth is {outlook.depth:.1f} before rounding. Half of it ({half:.1f} layers) "
        "lowers the loss by more than 1 % with a probability of "
        f"{100 * outlook.half_better:.0f} %, twice as much ({double:.1f}) with "
        f"{100 * outlook.double_better:.0f} %."
    )
    if plan.best.tokens > request.trained_tokens(plan.best.size):
        tokens = f"{plan.best.tokens:.2g} token{'s' if plan.best.tokens != 1 else ''}"
        yield f"The depth is that for {tokens} per parameter: no run has fewer."
    if ideal.depth <= DEEPEST_TRAINED:  # else far beyond what it was fitted to
        yield (
            f"The papers' law asks for {ideal.depth:,.1f} layers of width {ideal.width:,.0f}, by "
            "the parameters of the blocks alone."
        )
    yield "Heads are 64 or 128 wide where that fits; their number was not fitted to runs."
    yield f"{_trained_on(plan.basis.kinds)} `archfit backtest` says how good such plans are."
    if request.block == "llama":
        units = request.hidden_units(plan.shape.depth, plan.shape.width)
        yield f"Llama blocks: RMS norms, {units:,} gated units, rotary positions, no biases."
    if request.objective == "masked":
        yield "An encoder that fills in masked tokens; the mask token is counted."
    if plan.bottleneck is not None:
        yield bottleneck_words(request.limit.kind, request.limit.limit, plan.shape.width)


def bottleneck_words(kind: str, limit: int, width: int) -> str:
    """What is known of an input of less rank than the width, at a good depth."""
    return (
        f"A {kind} of {limit:,} is below the width of {width:,}: a bottleneck by the papers "
        "(Wies et al. 2021). In our runs on small vocabularies neither more depth nor another "
        "input was clearly better, but for groups of 3 letters on DNA."
    )


def named_shape(advice: Advice) -> str:
    """Depth and width, or a band of depths, or nothing."""
    if advice.depth is not None and advice.width is not None:
        return f"{advice.depth:,.1f} x {advice.width:,.0f}"
    if advice.depths is None:
        return ""
    low, high = (max(1, round(depth)) for depth in advice.depths)  # no network has none
    return counted(high, "layer") if low == high else f"{low:,} to {counted(high, 'layer')}"


def _repairs(plan: Plan) -> Iterator[str]:
    """Each with its command on a line of its own, so that it can be copied whole."""
    for repair in plan.repairs:
        needs = f" ({repair.needs})" if repair.needs else ""
        yield (
            f"{repair.kind}: {repair.change}: {repair.shape.depth} x {repair.shape.width}, "
            f"{repair.params.total:,} parameters{needs}."
        )
        yield Command(repair.command)


def adviser_sections(plan: Plan) -> tuple[Section, ...]:
    """What others advise at this size, with and without a shape, and what speaks against us."""
    shaped = [advice for advice in plan.advice if named_shape(advice)]
    lost = f"{shipped_prior().rules[OURS]:.3f}"
    ours = ("archfit", f"{plan.shape.depth} x {plan.shape.width}", lost, "", "this plan")
    table = Table.of("advisers", shaped, shape=named_shape)
    opinions = (
        f"{advice.name}: {advice.says} ({advice.source}; {advice.seen_in})"
        for advice in plan.advice
        if advice not in shaped
    )
    return (
        Section.of("", replace(table, rows=(ours, *table.rows)), is_why=True),
        Section.of("Advice that names no shape", *opinions, is_why=True),
        Section.of("What speaks against this", *evidence_against(), is_why=True),
    )


def _training(plan: Plan) -> Iterator[str]:
    costs, memory, start = plan.costs, plan.costs.memory, plan.costs.start
    each = f"{costs.tokens_per_param:.3g} per parameter"
    if costs.tokens_per_param < plan.request.tokens_per_param:
        each = f"{EPOCHS} epochs of the data, {each}; {plan.request.tokens_per_param:g} are usual"
    yield (
        f"{costs.tokens:,} tokens ({each}), {costs.flops:.3g} FLOPs and "
        f"{costs.attention_flops:.3g} for attention."
    )
    yield (
        f"Memory {memory.total / 1e9:,.2f} GB: weights {memory.weights / 1e9:,.2f}, gradients "
        f"{memory.gradients / 1e9:,.2f}, Adam {memory.optimiser / 1e9:,.2f}, activations "
        f"{memory.activations / 1e9:,.2f} for {memory.batch_sequences} sequences of "
        f"{plan.request.context:,}."
    )
    outside = "" if start.in_range else "; this one or its training is larger"
    yield (
        f"Start other tools at learning rate {start.learning_rate:g} with batches of "
        f"{start.batch_tokens:,} tokens ({start.source}{outside})."
    )


def depth_figure(plan: Plan, before: DepthOutlook | None = None) -> Figure:
    """What each depth is expected to lose, also `before` anything was measured on the data."""
    named = (f"{each.name} {named_shape(each)}" for each in plan.advice if each.depth is not None)
    return Figure.of(
        "depths",
        f"Expected regret over depth: recommended {plan.shape.depth} layers; {'; '.join(named)}.",
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
