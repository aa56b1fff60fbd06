"""A plan as a document: what comes first, what is for those who ask why, and keys for programs."""

import json
import re
import shlex
from dataclasses import replace

import pytest

from archfit.advise.budgets import Budget, TrainingMinutes, known_speed
from archfit.advise.plan_request import PlanOptions
from archfit.advise.planner import Plan, make_plan
from archfit.report.document import Command, Document
from archfit.report.plan_document import plan_document, total_words
from archfit.report.terminal import MORE, text_of
from archfit.spec.sizes import parse_size
from tests_plans import question

MINUTES = TrainingMinutes(minutes=30, speed=known_speed("h200"), gpu="h200", tokens_per_param=20)


def planned(budget: Budget | int = 10**8, vocab: int = 257) -> Plan:
    return make_plan(question(budget, vocab=vocab))


def commands(document: Document) -> list[str]:
    return [
        line for part in document.sections for line in part.sentences if isinstance(line, Command)
    ]


def test_the_answer_is_the_shape_and_how_sure_it_is() -> None:
    plan = planned()
    lines = text_of(plan_document(plan), why=False).splitlines()
    shape, regret = plan.shape, plan.regret
    assert lines[0].startswith(
        f"{shape.depth} layers of width {shape.width}, {shape.heads} heads of {shape.head_dim} for "
    )
    said = " ".join(" ".join(lines).split())
    size = f"{plan.params.total:,} parameters, {plan.params.embedding:,} in embeddings"
    assert size in text_of(plan_document(plan), why=True)
    low, high = plan.depth_range
    assert f"{low} to {high} layers: more likely than not within" in said
    assert f"About {regret.expected:.3f} {regret.unit} worse than the best depth" in said
    assert f"(90 %: at most {regret.at_most:.3f})." in said
    assert f"Based on {plan.basis.runs:,} networks of up to " in said


def test_a_plan_of_one_layer_is_told_of_in_the_singular() -> None:
    plan = make_plan(question(10**5, vocab=33, max_depth=1))
    text = text_of(plan_document(plan), why=False)
    assert text.startswith("1 layer of width ")
    assert "1 to 1" not in text
    assert not re.search(r"(?<![\d.])1 layers", text)


def test_why_is_told_to_those_who_ask() -> None:
    document = plan_document(planned(vocab=33))
    short, long = (text_of(document, why=why).splitlines() for why in (False, True))
    titles = ("Depths", "Other inputs for the same budget", "What speaks against this")
    for title in (*titles, "What others advise", "Training"):
        assert not any(line.startswith(title) for line in short)
        assert any(line.startswith(title) for line in long)
    assert set(short) - {MORE} < set(long)


def test_notes_that_have_no_room_beside_the_answer_are_for_those_who_ask_why() -> None:
    notes = tuple(
        f"note {number} is about as long as one line of text has room for" for number in range(9)
    )
    document = plan_document(replace(planned(), warnings=notes))
    short, long = (text_of(document, why=why) for why in (False, True))
    shown = [note for note in notes if note in short]
    assert shown == list(notes[: len(shown)])
    assert 2 <= len(shown) < len(notes)
    assert "Next" in short
    assert all(long.count(note) == 1 for note in notes)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(kind="params", amount=10**7), "--params 10M "),
        (10**8, "--params "),  # blocks alone are no budget of an advice
        (MINUTES, "--minutes 30 --gpu h200 --minutes-to-measure 5"),
    ],
)
def test_the_command_that_measures_has_a_budget_that_advise_takes(
    budget: Budget | int, words: str
) -> None:
    plan = planned(budget)
    command = next(line for line in commands(plan_document(plan)) if " advise " in line)
    assert words in command
    given = shlex.split(command.partition("#")[0])[3:]
    assert "--block-params" not in given
    if not isinstance(budget, TrainingMinutes):
        assert parse_size(given[1]) == pytest.approx(plan.params.total, rel=0.05)


def test_the_command_that_measures_asks_the_same_and_only_where_measuring_helps() -> None:
    options = {"vocab": 257, "block": "llama", "context": 2048, "tokens_per_param": 40.0}
    for params, is_offered in ((10_500_000, True), (7 * 10**9, False)):
        plan = make_plan(PlanOptions(params=params, **options).request())  # type: ignore[arg-type]
        lines = [line for line in commands(plan_document(plan)) if " advise " in line]
        words = "--params 10.5M --block llama --context 2048 --tokens-per-param 40  #"
        assert [words in line for line in lines] == [True] * is_offered


def test_a_size_that_misses_the_budget_is_said_with_its_distance() -> None:
    plans = [
        (millions, planned(Budget(kind="params", amount=millions * 10**6), vocab=50257))
        for millions in (60, 90, 125, 180, 250, 350)
    ]
    misses = [(plan.params.total / (millions * 1e6) - 1, plan) for millions, plan in plans]
    missed, plan = next(miss for miss in misses if abs(miss[0]) >= 0.01)
    beside = f"{abs(100 * missed):.1f} % {'more' if missed > 0 else 'fewer'}"
    assert f"{plan.params.total:,} parameters ({beside}), " in total_words(plan)
    exact = Budget(kind="params", amount=int(plan.params.total))
    near = replace(plan, request=replace(plan.request, budget=exact))
    assert f"{plan.params.total:,} parameters, " in total_words(near)


def test_patches_are_neither_measured_nor_exported() -> None:
    plan = make_plan(question(10**8, vocab=None, patch=(16, 16, 3)))
    assert not [line for line in commands(plan_document(plan)) if re.search("advise|export", line)]


def test_every_repair_has_its_command_on_a_line_of_its_own() -> None:
    document = plan_document(planned(vocab=33))
    (repairs,) = [part for part in document.sections if part.title.startswith("Other inputs")]
    are_commands = [isinstance(line, Command) for line in repairs.sentences]
    assert are_commands == [False, True] * (len(are_commands) // 2)
    assert len(are_commands) >= 4


def test_the_document_is_json_and_has_the_keys_of_the_contract() -> None:
    plan = planned(vocab=33)
    document = json.loads(json.dumps(plan_document(plan).data))
    assert document.keys() >= {
        "question", "recommended", "depth_range", "expected_regret", "half_depth_better",
        "double_depth_better", "basis", "ideal", "bottleneck", "repairs", "advisers",
        "evidence_against", "export", "training", "memory_bytes", "warnings",
    }  # fmt: skip
    recommended = document["recommended"]
    assert recommended.keys() >= {
        "depth", "width", "heads", "head_dim", "vocab", "embedding_rank", "params",
    }  # fmt: skip
    assert (recommended["depth"], recommended["vocab"]) == (plan.shape.depth, 33)
    assert recommended["aspect_ratio"] == round(recommended["width"] / recommended["depth"], 2)
    assert recommended["params"].keys() >= {"blocks", "embedding", "total"}
    low, high = document["depth_range"]
    assert 1 <= low <= recommended["depth"] <= high
    regret = document["expected_regret"]
    assert regret.keys() == {"value", "at_most_90", "unit"}
    assert 0 <= regret["value"] <= regret["at_most_90"]
    assert document["basis"].keys() == {"source", "family", "kinds", "runs", "largest"}
    assert document["basis"]["source"] == "prior"
    assert document["bottleneck"] == {"kind": "vocabulary", "limit": 33}
    for advice in document["advisers"]:
        assert advice.keys() >= {"name", "depth", "width", "source", "in_range", "regret"}


def test_the_unit_is_that_of_what_is_known_of_the_tokens() -> None:
    """Of a token of a large vocabulary nobody knows the bytes."""
    units = [
        make_plan(PlanOptions(params=10**8, vocab=vocab).request()).regret.unit
        for vocab in (257, 50257)
    ]
    assert units == ["bits per byte", "nats per token"]
