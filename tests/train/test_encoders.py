"""Encoders: they learn what only a view to both sides shows; both blocks, stopped and gone on."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData
from archfit.data.sources import DataSettings
from archfit.spec import RunSpec
from archfit.spec.run_options import RunOptions
from archfit.train import Stopped, train
from tests_training import HERE, Recorder, record_of

LETTERS = 8


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    """Letters drawn evenly, each written twice: nothing but its twin tells a hidden letter."""
    folder, draws = tmp_path_factory.mktemp("twins"), np.random.default_rng(0)
    for name, count in (("train", 20_000), ("heldout", 2_000)):
        letters = (97 + draws.integers(0, LETTERS, count)).astype(np.uint8)
        (folder / name).write_bytes(np.repeat(letters, 2).tobytes())
    source = str(folder / "train"), folder / "data", DataSettings(kind="bytes")
    return prepare(*source, heldout=str(folder / "heldout")).data


def spec_of(data: PreparedData, **options: object) -> RunSpec:
    usual = {
        "precision": "float32", "depth": 2, "width": 32, "heads": 2, "context": 32, "steps": 250,
        "batch": 16, "learning_rate": "auto", "evaluation_sequences": 60, "evaluate_every": 125,
    }  # fmt: skip
    wanted = RunOptions(**(usual | options))  # type: ignore[arg-type]  # it checks
    return wanted.spec(vocab=data.vocab, data_hash=data.data_hash, seed=0)


@pytest.mark.parametrize("block", [pytest.param("gpt2", marks=pytest.mark.slow), "llama"])
def test_an_encoder_learns_from_the_letter_after(
    twins: PreparedData, tmp_path: Path, block: str
) -> None:
    sizes = {"context": 8, "batch": 64, "learning_rate": 0.01, "learning_rate_rule": "fan-in"}
    spec = spec_of(twins, objective="masked", block=block, **sizes)
    assert spec.architecture.input.vocab == twins.vocab + 1
    last = record_of(spec, twins, tmp_path).evaluations[-1].heldout_nats_per_token
    assert last < 0.3 * math.log(LETTERS)  # who sees only what stands before gets half at best


def test_a_decoder_cannot_learn_the_first_of_two_twins(twins: PreparedData, tmp_path: Path) -> None:
    """Which of two a letter is must be guessed, too, so half of ln 8 is out of reach."""
    spec = spec_of(twins, block="llama", batch=8, context=16, steps=150, learning_rate=0.01)
    last = record_of(spec, twins, tmp_path).evaluations[-1].heldout_nats_per_token
    assert 0.5 * math.log(LETTERS) < last < 0.75 * math.log(LETTERS)


@pytest.mark.parametrize(
    "options",
    [
        {"block": "llama", "heads": 4, "kv_heads": 2, "qk_norm": True, "head": "tied"},
        {"block": "llama", "objective": "masked"},
        {"objective": "masked", "learning_rate_rule": "completep", "learning_rate": 0.002},
        {"objective": "masked", "attention": "linear-residual", "learning_rate": 0.002},
    ],
)
def test_a_stopped_run_of_any_block_and_task_gives_the_record_of_an_undisturbed_one(
    twins: PreparedData, tmp_path: Path, options: dict[str, object]
) -> None:
    spec = spec_of(twins, steps=12, evaluate_every=5, dropout=0.1, **options)
    undisturbed = record_of(spec, twins, tmp_path / "whole")
    with pytest.raises(Stopped):
        train(spec, twins, tmp_path / "parts", HERE, Recorder(stop_after=7))
    again = Recorder()
    assert train(spec, twins, tmp_path / "parts", HERE, again).same_result(undisturbed)
    assert again.starts == [7]


def test_data_without_room_for_the_mask_token_are_refused(
    twins: PreparedData, tmp_path: Path
) -> None:
    spec = spec_of(twins, objective="masked")
    narrow = replace(spec.architecture, input=replace(spec.architecture.input, vocab=twins.vocab))
    with pytest.raises(ValueError, match=f"mask token counted; use vocab={twins.vocab + 1}"):
        record_of(replace(spec, architecture=narrow), twins, tmp_path)
