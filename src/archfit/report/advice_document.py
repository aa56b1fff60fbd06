"""An advice as a document: the answer, how sure it is, what to do next, and what was measured."""

from collections.abc import Iterator
from dataclasses import replace

from archfit.advise.advice import Advice
from archfit.advise.measure import least_tokens
from archfit.advise.prior import DepthOutlook, family_prior
from archfit.advise.shapes import best_shape
from archfit.report import plan_document
from archfit.report.document import Command, Document, Figure, Section, Table, facts, json_of, said
from archfit.report.page import version_line


def advice_document(advice: Advice, *, command: str) -> Document:
    """What `archfit advise` says and its report holds; `command` is what was typed."""
    plan, description = advice.plan, advice.data.description
    shape, budget = said("plan.shape", plan.shape), plan.request.budget
    word = str(description["vocabulary"]).replace("bpe", "BPE")
    word = "letters" if description["settings"].get("kmer") == 1 else word  # groups of one
    runs = sorted(advice.runs, key=lambda run: (run.size, run.depth, run.seed))
    family = {"family": plan.request.family or "none that the atlas has"}
    about = tuple(facts("advised_data", **{**description, **family}))
    data = Table(title="The data", columns=("quantity", "value"), rows=about)
    measured = Table.of("trials", advice.trials), Table.of("ladder", runs)
    again = Command(command), said("advice.made", version_line())
    planned = plan_document.plan_document(plan).data
    assert isinstance(planned, dict)
    source = {**description, "folder": str(advice.data.folder)}
    return Document(
        title=f"Which Transformer fits {advice.source.title}?",
        headline=said("advice.headline", advice.data, shape=shape, vocabulary=word, budget=budget),
        sections=(
            Section.of(*_answer(advice)),
            Section.of(*_why(advice), title="Why this depth", is_why=True),
            Section.of(*measured, title="Measured on your data", is_why=True),
            *(
                replace(part, is_why=True)
                for part in plan_document.why_sections(plan)
                if not part.figures
            ),
            Section.of(data, is_detail=True),
            Section.of(*again, title="How to make it again", is_detail=True),
        ),
        data=json_of("advice", advice, **planned, planned=planned, description=source),
    )


def _answer(advice: Advice) -> Iterator[str]:
    yield from (f"Some runs failed: {why}" for why in advice.failures)
    sure, *notes = plan_document.confidence(advice.plan)
    yield sure
    if not advice.runs:
        yield _unmeasured(advice)
    yield from notes
    if len(advice.trials) > 1:
        best, other = advice.trials[:2]
        rows = advice.data.vocab
        carried = said("advice.carried", rows) if rows > best.vocab else ""
        words = {"number": len(advice.trials), "size": round(best.params, -3), "carried": carried}
        how = "trials" if best.bits <= other.bits else "given"
        yield said(f"advice.{how}", best=best, other=other, **words)
    if advice.runner_up.lost > 0:
        yield said("advice.second", advice.runner_up)
    yield plan_document.total_words(advice.plan)


def _unmeasured(advice: Advice) -> str:
    """That no depth was measured, and what would help: data or time."""
    nothing = "No depth was measured" if advice.trials else "Nothing was trained"
    tokens, of = advice.data.train_tokens, ""
    if advice.data.units == "bytes":  # which any vocabulary merges
        tokens, of = round(tokens * float(advice.data.description["bytes_per_token"])), " (bytes)"
    if advice.trials:
        tokens, of = advice.trials[0].train_tokens, f" of {advice.trials[0].label}"
    needed = "more-time" if tokens >= least_tokens() else "more-data"
    return said(f"advice.{needed}", nothing=nothing, tokens=tokens, of=of, least=least_tokens())


def _why(advice: Advice) -> Iterator[str | Figure]:
    """The prior, the ladder and what both decide, each as a sentence and a figure."""
    plan, runs = advice.plan, advice.runs
    prior = family_prior(plan.request.family, plan.request.block)
    outlook = best_shape(plan.request).outlook
    before, now = _as_good(outlook), _as_good(plan.best.outlook)
    yield f"Networks on other data say {before}."
    for size in sorted({run.size for run in runs}):
        own = [run for run in runs if run.size == size]
        depths = sorted({run.depth for run in own})
        yield said("advice.measured", min(own, key=lambda run: run.bits), depths=depths)
    if runs:
        yield f"Together, at the size of your budget: {now}."
        measured = "; ".join(said("advice.run", run) for run in runs)
        yield Figure.of("ladder", f"Networks on your data: {measured}.", runs, prior)
    yield Figure.of("prior", said("advice.prior", before=before, now=now), plan, runs)
    decision = plan_document.depth_figure(plan, outlook if runs else None)
    caption = decision.caption + (said("advice.dashed") if runs else "")
    yield replace(decision, title="The decision", caption=caption)


def _as_good(outlook: DepthOutlook) -> str:
    """The best depth, and those about as good."""
    low, high = max(1, round(outlook.low)), round(outlook.high)
    around = f" ({low} to {high} about as good)" if low < high else ""
    return f"{outlook.depth:.1f} layers{around}"
