"""The sentences of an advice: the same on its page, in the terminal and in JSON."""

import math
from collections import Counter
from collections.abc import Iterator

from archfit.advise.check import CheckRuns
from archfit.advise.design import HEADS, untested, width_at
from archfit.advise.verdict import Claim, RankedResult, Verdict
from archfit.fit.comparisons import CellDifference
from archfit.plan.planner import Plan
from archfit.plan.shapes import RoundedShape
from archfit.report.plan_document import NO_REPAIR, bottleneck_sentence, effect_sentence

UNCHECKED = "Not checked on your data: add --check, which trains small networks for --minutes 10."
BITS = "bits per byte"
RECOMMENDED = "recommended network"


def answer(plan: Plan) -> str:
    """The shape in a sentence; where the plan leads with a repair, with that."""
    if plan.leads_with_repairs:
        repair = plan.repairs[0]
        return f"{_capital(repair.change)}; then {_shape(repair.shape, repair.params.total)}."
    return f"{_capital(_shape(plan.shape, plan.params.total))}."


def reasons(plan: Plan) -> list[str]:
    """Why: the bottleneck, what to do without a repair, and what is expected."""
    found = [bottleneck_sentence(plan)]
    if plan.leads_with_repairs:
        found.append(f"Without that repair: {_shape(plan.shape, plan.params.total)}.")
    elif plan.bottleneck and not plan.repairs:
        found.append(NO_REPAIR)
    return [*found, f"Expected: {effect_sentence(plan)}."]


def headline(plan: Plan, verdict: Verdict | None) -> str:
    """How sure we are, in a few words; a repair that helps is worth more of them."""
    if verdict is None:
        return "Not checked on your data"
    words = {
        "held": "The advice held on your data",
        "refuted": "The advice did not hold on your data",
        "undecided": "The check on your data is undecided",
    }[verdict.status]
    if not verdict.is_about_the_advice:
        words = "The check could not test what is advised"
    if verdict.binds is False:
        words = "The check was too small to test the bottleneck"
    best = verdict.best
    found = None if best.against is None else best.against.estimate
    is_repaired = best.network.network.role == "repaired" and not plan.leads_with_repairs
    if not is_repaired or found is None or not found.is_below(0):
        return words
    return f"{words}, but {best.words} is {-(found.value or 0):.2f} {BITS} better"


def check_sentences(plan: Plan, runs: CheckRuns, verdict: Verdict) -> list[str]:
    """What became of each claim, which network was best, and at which size."""
    claims = map(_claim, verdict.claims)
    return [*claims, _best(plan, runs, verdict), _scale(plan, runs, verdict)]


def _claim(claim: Claim) -> str:
    more = ""
    if claim.status == "undecided":
        seeds = claim.seeds_needed
        more = f" (about {seeds} seeds would tell: --seeds {seeds})" if seeds else " (a tie)"
    return f"{_capital(claim.status)}{more}: {claim.says}."


def _best(plan: Plan, runs: CheckRuns, verdict: Verdict) -> str:
    best = verdict.best
    # Where the plan leads with a repair, that is what it recommends before all.
    which = "network recommended without repair" if plan.leads_with_repairs else RECOMMENDED
    bits = f"{best.cell.bits_per_byte:.4f} {BITS}"
    if best.against is None:
        second = verdict.results[1]
        return (
            f"The {which} was the best with {bits}; the next, {second.words}, is "
            f"{_difference(second.against)}."
        )
    return (
        f"The best was {best.words} with {bits}, {_difference(best.against)} than the {which}. "
        f"At the plan's size that is {counterpart(runs, best)}."
    )


def _difference(found: CellDifference | None) -> str:
    assert found is not None
    bits, low, high = (number or 0.0 for number in found.estimate.row().values())
    word = "better" if bits < 0 else "worse"
    ends = sorted((abs(low), abs(high)))
    between = (
        f"{ends[0]:.4f} to {ends[1]:.4f}"
        if not found.estimate.contains(0)
        else f"{low:+.4f} to {high:+.4f}, so perhaps not at all"
    )
    share = abs(bits) / found.second.bits_per_byte  # what is sure may be small
    size = f"{abs(bits):.4f} ({share:.1%})"
    return f"{size} {word} (90 %: {between}; {found.seeds} seeds)"


def counterpart(runs: CheckRuns, result: RankedResult) -> str:
    """About the depth and width of a network of the check at the plan's size."""
    network = result.network.network
    blocks = network.block_params / runs.design.share
    return f"about {network.planned_depth} x {width_at(network.planned_depth, blocks):,}"


def _scale(plan: Plan, runs: CheckRuns, verdict: Verdict) -> str:
    design = runs.design
    reference = next(result for result in verdict.results if result.against is None)
    shape, recipe = reference.cell.architecture, reference.cell.recipe
    tokens = recipe.steps * recipe.batch_sequences * shape.context
    size = (
        "the plan's size"
        if math.isclose(design.share, 1.0)
        else f"{design.share:.2%} of the plan's blocks, every network at its own ratio of width to "
        "depth"
    )
    finished = sum(record.status == "finished" for record in runs.records)
    return (
        f"Checked with {shape.params:,} parameters ({size}), {HEADS} heads, {shape.context} "
        f"positions and {tokens:,} training tokens, {finished} runs; the plan is for "
        f"{plan.params.total:,} parameters."
    )


def limits_of(plan: Plan, runs: CheckRuns, verdict: Verdict) -> Iterator[str]:
    """What the check does not say."""
    if verdict.binds is False:
        assert plan.bottleneck is not None
        yield (
            f"At this size even the text shape is no wider than {plan.bottleneck.limit:,}, so that "
            f"the {plan.bottleneck.kind} does not bind and the check says nothing about the "
            "bottleneck; more --minutes, or a GPU, allow larger networks."
        )
    if any(cell.network.patch for cell in runs.cells):
        yield (
            "Networks that read several tokens at a position also predict them at once, which "
            "costs them bits that a vocabulary of such groups does not lose."
        )
    if any(cell.network.role == "repaired" and not cell.network.patch for cell in runs.cells):
        yield (
            "Networks with a larger vocabulary have larger tables, and see more bytes in as many "
            "positions; both are part of what the repair does here."
        )
    diverged = Counter(
        f"{planned.network.name} ({planned.cell.options.depth} x {planned.cell.options.width})"
        for planned in runs.cells
        for _ in runs.of(planned, "diverged")
    )
    if diverged:
        counts = ", ".join(f"{count} of {name}" for name, count in diverged.items())
        yield f"Runs that diverged are in no mean, which flatters their networks: {counts}."
    for kind in untested(plan):
        yield f"Not checked: more {kind}, which only the source itself could give."
    for name, why in runs.left_out.items():
        yield f"Not checked: {name} ({why})."
    if runs.failures:
        first = next(iter(runs.failures.values()))
        yield f"{len(runs.failures)} runs failed, the first because {first}."


def _shape(shape: RoundedShape, params: int) -> str:
    heads = "head" if shape.heads == 1 else "heads"
    layers = "layer" if shape.depth == 1 else "layers"
    return (
        f"{shape.depth} {layers} of width {shape.width} with {shape.heads} {heads} of "
        f"{shape.head_dim}, {params:,} parameters"
    )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
