"""Specs and records: JSON there and back, refusals, and the hash that names a run."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from archfit.spec import (
    Evaluation,
    Factorised,
    FullContext,
    Linear,
    Machine,
    Patches,
    Recipe,
    RunRecord,
    RunSpec,
    Tied,
    Timing,
    canonical_json,
    from_json,
    loads,
    standard_architecture,
    to_json,
)

RECIPE = Recipe(
    steps=100,
    batch_sequences=8,
    warmup_steps=10,
    peak_learning_rate=1.6e-3,
    learning_rate_rule="standard",
    weight_decay=0.01,
    beta1=0.9,
    beta2=0.999,
    gradient_clip=1.0,
    dropout=0.1,
    precision="float32",
    evaluation_steps=50,
    evaluation_sequences=64,
    full_context_tokens=0,
)
SPEC = RunSpec(
    architecture=standard_architecture(depth=2, width=12, heads=3, vocab=50, context=16),
    data_hash="0123456789abcdef" * 4,
    recipe=RECIPE,
    seed=7,
)
UNUSUAL = replace(
    SPEC,
    architecture=replace(
        SPEC.architecture,
        input=Patches(vocab=4, size=3, encoding="one-hot"),
        embedding=Factorised(inner=99),
        head=Tied(),
    ),
)
ANALYSED = replace(SPEC.architecture, attention=Linear(residual=True, causal=True), feed_forward=0)
RECORD = RunRecord(
    spec=UNUSUAL,
    status="finished",
    diverged_at_step=None,
    evaluations=(
        Evaluation(
            step=100,
            training_nats_per_token=1.25,
            heldout_nats_per_token=1.5,
            heldout_bits_per_byte=0.5,
        ),
    ),
    full_context=FullContext(tokens=30, heldout_nats_per_token=1.4, heldout_bits_per_byte=0.4),
    timing=Timing(training_seconds=2.0, tokens_per_second=1e4, flop_utilisation=None),
    machine=Machine(
        device="cpu",
        devices=1,
        micro_batch_sequences=8,
        archfit="0.1.0",
        python="3.11",
        torch="2.13",
    ),
)


@pytest.mark.parametrize("spec", [SPEC, UNUSUAL, replace(SPEC, architecture=ANALYSED)])
def test_a_spec_survives_json(spec: RunSpec) -> None:
    assert loads(RunSpec, json.dumps(to_json(spec))) == spec


def test_a_record_survives_json() -> None:
    assert loads(RunRecord, canonical_json(RECORD)) == RECORD


def test_the_hash_ignores_the_order_of_keys() -> None:
    document = to_json(SPEC)
    assert isinstance(document, dict)
    backwards = dict(reversed(document.items()))
    assert list(backwards) != list(document)
    assert from_json(RunSpec, backwards).hash == SPEC.hash


def test_the_hash_takes_a_whole_float_for_the_integer_it_equals() -> None:
    written_as_integer = replace(SPEC, recipe=replace(RECIPE, gradient_clip=1))
    assert written_as_integer == SPEC
    assert written_as_integer.hash == SPEC.hash


def test_the_hash_is_the_same_in_every_release() -> None:
    """A changed hash would orphan every finished run, so its value is written down here."""
    assert SPEC.hash == "e9c5dca1652e6f7a0477be88052cd324632ff0b9c16aefed496c889d9ba03569"
    assert SPEC.name == "e9c5dca1652e6f7a"


def test_the_hash_is_the_same_in_every_process() -> None:
    program = f"from archfit.spec import *; print(loads(RunSpec, {canonical_json(SPEC)!r}).hash)"
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert hashes == {SPEC.hash}


def test_every_field_changes_the_hash() -> None:
    changed = [
        replace(SPEC, seed=8),
        replace(SPEC, data_hash="f" * 64),
        replace(SPEC, recipe=replace(RECIPE, dropout=0.2)),
        replace(SPEC, architecture=replace(SPEC.architecture, embedding=Factorised(inner=12))),
        replace(SPEC, architecture=ANALYSED),
        replace(
            SPEC, architecture=replace(ANALYSED, attention=Linear(residual=False, causal=True))
        ),
        UNUSUAL,
    ]
    assert len({spec.hash for spec in [SPEC, *changed]}) == 8


def test_an_unmasked_network_is_not_trained_to_predict_what_it_sees() -> None:
    unmasked = replace(ANALYSED, attention=Linear(residual=True, causal=False))
    with pytest.raises(ValueError, match="sees the token that it should predict"):
        replace(SPEC, architecture=unmasked)


def test_a_flag_is_true_or_false_and_no_number() -> None:
    document = to_json(replace(SPEC, architecture=ANALYSED))
    assert isinstance(document, dict)
    document["architecture"]["attention"]["residual"] = 1
    with pytest.raises(ValueError, match="residual is 1, not true or false"):
        from_json(RunSpec, document)


def _changed(**changes: object) -> dict[str, object]:
    document = to_json(SPEC)
    assert isinstance(document, dict)
    return document | changes


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (_changed(colour="red"), "RunSpec has the unknown key 'colour'"),
        ({"seed": 1}, "RunSpec lacks architecture, data_hash, recipe"),
        (_changed(seed="7"), 'RunSpec.seed is "7", not a whole number'),
        (_changed(seed=True), "RunSpec.seed is true, not a whole number"),
        (_changed(seed=1.0), "RunSpec.seed is 1.0, not a whole number"),
        (_changed(seed=-1), "seed=-1 is below 0"),
        (_changed(data_hash="abc"), "take it from the data.json"),
        (_changed(architecture=[]), "RunSpec.architecture is \\[\\], not an object"),
        ([], "RunSpec is \\[\\], not an object"),
    ],
)
def test_a_document_that_is_no_spec_is_refused(document: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        from_json(RunSpec, document)


def test_an_unknown_kind_of_table_is_told_the_known_ones() -> None:
    document = to_json(SPEC)
    assert isinstance(document, dict)
    document["architecture"]["head"] = {"kind": "sparse"}
    with pytest.raises(ValueError, match=r"architecture.head has no known kind; use one of full"):
        from_json(RunSpec, document)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "nested too deeply|not JSON"),
        ('{"seed": NaN}', "NaN is no JSON number"),
        ('{"seed": 1, "seed": 2}', "the key 'seed' stands twice"),
    ],
)
def test_a_text_that_is_no_json_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        loads(RunSpec, text)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"warmup_steps": 101}, "never reached; use at most 100"),
        ({"dropout": 1.0}, "dropout=1.0 is not in 0..0.95; the nearest is 0.95"),
        ({"peak_learning_rate": float("nan")}, "peak_learning_rate=nan is not in"),
        ({"dropout": -0.5}, "the nearest is 0$"),
        ({"peak_learning_rate": 10**400}, "is not in 0..10; the nearest is 10"),
        ({"beta1": 1.0}, "beta1=1.0 is not in"),
        ({"beta2": -0.1}, "beta2=-0.1 is not in"),
        ({"precision": "float16"}, "use one of float32, bfloat16"),
        ({"steps": 0}, "steps=0 is below 1"),
    ],
)
def test_a_recipe_that_cannot_run_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(RECIPE, **change)  # type: ignore[arg-type]  # wrong on purpose


def test_records_are_the_same_result_on_another_machine() -> None:
    elsewhere = replace(
        RECORD,
        timing=replace(RECORD.timing, training_seconds=99.0),
        machine=replace(RECORD.machine, device="cuda"),
    )
    assert elsewhere != RECORD
    assert RECORD.same_result(elsewhere)
    assert not RECORD.same_result(replace(elsewhere, spec=SPEC))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"status": "diverged"}, "a diverged run names its step"),
        ({"diverged_at_step": 5}, "a diverged run names its step"),
        ({"evaluations": ()}, "has no evaluations"),
        ({"evaluations": RECORD.evaluations * 2}, "put each once, in order"),
        (
            {"evaluations": (replace(RECORD.evaluations[0], step=101),)},
            "step=101 is not in 0..100",
        ),
        ({"status": "diverged", "diverged_at_step": -5}, "step=-5 is not in 0..100"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(
    change: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(RECORD, **change)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"step": -1}, "step=-1 is below 0"),
        ({"training_nats_per_token": -0.1}, "training_nats_per_token=-0.1 is not in"),
        ({"heldout_nats_per_token": float("nan")}, "heldout_nats_per_token=nan is not in"),
        ({"heldout_bits_per_byte": 1e7}, "heldout_bits_per_byte=10000000.0 is not in"),
    ],
)
def test_losses_that_none_can_have_are_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(RECORD.evaluations[0], **change)  # type: ignore[arg-type]  # wrong on purpose


def test_training_tokens_and_flops_are_counted_from_the_source() -> None:
    assert SPEC.training_tokens == 100 * 8 * 16
    assert UNUSUAL.training_tokens == 100 * 8 * 16 * 3
    assert SPEC.training_flops == SPEC.training_tokens * SPEC.architecture.training_flops_per_token


def test_zero_has_one_hash_whatever_its_sign() -> None:
    plus = replace(SPEC, recipe=replace(RECIPE, weight_decay=0.0))
    minus = replace(SPEC, recipe=replace(RECIPE, weight_decay=-0.0))
    assert plus == minus
    assert plus.hash == minus.hash


@pytest.mark.parametrize("name", ["architecture", "recipe", "data_hash"])
def test_a_spec_of_other_parts_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=5 is no "):
        replace(SPEC, **{name: 5})  # type: ignore[arg-type]  # that is the point


def test_times_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="training_seconds=nan"):
        replace(RECORD.timing, training_seconds=float("nan"))
    with pytest.raises(ValueError, match="tokens_per_second=-1"):
        replace(RECORD.timing, tokens_per_second=-1)


def test_a_loss_over_one_token_and_up_to_a_million_nats_is_one() -> None:
    FullContext(tokens=1, heldout_nats_per_token=1e6, heldout_bits_per_byte=1e6)
    for name in ("heldout_nats_per_token", "heldout_bits_per_byte"):
        losses = {"heldout_nats_per_token": 1.0, "heldout_bits_per_byte": 1.0} | {name: 1.1e6}
        with pytest.raises(ValueError, match=rf"{name}=1100000.0 is not in 0..1e\+06"):
            FullContext(tokens=1, **losses)
