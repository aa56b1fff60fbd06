"""The real worker and what it says; that it never outlives the one who asked it."""

import os
import resource
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from archfit.data.prepared import PreparedData
from archfit.spec import RunSpec
from archfit.spec.files import is_held
from archfit.sweep.runner import RunnerOptions, Worker, train_cell
from archfit.train.run_files import held
from tests_sweeps import (
    descendants,
    is_alive,
    runner_options,
    started,
    sweep_command,
    tiny_specs,
    wait_until,
    write_sweep,
)
from tests_training import checkpoints, record_of, stored_record, tiny_spec

ENDLESS = 10**6  # steps


@pytest.fixture
def worker(data: PreparedData, tmp_path: Path) -> Iterator[Worker]:
    made = Worker(runner_options(data, tmp_path))
    yield made
    made.end()


def told(worker: Worker, cell: RunSpec) -> list[dict[str, object]]:
    """What it says about the cell, to the end of it."""
    worker.give(cell)
    said: list[dict[str, object]] = []
    while not said or said[-1]["event"] in ("ready", "started", "progress"):
        said += worker.events()
    return said


def steps_made(worker: Worker, cell: RunSpec) -> None:
    """Let it begin a cell, and wait for a step."""
    worker.give(cell)
    while not any(event["event"] == "progress" for event in worker.events()):
        pass


def test_a_worker_answers_each_cell_takes_the_next_and_without_work_ends_with_status_0(
    worker: Worker, data: PreparedData, tmp_path: Path
) -> None:
    first, taken, foreign, second = (replace(tiny_spec(data), seed=seed) for seed in range(4))
    foreign = replace(foreign, data_hash="0" * 64)
    said = told(worker, first)
    assert [event["event"] for event in said][:2] == ["ready", "started"]
    assert said[0]["device"] == "cpu"
    assert said[-1] == {"event": "finished", "run": first.name}
    assert stored_record(tmp_path / first.name).same_result(record_of(first, data, tmp_path / "x"))
    with held(tmp_path / taken.name):
        assert told(worker, taken) == [{"event": "held", "run": taken.name}]
    (refused,) = told(worker, foreign)
    assert (refused["event"], refused["run"]) == ("refused", foreign.name)
    assert "asks for data 0000000000000000" in str(refused["reason"])
    assert told(worker, second)[-1] == {"event": "finished", "run": second.name}
    assert told(worker, first) == [{"event": "finished", "run": first.name}]
    worker.dismiss()
    assert worker.process.wait(timeout=60) == 0


def test_after_a_network_for_which_memory_runs_out_the_next_is_trained_until_it_is_killed(
    worker: Worker, data: PreparedData
) -> None:
    first, second = tiny_specs(data, 2)
    assert told(worker, first)[-1]["event"] == "finished"
    taken = Path(f"/proc/{worker.process.pid}/statm").read_text().split()[0]
    most = int(taken) * resource.getpagesize() + (1 << 29)
    resource.prlimit(worker.process.pid, resource.RLIMIT_AS, (most, most))
    vast = tiny_spec(data, width=4096, depth=4)
    (said,) = told(worker, vast)
    assert (said["event"], said["run"]) == ("out_of_memory", vast.name)
    assert "use a smaller network" in str(said["reason"])
    assert told(worker, second)[-1]["event"] == "finished"
    steps_made(worker, tiny_spec(data, steps=ENDLESS))
    os.kill(worker.process.pid, signal.SIGSEGV)
    last: list[dict[str, object]] = []
    while not last or last[-1]["event"] == "progress":
        last += worker.events()
    assert last[-1]["event"] == "died"
    assert str(last[-1]["reason"]).startswith("killed by signal 11")
    assert worker.process.poll() == -signal.SIGSEGV


def test_a_line_that_is_no_spec_ends_it_with_a_sentence(worker: Worker) -> None:
    assert worker.process.stdin is not None
    worker.process.stdin.write(b"{}\n")
    worker.process.stdin.flush()
    said: list[dict[str, object]] = []
    while not said or said[-1]["event"] != "died":
        said += worker.events()
    assert str(said[-1]["reason"]).startswith("ended with status 2: archfit: a line of standard")


@pytest.mark.slow  # the runner killed by kill -9 leaves such a worker, too
def test_when_nobody_asks_any_more_the_run_is_saved_and_the_worker_ends(
    worker: Worker, data: PreparedData, tmp_path: Path
) -> None:
    cell = tiny_spec(data, steps=ENDLESS)
    steps_made(worker, cell)
    assert is_held(tmp_path / cell.name)
    assert checkpoints(tmp_path / cell.name) == []
    worker.dismiss()
    assert worker.process.wait(timeout=60) == 143
    assert len(checkpoints(tmp_path / cell.name)) == 1
    assert not is_held(tmp_path / cell.name)


def test_a_cell_asked_for_by_one_who_then_left_is_not_begun(
    worker: Worker, data: PreparedData, tmp_path: Path
) -> None:
    """The worker still loads torch when both the line and the end of its input are there."""
    worker.give(tiny_spec(data, steps=ENDLESS))
    worker.dismiss()
    assert worker.process.wait(timeout=60) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_is_sent_a_signal_too_saves_its_run_all_the_same(
    worker: Worker, data: PreparedData, tmp_path: Path
) -> None:
    """Batch systems send SIGTERM to runner and workers, and the runner then ends its workers."""
    cell = tiny_spec(data, steps=ENDLESS)
    steps_made(worker, cell)
    os.kill(worker.process.pid, signal.SIGSTOP)
    os.kill(worker.process.pid, signal.SIGTERM)
    worker.dismiss()
    os.kill(worker.process.pid, signal.SIGCONT)
    assert worker.process.wait(timeout=60) == 143
    assert len(checkpoints(tmp_path / cell.name)) == 1


def test_one_cell_by_a_worker_of_its_own(data: PreparedData, tmp_path: Path) -> None:
    spec = tiny_spec(data)
    assert train_cell(spec, runner_options(data, tmp_path)) == {
        "event": "finished",
        "run": spec.name,
    }
    assert stored_record(tmp_path / spec.name).spec == spec


def test_a_runner_killed_by_kill_9_leaves_no_worker_behind(
    data: PreparedData, tmp_path: Path
) -> None:
    specs = tiny_specs(data, 2, steps=ENDLESS)
    runner = started(
        sweep_command(write_sweep(data, specs, tmp_path), tmp_path / "out", "--workers", "2")
    )
    runs = [tmp_path / "out" / spec.name for spec in specs]
    wait_until(lambda: all(is_held(run) for run in runs), "both cells begun")
    workers = descendants(runner.pid)
    assert len(workers) == 2
    runner.kill()
    runner.communicate()
    wait_until(lambda: not any(is_alive(worker) for worker in workers), "no worker left")
    assert not any(is_held(run) for run in runs)
    assert [len(checkpoints(run)) for run in runs] == [1, 1]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"device": "tpu"}, "device='tpu' is unknown; use one of auto, cuda, mps, cpu"),
        ({"threads": 0}, "threads=0 is below 1"),
        ({"checkpoint_seconds": float("nan")}, "checkpoint_seconds=nan is not in 0"),
    ],
)
def test_what_no_worker_would_take_is_refused_before_any_starts(
    data: PreparedData, tmp_path: Path, wrong: dict[str, object], said: str
) -> None:
    fields = {
        name: getattr(runner_options(data, tmp_path), name) for name in RunnerOptions.__slots__
    }
    with pytest.raises(ValueError, match=said):
        RunnerOptions(**fields | wrong)
