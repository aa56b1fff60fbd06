"""An advice as a document: the answer, how sure it is, what to do next, and what was measured."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial

from archfit.advise.advice import Advice
from archfit.fit.atlas import size_words
from archfit.report.document import Command, Document, Figure, Section, Table, loaded
from archfit.report.plan_document import (
    confidence,
    plan_document,
    plan_figures,
    shape_words,
    why_sections,
)

Json = dict[str, object]
ADVICE_KEYS = ("recommended", "depth_range", "expected_regret", "basis", "warnings")


@dataclass(frozen=True, kw_only=True, slots=True)
class AdviceOrigin:
    """How an advice was made, for those who want to make it again."""

    name: str  # as people call its source
    command: str  # what was typed
    version: str


def advice_document(advice: Advice, origin: AdviceOrigin) -> Document:
    """What `archfit advise` says and its report holds."""
    plan = advice.plan
    made = (
        f"Made by {origin.version}. Beside this page each chart lies as NAME.svg and .png, the "
        "config and tokenizer in model, the runs in ladder."
    )
    why = [replace(part, is_why=True) for part in why_sections(plan) if not part.figures]
    return Document(
        title=f"Which Transformer fits {origin.name}?",
        headline=f"{shape_words(plan)}, {vocabulary_words(advice)} for {plan.request.budget}",
        sections=(
            Section(sentences=tuple(_answer(advice))),
            Section(title="Figures", figures=tuple(_figures(advice)), is_detail=True),
            Section(title="Measured on your data", tables=tuple(_tables(advice)), is_why=True),
            *why,
            Section(tables=(_data_table(advice),), is_detail=True),
            Section(
                title="How to make it again",
                sentences=(Command(origin.command), made),
                is_detail=True,
            ),
        ),
        data=_advice_json(advice),
    )


def vocabulary_words(advice: Advice) -> str:
    """The vocabulary, as its data say it."""
    name, rows = str(advice.data.description["vocabulary"]), advice.data.vocab
    return f"{rows:,} tokens ({'BPE' if name == 'bpe' else name})"


def _answer(advice: Advice) -> Iterator[str]:
    plan = advice.plan
    yield from (f"Note: {warning}." for warning in plan.warnings)
    yield from confidence(plan)
    if len(advice.trials) > 1:
        best, other = advice.trials[:2]
        yield (
            f"Of {len(advice.trials)} vocabularies {best.label} was best: {best.bits:.3f} bits per "
            f"byte at {size_words(round(best.params, -3))}, {other.label} {other.bits:.3f}."
        )
    second = advice.runner_up
    if second.lost > 0:
        layers = "layer" if second.depth == 1 else "layers"
        yield f"{second.depth} {layers} would lose about {second.lost:.3f} bits per byte more."
    if not advice.runs:
        yield "No depth was measured on your data; more --minutes-to-measure do that."
    yield from (f"Some runs failed: {why}" for why in advice.failures)


def _figures(advice: Advice) -> Iterator[Figure]:
    depths, bounds = plan_figures(advice.plan)
    if advice.runs:
        sizes = sorted({run.size for run in advice.runs})
        yield Figure(
            name="ladder",
            title="What was measured: depths at each size",
            caption="Bits per byte on held-out data, a line a size; lower is better.",
            description="Networks on your data: "
            + "; ".join(f"{r.depth} layers of {r.params:,}: {r.bits:.3f}" for r in advice.runs)
            + ".",
            chart=partial(loaded("report.charts.plan").ladder_chart, advice.runs, sizes),
        )
    yield depths
    yield bounds


def _tables(advice: Advice) -> Iterator[Table]:
    yield Table.of(
        "Vocabularies at equal size and equal operations",
        advice.trials,
        {
            "vocabulary": lambda trial: trial.label,
            "tokens": lambda trial: f"{trial.vocab:,}",
            "layers": lambda trial: str(trial.depth),
            "parameters": lambda trial: f"{trial.params:,}",
            "bits per byte": lambda trial: f"{trial.bits:.4f}",
        },
    )
    yield Table.of(
        "Depths",
        sorted(advice.runs, key=lambda run: (run.size, run.depth, run.seed)),
        {
            "size": lambda run: size_words(run.size),
            "layers": lambda run: str(run.depth),
            "parameters": lambda run: f"{run.params:,}",
            "seed": lambda run: str(run.seed),
            "bits per byte": lambda run: f"{run.bits:.4f}",
        },
    )


def _data_table(advice: Advice) -> Table:
    described = advice.data.description
    return Table(
        title="The data",
        columns=("quantity", "value"),
        rows=(
            ("kind", f"{described['kind']} as {described['vocabulary']}"),
            ("family", advice.plan.request.family or "none that the atlas has"),
            ("documents", f"{described['documents']:,}"),
            ("tokens", f"{described['tokens']:,}"),
            ("vocabulary", f"{described['vocab']:,}, of which {described['used_vocab']:,} used"),
            ("bytes a token", f"{described['bytes_per_token']:.3f}"),
            ("unigram entropy", f"{described['unigram_entropy_bits']:.3f} bits a token"),
            ("SHA-256", str(described["data_hash"])),
        ),
    )


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
