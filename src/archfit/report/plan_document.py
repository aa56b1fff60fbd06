"""A plan as a document: the shape, how sure it is, what to do next; then why, and what it takes."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from archfit.advise.advisers import Advice, evidence_against
from archfit.advise.budgets import Budget, TrainingMinutes
from archfit.advise.plan_request import ANY, PlanOptions
from archfit.advise.planner import WARNINGS, Plan
from archfit.advise.prior import OURS, DepthOutlook, shipped_prior
from archfit.report.document import Command, Document, Figure, Section, Table, json_of, said
from archfit.report.theory_document import bounds_figure
from archfit.spec.rates import EPOCHS
from archfit.spec.sizes import written_size
from archfit.theory.law import DEEPEST_TRAINED
from archfit.theory.shape import Shape

TITLE = "Which Transformer architecture fits my data?"
MANY_KINDS = 4  # that are named one by one
MEASURABLE = 4e9  # parameters: 8 times the largest network that `archfit advise` trains
NOTABLE = 0.01  # of a budget: a size so far from it is said beside it


def plan_document(plan: Plan) -> Document:
    """What `archfit plan` says, and prints with --json."""
    hidden = plan.request.hidden_units(plan.shape.depth, plan.shape.width)
    return Document(
        title=TITLE,
        headline=f"{said('plan.shape', plan.shape)} for {plan.request.budget}",
        sections=(
            Section.of(*dict.fromkeys((*confidence(plan), total_words(plan)))),
            Section.next(*_next(plan)),
            *why_sections(plan),
        ),
        data=json_of("plan", plan, feed_forward=hidden, evidence_against=evidence_against()),
    )


def why_sections(plan: Plan) -> tuple[Section, ...]:
    """What stands behind the answer: also what others advise, and what speaks against us."""
    shaped = [advice for advice in plan.advice if named_shape(advice)]
    lost = f"{shipped_prior().rules[OURS]:.3f}"
    ours = ("archfit", f"{plan.shape.depth} x {plan.shape.width}", lost, "", "this plan")
    table = Table.of("advisers", shaped, shape=named_shape)
    opinions = (said("plan.opinion", advice) for advice in plan.advice if advice not in shaped)
    return (
        Section.of(*_depths(plan), title="Depths", is_why=True),
        Section.of(*_repairs(plan), title="Other inputs for the same budget", is_why=True),
        Section.of(replace(table, rows=(ours, *table.rows)), is_why=True),
        Section.of(*opinions, title="Advice that names no shape", is_why=True),
        Section.of(*evidence_against(), title="What speaks against this", is_why=True),
        Section.of(*_training(plan), title="Training", is_why=True),
        Section.of(depth_figure(plan), title="Figures", is_detail=True),
    )


def confidence(plan: Plan) -> Iterator[str]:
    """How sure the depth is, what to know of it, and what it rests on."""
    basis, (low, high) = plan.basis, plan.depth_range
    yield said("plan.regret", plan.regret)
    if plan.request.budget.kind not in ("params", "block_params"):  # what such a budget asks for
        yield total_words(plan)
    if low < high:
        yield said("plan.range", plan)
    elif plan.regret.expected > plan.regret.close:
        yield said("plan.unsure", plan.regret)
    if plan.costs.tokens_per_param >= plan.request.tokens_per_param:  # else a note says more
        yield said("plan.tokens", plan.costs)
    yield from (f"Note: {warning}." for warning in plan.warnings)
    where = f"other {basis.family} data" if basis.family else "other data of all kinds"
    yield said("plan.basis", basis, where="your data" if basis.source == "ladder" else where)


def total_words(plan: Plan) -> str:
    """How large the network is, also beside its budget where that is of parameters."""
    budget, beside = plan.request.budget, ""
    wanted = budget.amount if isinstance(budget, Budget) and budget.kind == "params" else None
    if wanted is not None and abs(plan.params.total / wanted - 1) >= NOTABLE:
        more = plan.params.total / wanted - 1
        beside = f" ({100 * abs(more):.1f} % {'more' if more > 0 else 'fewer'})"
    output = "shared with the output" if plan.request.is_tied else "and output layer"
    return said("plan.size", plan.params, beside=beside, output=output)


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
    if request.data is not None and request.data.family not in (None, request.family):
        option += f" --family {request.family or ANY}"
    return option


def _depths(plan: Plan) -> Iterator[str]:
    """What more and less depth would do, the papers' law, and what limits the input."""
    outlook, request, shape = plan.best.outlook, plan.request, plan.shape
    (least, _), *_, (most, _) = outlook.regrets
    half, double = max(least, outlook.depth / 2), 2 * outlook.depth
    more = f", {double:.1f} with {100 * outlook.double_better:.0f} %" if double <= most else ""
    yield said("plan.best", outlook, half=half, double=more)
    if request.trained_tokens(plan.best.size) < plan.best.tokens <= request.tokens_per_param:
        yield f"{WARNINGS['few-tokens'].format(told=plan.best.tokens).capitalize()}."
    if plan.ideal.depth <= DEEPEST_TRAINED:  # else far beyond what it was fitted to
        yield said("plan.law", plan.ideal)
    yield said("plan.heads")
    yield _trained_on(plan.basis.kinds)
    if request.block == "llama":
        yield said("plan.llama", request.hidden_units(shape.depth, shape.width))
    if request.objective == "masked":
        yield said("plan.masked")
    if plan.bottleneck is not None:
        yield said("plan.bottleneck", **asdict(request.limit), width=shape.width)


def _trained_on(names: Sequence[str]) -> str:
    """The data of the atlas, and how many public results beside them, by names of series."""
    own = {kind.name for some in shipped_prior().runs.values() for kind in some}
    data = dict.fromkeys(name.partition(", ")[0] for name in names if name in own)
    named = ", ".join(data) if len(data) <= MANY_KINDS else f"{len(data)} data sets"
    public = len([name for name in names if name not in own])
    return said("plan.fitted", data=named, more=said("plan.public", public or None))


def named_shape(advice: Advice) -> str:
    """Depth and width, or a band of depths, or nothing."""
    if advice.depth is not None and advice.width is not None:
        return f"{advice.depth:,.1f} x {advice.width:,.0f}"
    if advice.depths is None:
        return ""
    low, high = (max(1, round(depth)) for depth in advice.depths)  # no network has none
    return said("plan.band", f"{low:,} to " if low < high else "", high)


def _repairs(plan: Plan) -> Iterator[str]:
    """Each with its command on a line of its own, so that it can be copied whole."""
    for repair in plan.repairs:
        yield said("plan.repair", repair, needs=f" ({repair.needs})" if repair.needs else "")
        yield Command(repair.command)


def _training(plan: Plan) -> Iterator[str]:
    costs, usual, context = plan.costs, plan.request.tokens_per_param, plan.request.context
    each = f"{costs.tokens_per_param:.3g} per parameter"
    if costs.tokens_per_param < usual:
        each = said("plan.epochs", EPOCHS, each=each, usual=usual)
    yield said("plan.costs", costs, each=each)
    yield said("plan.memory", costs.memory, context=context)
    outside = "" if costs.start.in_range else "; this one or its training is larger"
    yield said("plan.start", costs.start, outside=outside)


def depth_figure(plan: Plan, before: DepthOutlook | None = None) -> Figure:
    """What each depth is expected to lose, also `before` anything was measured on the data."""
    named = (f"{each.name} {named_shape(each)}" for each in plan.advice if each.depth is not None)
    described = said("plan.figure", plan.shape, named="; ".join(named))
    return Figure.of("depths", described, plan, before)


def theory_figure(plan: Plan) -> Figure:
    """Bounds on what more depth can add, for those who ask for theory."""
    request, shape = plan.request, plan.shape
    network = Shape(depth=shape.depth, width=shape.width, heads=shape.heads)
    if request.patch is None:
        network = replace(network, vocab=request.input_dimensions, rank=request.rank)
    elif request.limit.limit < shape.width:
        network = replace(network, rank=request.limit.limit)
    return bounds_figure(network)
