"""Runs in this process: stopped, diverged, finished, and found finished."""

import contextlib
import os
import platform
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace

import pytest
import torch

from archfit.data.loader import Loader
from archfit.data.prepared import PreparedData
from archfit.spec import Factorised, Linear, Machine, Tied, Tokens
from archfit.train import Progress, Stopped, Watchers, train, train_together
from archfit.train.hardware import ProcessGroup
from archfit.train.run import START, TrainingRun, _memory_errors, check_data
from archfit.train.run_files import RunState
from archfit.train.step import Stepper, steps_that_fit
from tests_training import (
    HERE,
    Recorder,
    checkpoints,
    record_of,
    stored_record,
    tiny_spec,
)

EXPLODES = {"attention": Linear(residual=True, causal=True), "feed_forward": 0}


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
        with pytest.raises(Stopped, match=f"stopped at step {stop}; run the same command again"):
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


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), 1e5])
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


@pytest.mark.parametrize("loss", [float("nan"), 1e5])
def test_a_held_out_loss_that_is_none_ends_the_run_too(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: float
) -> None:
    monkeypatch.setattr("archfit.train.evaluate.heldout_loss", lambda *_: loss)
    assert record_of(tiny_spec(data), data, tmp_path).diverged_at_step == 5


def test_the_largest_loss_that_is_none_still_fits_into_a_record(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.train.evaluate.heldout_loss", lambda *_: 99_999.0)
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


class Clock:
    """Time that passes only in steps (2 s), evaluations (100 s) and checkpoints (1000 s)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.saved_at = 5000.0, list[int]()
        monkeypatch.setattr("archfit.train.run.time.monotonic", lambda: self.now)
        self._slow(monkeypatch, "archfit.train.evaluate.heldout_loss", 100.0)
        self._slow(monkeypatch, "archfit.train.run_files.save_checkpoint", 1000.0)
        self._slow(monkeypatch, "archfit.train.step.Stepper.__call__", 2.0)

    def _slow(self, monkeypatch: pytest.MonkeyPatch, name: str, seconds: float) -> None:
        honest = resolve_name(name)

        def slow(*arguments: object, **named: object) -> object:
            self.now += seconds
            if isinstance(arguments[-1], RunState):
                self.saved_at.append(arguments[-1].step)
            return honest(*arguments, **named)

        monkeypatch.setattr(name, slow)


def test_only_steps_are_timed_and_not_the_first_of_a_process(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, spec, told = Clock(monkeypatch), tiny_spec(data), list[Progress]()
    monkeypatch.setattr("archfit.train.hardware.peak_flops", lambda *_: 1e6)
    watch = Recorder()
    monkeypatch.setattr(watch, "progress", told.append)
    settings = replace(HERE, checkpoint_seconds=500.0)
    timing = train(spec, data, tmp_path, settings, watch).timing
    tokens_a_step = 4 * 12
    assert timing.training_seconds == 2.0 * 11
    assert timing.tokens_per_second == tokens_a_step / 2.0
    flops = tokens_a_step / 2.0 * spec.architecture.training_flops_per_token
    assert timing.flop_utilisation == pytest.approx(flops / 1e6)
    assert [progress.step for progress in told] == list(range(1, 13))
    assert {progress.steps for progress in told} == {12}
    assert told[0].tokens_per_second == told[0].seconds_left == 0.0
    assert [progress.seconds_left for progress in told[1:]] == [
        2.0 * (12 - s) for s in range(2, 13)
    ]
    assert told[5].flop_utilisation == timing.flop_utilisation
    assert clock.saved_at == []


def test_a_resumed_run_adds_to_the_time_that_it_had(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    with pytest.raises(Stopped):
        train(tiny_spec(data), data, tmp_path, HERE, Recorder(stop_after=7))
    assert record_of(tiny_spec(data), data, tmp_path).timing.training_seconds == 2.0 * (6 + 4)


@pytest.mark.parametrize(
    ("seconds", "saved_at"),
    [(0.0, list(range(1, 12))), (3.0, [2, 4, 5, 7, 9, 10]), (110.0, [6]), (2000.0, [])],
)
def test_a_checkpoint_is_written_when_its_time_has_passed(
    data: PreparedData,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    saved_at: list[int],
) -> None:
    """An evaluation, at 5 and 10, takes 100 s; the record follows the last step at once."""
    clock = Clock(monkeypatch)
    settings = replace(HERE, checkpoint_seconds=seconds)
    train(tiny_spec(data), data, tmp_path, settings, Watchers())
    assert clock.saved_at == saved_at


@pytest.mark.parametrize(
    ("where", "cold", "steps"),
    [("cpu", False, 1), ("gpu", True, 1), ("gpu", False, 30), ("two gpus", False, 10)],
)
def test_a_gpu_makes_as_many_steps_between_looks_as_take_a_third_of_a_second(
    where: str, cold: bool, steps: int
) -> None:
    run = TrainingRun.__new__(TrainingRun)
    device = torch.device("cpu" if where == "cpu" else "cuda")
    run.group = ProcessGroup(rank=0, world=2 if where == "two gpus" else 1, device=device)
    run.is_queued, run.is_cold = where == "gpu", cold
    run.state = replace(START, timed_seconds=2.0, timed_steps=200)
    assert run._steps_at_once(torch.zeros(4, 13, dtype=torch.int32)) == steps
    assert (
        steps_that_fit(torch.zeros(512, 1 << 14, dtype=torch.int32)) == 1
    )  # a batch of any size goes alone


@pytest.mark.parametrize(
    "problem", [torch.OutOfMemoryError("x"), RuntimeError("DefaultCPUAllocator")]
)
def test_torch_s_errors_about_memory_are_python_s(problem: Exception) -> None:
    with pytest.raises(MemoryError, match=str(problem)), _memory_errors():
        raise problem


def test_other_errors_of_torch_stay_as_they_are() -> None:
    with pytest.raises(RuntimeError, match="shapes"), _memory_errors():
        raise RuntimeError("shapes do not match")


def test_data_of_another_vocabulary_or_content_are_refused(data: PreparedData) -> None:
    with pytest.raises(ValueError, match=r"257 tokens and the spec one of 300; use vocab=257"):
        check_data(tiny_spec(data, input=Tokens(vocab=300)), data)
    with pytest.raises(ValueError, match=f"data hash {data.data_hash[:16]} and .* for {'0' * 16};"):
        check_data(replace(tiny_spec(data), data_hash="0" * 64), data)


def test_a_record_says_where_and_with_what_it_was_made(data: PreparedData, tmp_path: Path) -> None:
    record = record_of(tiny_spec(data), data, tmp_path)
    assert record.machine == Machine(
        device=f"cpu ({platform.machine()}, 1 threads)",
        devices=1,
        micro_batch_sequences=4,
        archfit="test",
        python=platform.python_version(),
        torch=torch.__version__,
        numerics=2,
    )
    assert record.timing.flop_utilisation is None


@pytest.mark.parametrize(("stop_at", "saved_at"), [(4, 5), (7, 10), (10, 10)])
def test_steps_that_are_queued_are_made_before_a_checkpoint(
    data: PreparedData,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop_at: int,
    saved_at: int,
) -> None:
    """As many are queued as there are to the next evaluation (5, 10, 12)."""
    expected = record_of(tiny_spec(data), data, tmp_path / "looked")
    monkeypatch.setattr(TrainingRun, "_steps_at_once", lambda *_: 99)
    honest = Stepper.__call__

    def stopping(self: Stepper, at: int, tokens_BS: torch.Tensor) -> torch.Tensor:
        if at + 1 == stop_at and not checkpoints(tmp_path / tiny_spec(data).name):
            os.kill(os.getpid(), signal.SIGTERM)
        return honest(self, at, tokens_BS)

    monkeypatch.setattr(Stepper, "__call__", stopping)
    with pytest.raises(Stopped, match=f"stopped at step {saved_at};"):
        train(tiny_spec(data), data, tmp_path, HERE, Watchers())
    watch = Recorder()
    assert train(tiny_spec(data), data, tmp_path, HERE, watch).same_result(expected)
    assert watch.starts == [saved_at]


@pytest.mark.parametrize("step", [6, 7])
def test_a_loss_that_waits_and_is_none_ends_the_run_at_its_own_step(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(TrainingRun, "_steps_at_once", lambda *_: 99)
    honest = Stepper.__call__

    def broken(self: Stepper, at: int, tokens_BS: torch.Tensor) -> torch.Tensor:
        if at == 8:
            os.kill(os.getpid(), signal.SIGTERM)  # it is no reason to keep what has diverged
        value = honest(self, at, tokens_BS)
        return torch.tensor(float("nan")) if at == step else value

    monkeypatch.setattr(Stepper, "__call__", broken)
    assert record_of(tiny_spec(data), data, tmp_path).diverged_at_step == step


@pytest.mark.parametrize(("device", "rows"), [("cpu", 10), ("cuda", 3)])
def test_an_evaluation_on_a_gpu_takes_a_quarter_of_the_rows(
    data: PreparedData, device: str, rows: int
) -> None:
    run = TrainingRun.__new__(TrainingRun)
    run.spec, run.group = (
        tiny_spec(data),
        ProcessGroup(rank=0, world=1, device=torch.device(device)),
    )
    run.loader = Loader(data=data, batch=4, context=12, seed=0)
    run.stepper = SimpleNamespace(micro_rows=10)  # type: ignore[assignment]  # all that is asked
    assert run._heldout().rows == rows
