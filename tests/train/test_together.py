"""Runs that take turns: at once where that was measured to be faster. The GPU is pretended."""

import contextlib
from pathlib import Path

import pytest
import torch

from archfit.data.prepared import PreparedData
from archfit.spec import RunRecord
from archfit.train import Stopped, Watchers, train_together
from archfit.train.run import TrainingSteps
from archfit.train.together import InterleavedRun, _finish_all, _seconds
from tests_training import HERE, Recorder, record_of, tiny_spec


class FakeGpu:
    """Steps of runs `a`, `b`, ... are noted, and each takes a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, record: RunRecord) -> None:
        self.record, self.now, self.order = record, 0.0, ""
        monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
        monkeypatch.setattr(torch.cuda, "stream", lambda _: contextlib.nullcontext())
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr("archfit.train.together.time.monotonic", lambda: self.now)

    def run(self, name: str, steps: int, *, stops: bool = False) -> InterleavedRun:
        return InterleavedRun(self._steps(name, steps, stops))

    def _steps(self, name: str, steps: int, stops: bool) -> TrainingSteps:
        for _ in range(steps):
            self.now += 1.0
            self.order += name
            yield
        if stops:
            raise Stopped(steps, 15)
        return self.record


@pytest.fixture(scope="module")
def record(data: PreparedData, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return record_of(tiny_spec(data, steps=2), data, tmp_path_factory.mktemp("some"))


def test_the_time_of_steps_in_turns_is_that_of_all_of_them(
    monkeypatch: pytest.MonkeyPatch, record: RunRecord
) -> None:
    gpu = FakeGpu(monkeypatch, record)
    assert _seconds([gpu.run("a", 5), gpu.run("b", 5)], 3) == 6.0
    assert gpu.order == "ababab"


@pytest.mark.parametrize(
    ("alone", "said", "rest"),
    [
        (19.0, "2 runs together: together measured 1.90 times as fast", "abababab"),
        (10.5, "2 runs together: together measured 1.05 times as fast", "abababab"),
        (10.4, "2 runs one after another: together measured 1.04 times as fast", "aaaabbbb"),
    ],
)
def test_runs_go_on_in_the_way_that_was_measured_to_be_faster(
    monkeypatch: pytest.MonkeyPatch, record: RunRecord, alone: float, said: str, rest: str
) -> None:
    """Of 20 steps: one run takes `alone` seconds, both in turns 20."""
    gpu, watch = FakeGpu(monkeypatch, record), Recorder()

    def measured(runs: list[InterleavedRun], steps: int) -> float:
        _seconds(runs, steps)
        return alone if len(runs) == 1 else 20.0

    monkeypatch.setattr("archfit.train.together._seconds", measured)
    runs = [gpu.run("a", 49), gpu.run("b", 29)]
    _finish_all(runs, watch)
    assert gpu.order == "ab" * 5 + "a" * 20 + "ab" * 20 + rest
    assert watch.notices == [said]
    assert [run.result() for run in runs] == [record] * 2


def test_the_others_save_themselves_when_one_is_stopped(
    monkeypatch: pytest.MonkeyPatch, record: RunRecord
) -> None:
    gpu = FakeGpu(monkeypatch, record)
    runs = [gpu.run("a", 60), gpu.run("b", 30, stops=True)]
    _finish_all(runs, Watchers())
    assert gpu.order.count("a") == 60
    assert runs[0].result() == record
    with pytest.raises(Stopped, match="stopped at step 30"):
        runs[1].result()


def test_on_a_cpu_runs_follow_each_other(data: PreparedData, tmp_path: Path) -> None:
    specs, order = [tiny_spec(data, steps=steps) for steps in (2, 3)], list[tuple[int, int]]()

    class Noting(Recorder):
        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

        def progress(self, progress: object) -> None:
            order.append((self.at, progress.step))  # type: ignore[attr-defined]  # a Progress

    records = train_together(specs, data, tmp_path, HERE, [Noting(0), Noting(1)])
    assert [record.spec for record in records] == specs
    assert order == [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]
