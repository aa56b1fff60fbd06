"""Runs in this process: stopped, diverged, finished, and found finished."""

import contextlib
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from archfit.data.prepared import PreparedData
from archfit.spec import Factorised, Linear, Tied
from archfit.train import Stopped, Watchers, train, train_together
from archfit.train.step import Stepper
from tests_training import (
    HERE,
    Recorder,
    checkpoints,
    record_of,
    stored_record,
    tiny_spec,
)

EXPLODES = {"attention": Linear(residual=True, causal=True), "feed_forward_multiple": 0}


@pytest.mark.parametrize(
    "changes",
    [
        {"dropout": 0.2, "full_context_tokens": 20},
        {"head": Tied(), "embedding": Factorised(inner=3), "learning_rate_rule": "completep"},
    ],
)
def test_a_run_stopped_twice_gives_the_same_record(
    data: PreparedData, tmp_path: Path, changes: dict[str, object]
) -> None:
    spec = tiny_spec(data, **changes)
    expected = record_of(spec, data, tmp_path / "undisturbed")
    watch = Recorder()
    for stop in (3, 7):
        watch.stop_after = stop
        with pytest.raises(Stopped, match=f"stopped at step {stop}; the same command goes on"):
            train(spec, data, tmp_path, HERE, watch)
        assert checkpoints(tmp_path / spec.name)[-1] == f"step-{stop:09}"
    record = train(spec, data, tmp_path, HERE, watch)
    assert watch.starts == [0, 3, 7]
    assert record.same_result(expected)
    assert record == stored_record(tmp_path / spec.name)
    weights = [(out / spec.name / "model.safetensors").read_bytes() for out in two(tmp_path)]
    assert weights[0] == weights[1]


def two(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path, tmp_path / "undisturbed"


def test_a_finished_run_keeps_weights_record_log_and_spec(
    data: PreparedData, tmp_path: Path
) -> None:
    spec = tiny_spec(data)
    train(spec, data, tmp_path, replace(HERE, checkpoint_seconds=0.0), Watchers())
    names = {path.name for path in (tmp_path / spec.name).iterdir()}
    assert names == {".lock", "log.jsonl", "model.safetensors", "record.json", "spec.json"}
    mode = (tmp_path / spec.name / "model.safetensors").stat().st_mode
    assert mode == (tmp_path / spec.name / "record.json").stat().st_mode


def test_weights_are_not_kept_unless_asked_for(data: PreparedData, tmp_path: Path) -> None:
    spec = tiny_spec(data)
    train(spec, data, tmp_path, replace(HERE, keep_weights=False), Watchers())
    assert not (tmp_path / spec.name / "model.safetensors").exists()


def test_a_finished_run_returns_its_record_and_cleans_up(
    data: PreparedData, tmp_path: Path
) -> None:
    spec, watch = tiny_spec(data), Recorder()
    record = record_of(spec, data, tmp_path)
    (tmp_path / spec.name / "checkpoint" / "step-000000010").mkdir(parents=True)  # then killed
    assert train(spec, data, tmp_path, HERE, watch) == record
    assert watch.starts == []
    assert not (tmp_path / spec.name / "checkpoint").exists()


def test_a_run_that_another_process_finishes_first_is_not_trained_again(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, watch = tiny_spec(data), Recorder()
    record = record_of(spec, data, tmp_path / "other")

    @contextlib.contextmanager
    def held_after_the_other(folder: Path) -> Iterator[None]:
        shutil.copytree(tmp_path / "other" / spec.name, folder)
        yield

    monkeypatch.setattr("archfit.train.run_files.held", held_after_the_other)
    assert train(spec, data, tmp_path, HERE, watch) == record
    assert watch.starts == []


def test_who_is_stopped_before_the_long_evaluation_does_not_train_again(
    data: PreparedData, tmp_path: Path
) -> None:
    spec = tiny_spec(data, full_context_tokens=20, steps=12)  # evaluated at 5, 10 and 12
    record = record_of(spec, data, tmp_path / "undisturbed")
    assert [evaluation.step for evaluation in record.evaluations] == [5, 10, 12]
    with pytest.raises(Stopped, match="stopped at step 12"):
        train(spec, data, tmp_path, HERE, Recorder(stop_after=12))
    assert checkpoints(tmp_path / spec.name)[-1] == "step-000000012"
    watch = Recorder()
    assert train(spec, data, tmp_path, HERE, watch).same_result(record)
    assert (watch.starts, watch.losses) == ([12], [])


def test_a_network_that_explodes_has_diverged_at_one_step_however_often_it_was_stopped(
    data: PreparedData, tmp_path: Path
) -> None:
    spec = tiny_spec(data, **EXPLODES, peak_learning_rate=1.0, warmup_steps=8, steps=40)
    record = record_of(spec, data, tmp_path / "undisturbed")
    assert record.status == "diverged"
    step = record.diverged_at_step
    assert step is not None
    assert 1 < step < 40
    with pytest.raises(Stopped):
        train(spec, data, tmp_path, HERE, Recorder(stop_after=step - 1))
    assert record_of(spec, data, tmp_path).same_result(record)
    assert stored_record(tmp_path / spec.name).diverged_at_step == step


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), 2e5])
@pytest.mark.parametrize("step", [0, 7, 11])
def test_the_step_whose_loss_is_no_loss_is_named(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, loss: float
) -> None:
    honest = Stepper.__call__

    def broken(self: Stepper, at: int, tokens_BS: torch.Tensor) -> torch.Tensor:
        value = honest(self, at, tokens_BS)
        return torch.tensor(loss) if at == step else value

    monkeypatch.setattr(Stepper, "__call__", broken)
    record = record_of(tiny_spec(data), data, tmp_path)
    assert (record.status, record.diverged_at_step) == ("diverged", step)
    assert [evaluation.step for evaluation in record.evaluations] == [5, 10][: step // 5]


def test_a_held_out_loss_that_is_none_ends_the_run_too(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.train.run.heldout_loss", lambda *_: float("nan"))
    assert record_of(tiny_spec(data), data, tmp_path).diverged_at_step == 5


def test_the_largest_loss_that_is_none_still_fits_into_a_record(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.train.run.heldout_loss", lambda *_: 99_999.0)
    assert record_of(tiny_spec(data), data, tmp_path).status == "finished"


def test_wrong_data_for_the_second_run_stops_the_first_one(
    data: PreparedData, tmp_path: Path
) -> None:
    specs = [tiny_spec(data), replace(tiny_spec(data), data_hash="0" * 64)]
    with pytest.raises(ValueError, match="give the data that the spec was made for"):
        train_together(specs, data, tmp_path, HERE, [Watchers(), Watchers()])
    assert list(tmp_path.iterdir()) == []


def test_a_record_of_another_run_is_not_taken_for_this_one(
    data: PreparedData, tmp_path: Path
) -> None:
    spec, other = tiny_spec(data), replace(tiny_spec(data), seed=1)
    record_of(other, data, tmp_path)
    (tmp_path / other.name).rename(tmp_path / spec.name)
    with pytest.raises(ValueError, match=f"record.json is of another run, {other.name}; delete it"):
        record_of(spec, data, tmp_path)


def test_training_does_not_load_what_takes_longer_than_torch_itself(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch's own optimiser loads its compiler; every worker of a sweep would wait for that."""
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # who imports it fails
    monkeypatch.delitem(sys.modules, "torch.distributed.tensor", raising=False)
    record_of(tiny_spec(data, full_context_tokens=9), data, tmp_path)
    assert "torch.distributed.tensor" not in sys.modules
