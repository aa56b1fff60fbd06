"""An advice as a document: the answer, how sure it is, what to do next, and what was measured."""

from collections.abc import Iterator
from dataclasses import asdict, replace

from archfit.advise.advice import Advice
from archfit.advise.measure import least_tokens
from archfit.advise.prior import DepthOutlook, family_prior
from archfit.advise.shapes import best_shape
from archfit.fit.atlas import size_words
from archfit.report.document import (
    Command,
    Document,
    Figure,
    Section,
    Table,
    counted,
    facts,
    loaded,
)
from archfit.report.plan_document import (
    confidence,
    depth_figure,
    plan_document,
    shape_words,
    total_words,
    why_sections,
)

Json = dict[str, object]
ADVICE_KEYS = ("recommended", "depth_range", "expected_regret", "basis", "warnings")


def advice_document(advice: Advice, *, name: str, command: str, version: str) -> Document:
    """What `archfit advise` says and its report holds; `name` is what people call the source."""
    plan = advice.plan
    made = (
        f"Made by {version}. Beside this page each chart lies as NAME.svg and .png, the "
        "config and tokenizer in model, the runs in ladder."
    )
    return Document(
        title=f"Which Transformer fits {name}?",
        headline=f"{shape_words(plan)}, {vocabulary_words(advice)} for {plan.request.budget}",
        sections=(
            Section.of("", *_answer(advice)),
            Section.of("Why this depth", *_why(advice), is_why=True),
            Section.of("Measured on your data", *_tables(advice), is_why=True),
            *(replace(part, is_why=True) for part in why_sections(plan) if not part.figures),
            Section.of("", _data_table(advice), is_detail=True),
            Section.of("How to make it again", Command(command), made, is_detail=True),
        ),
        data=_advice_json(advice),
    )


def vocabulary_words(advice: Advice) -> str:
    """The vocabulary, as its data say it."""
    name, rows = str(advice.data.description["vocabulary"]), advice.data.vocab
    return f"{rows:,} tokens ({'BPE' if name == 'bpe' else name})"


def _answer(advice: Advice) -> Iterator[str]:
    yield from (f"Some runs failed: {why}" for why in advice.failures)
    sure, *notes = confidence(advice.plan)
    yield sure
    if not advice.runs:
        yield _unmeasured(advice)
    yield from notes
    if len(advice.trials) > 1:
        best, other = advice.trials[:2]
        rows = advice.data.vocab
        carried = f" Your budget carries {rows:,} tokens (not tried)." if rows > best.vocab else ""
        yield (
            f"{best.label} was the best of {len(advice.trials)} vocabularies: {best.bits:.3f} bits "
            f"per byte with {size_words(round(best.params, -3))} parameters, {other.label} "
            f"{other.bits:.3f}.{carried}"
        )
    second = advice.runner_up
    if second.lost > 0:
        yield f"{counted(second.depth, 'layer')}: about {second.lost:.3f} bits per byte worse."
    yield total_words(advice.plan)


def _unmeasured(advice: Advice) -> str:
    """That no depth was measured, and what would help: data or time."""
    nothing = "No depth was measured" if advice.trials else "Nothing was trained"
    bytes_each = float(str(advice.data.description["bytes_per_token"]))
    most = round(advice.data.train_tokens * max(1.0, bytes_each))  # of any vocabulary
    tokens, of = most, ""
    if advice.trials:
        tokens, of = advice.trials[0].train_tokens, f" of {advice.trials[0].label}"
    if tokens >= least_tokens():
        return f"{nothing} on your data; more --minutes-to-measure may do that."
    return (
        f"{nothing} on your data: {tokens:,} tokens{of} are too few ({least_tokens():,} are "
        "needed; more --minutes-to-measure do not help)."
    )


def _why(advice: Advice) -> Iterator[str | Figure]:
    """The prior, the ladder and what both decide, each as a sentence and a figure."""
    plan, runs = advice.plan, advice.runs
    before = best_shape(plan.request)
    yield f"Networks on other data say {_as_good(before.outlook)}."
    for size in sorted({run.size for run in runs}):
        own = [run for run in runs if run.size == size]
        best, depths = min(own, key=lambda run: run.bits), sorted({run.depth for run in own})
        yield (
            f"On your data, at {size_words(size)} parameters, {best.depth} was the best of "
            f"{', '.join(map(str, depths))} layers: {best.bits:.3f} bits per byte."
        )
    if runs:
        yield f"Together, at the size of your budget: {_as_good(plan.best.outlook)}."
        measured = (
            f"{counted(run.depth, 'layer')}, {run.params:,} parameters: {run.bits:.3f}"
            for run in runs
        )
        prior = family_prior(plan.request.family, plan.request.block)
        yield Figure.of(
            "ladder",
            f"Networks on your data: {'; '.join(measured)}.",
            lambda page: loaded("depth_charts").ladder_chart(runs, prior, page),
        )
    yield Figure.of(
        "prior",
        f"Best depths over size: before measuring {_as_good(before.outlook)} at your size, "
        f"now {_as_good(plan.best.outlook)}.",
        lambda page: loaded("depth_charts").prior_chart(plan, runs, page),
    )
    decision = depth_figure(plan, before.outlook if runs else None)
    dashed = " Dashed: the same before anything was measured on your data." if runs else ""
    yield replace(decision, title="The decision", caption=decision.caption + dashed)


def _as_good(outlook: DepthOutlook) -> str:
    """The best depth, and those about as good."""
    low, high = max(1, round(outlook.low)), round(outlook.high)
    return f"{outlook.depth:.1f} layers" + (
        f" ({low} to {high} about as good)" if low < high else ""
    )


def _tables(advice: Advice) -> Iterator[Table]:
    yield Table.of("trials", advice.trials)
    runs = sorted(advice.runs, key=lambda run: (run.size, run.depth, run.seed))
    yield Table.of("ladder", runs, size=lambda run: size_words(run.size))


def _data_table(advice: Advice) -> Table:
    family = {"family": advice.plan.request.family or "none that the atlas has"}
    rows = facts("advised_data", **{**advice.data.description, **family})
    return Table(title="The data", columns=("quantity", "value"), rows=tuple(rows))


def _advice_json(advice: Advice) -> Json:
    planned = plan_document(advice.plan).data
    assert isinstance(planned, dict)
    folder = str(advice.data.folder)
    return {
        "data": {**advice.data.description, "folder": folder},
        **{key: planned[key] for key in ADVICE_KEYS},
        "runner_up": asdict(advice.runner_up),
        "vocabularies": [asdict(trial) for trial in advice.trials],
        "ladder": [asdict(run) for run in advice.runs],
        "failures": list(advice.failures),
        "plan": planned,
    }
