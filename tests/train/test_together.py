"""Runs that take turns, on a pretended GPU; one after another on a CPU."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from archfit.data.prepared import PreparedData
from archfit.spec import RunRecord, RunSpec
from archfit.spec.gpu_cost import LEAST_SHARE, gpu_share
from archfit.train import Stopped, train_together
from archfit.train.run import TrainingSteps
from archfit.train.together import SideBySide
from tests_training import HERE, Recorder, record_of, tiny_spec

GPU = torch.device("cuda")


@pytest.fixture(scope="module")
def record(data: PreparedData, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return record_of(tiny_spec(data, steps=2), data, tmp_path_factory.mktemp("some"))


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which run took a turn on which stream, on a GPU that is not there."""
    seen, streams = list[str](), iter("stuvw")
    monkeypatch.setattr(torch.cuda, "Stream", lambda _: next(streams))

    @contextlib.contextmanager
    def on(stream: str) -> Iterator[None]:
        seen.append(stream)
        yield

    monkeypatch.setattr(torch.cuda, "stream", on)
    monkeypatch.setattr("archfit.train.together.time.sleep", lambda _: None)
    monkeypatch.setattr("archfit.train.hardware.release_memory", lambda: seen.append("free"))
    monkeypatch.setattr(SideBySide, "_free_memory", lambda _: seen.append("free"))
    return seen


def steps(count: int, end: RunRecord | Exception) -> TrainingSteps:
    for _ in range(count):
        yield None
    if isinstance(end, Exception):
        raise end
    return end


def test_runs_take_turns_on_streams_of_their_own_and_leave_when_they_end(
    data: PreparedData, record: RunRecord, turns: list[str]
) -> None:
    runs, specs = SideBySide(GPU), [replace(tiny_spec(data), seed=seed) for seed in (0, 1)]
    for spec, count in zip(specs, (1, 3), strict=True):
        runs.add(spec, steps(count, record))
    ended = [[run.spec for run in runs.advance()] for _ in range(4)]
    assert ended == [[], [specs[0]], [], [specs[1]]]
    assert turns == ["s", "t", "s", "t", "free", "t", "t", "free"]


def test_a_run_that_waits_takes_no_turn(
    data: PreparedData, record: RunRecord, turns: list[str]
) -> None:
    kernel: Future[None] = Future()

    def waiting() -> TrainingSteps:
        yield kernel.done
        return record

    runs = SideBySide(GPU)
    runs.add(tiny_spec(data), waiting())
    assert not [*runs.advance(), *runs.advance(), *runs.advance()]
    assert turns == ["s"]
    kernel.set_result(None)
    assert [run.record for run in runs.advance()] == [record]


@pytest.mark.parametrize("problem", [Stopped(3, 15), MemoryError(), ValueError("x"), OSError()])
def test_what_stops_a_run_is_kept_and_the_others_go_on(
    data: PreparedData, record: RunRecord, turns: list[str], problem: Exception
) -> None:
    runs = SideBySide(GPU)
    runs.add(tiny_spec(data), steps(0, problem))
    runs.add(replace(tiny_spec(data), seed=1), steps(1, record))
    (ended,) = runs.advance()
    assert ended.problem is problem
    assert ended.record is None
    (other,) = runs.advance()
    assert other.record == record
    assert turns == ["s", "t", "free", "t", "free"]


@pytest.mark.usefixtures("turns")
def test_what_nobody_foresaw_is_not_kept(data: PreparedData) -> None:
    runs = SideBySide(GPU)
    runs.add(tiny_spec(data), steps(0, KeyError("a mistake of ours")))
    with pytest.raises(KeyError):
        list(runs.advance())


@pytest.mark.parametrize(
    ("reserved", "is_beside", "frees"), [(59, True, False), (60, True, True), (1, False, True)]
)
def test_memory_is_given_back_where_others_may_need_it(
    monkeypatch: pytest.MonkeyPatch, reserved: int, is_beside: bool, frees: bool
) -> None:
    freed: list[None] = []
    monkeypatch.setattr("archfit.train.hardware.release_memory", lambda: freed.append(None))
    properties = SimpleNamespace(total_memory=100)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: reserved)
    runs = SideBySide(GPU)
    runs.runs = [object()] if is_beside else []  # type: ignore[list-item]  # a run, of which nothing is asked
    runs._free_memory()
    assert bool(freed) == frees


@pytest.mark.parametrize(
    ("rows", "context", "width", "share"),
    [(16, 64, 68, LEAST_SHARE), (64, 256, 244, 0.5), (512, 128, 144, 1.0)],
)
def test_the_share_of_a_gpu_goes_with_the_numbers_of_the_stream(
    data: PreparedData, rows: int, context: int, width: int, share: float
) -> None:
    spec = tiny_spec(data, batch_sequences=rows, context=context, width=width, feed_forward=width)
    assert gpu_share(spec) == pytest.approx(share, rel=0.01)


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


def test_after_a_run_that_stopped_none_begins(data: PreparedData, tmp_path: Path) -> None:
    specs: list[RunSpec] = [tiny_spec(data, steps=steps) for steps in (2, 3)]

    class Stopping(Recorder):
        def progress(self, _: object) -> None:
            raise Stopped(1, 15)

    with pytest.raises(Stopped, match="stopped at step 1"):
        train_together(specs, data, tmp_path, HERE, [Stopping(), Recorder()])
    assert not (tmp_path / specs[1].name).exists()
