"""The worker's answers, in this process; tests/sweep/test_worker.py has it as a process."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from archfit.data.prepared import PreparedData
from archfit.spec import RunSpec, canonical_json
from archfit.spec.signals import StopRequest
from archfit.train import Progress
from archfit.train.run_files import held
from archfit.train.together import EventWatcher, SideBySide, SpecQueue, data_for, serve
from tests_training import HERE, checkpoints, stored_record, tiny_data, tiny_spec, write_spec

Event = dict[str, object]


def answers(
    lines: list[str],
    data: PreparedData,
    out: Path,
    *,
    leaves_at: Callable[[Event], bool] | None = None,
) -> list[Event]:
    """What a worker says to these lines; who asks leaves after that many ends, or when told so."""
    said: list[Event] = []
    read, write = os.pipe()
    sent = os.fdopen(write, "w")
    ends = ("finished", "held", "refused", "out_of_memory")

    def say(event: Event) -> None:
        said.append(event)
        done = sum(heard["event"] in ends for heard in said) == len(lines)
        if (leaves_at(event) if leaves_at else done) and not sent.closed:
            sent.close()

    sent.writelines(f"{line}\n" for line in lines)
    sent.flush()
    with os.fdopen(read) as asked, sent:  # ended first: a thread waits for the next line
        serve(asked, say, [data], out, HERE)
    return said


def test_every_spec_is_answered_by_how_it_ended(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[None] = []
    monkeypatch.setattr("archfit.train.hardware.release_memory", lambda: released.append(None))
    first, taken, foreign, last = (replace(tiny_spec(data), seed=seed) for seed in range(4))
    foreign = replace(foreign, data_hash="0" * 64)
    with held(tmp_path / taken.name):
        specs = (first, taken, foreign, last, first)
        said = answers([canonical_json(spec) for spec in specs], data, tmp_path)
    assert said[0] == {"event": "ready", "device": "cpu"}
    assert [e for e in said[1:] if e["event"] not in ("progress", "refused")] == [
        {"event": "started", "run": first.name, "step": 0},
        {"event": "finished", "run": first.name},
        {"event": "held", "run": taken.name},
        {"event": "started", "run": last.name, "step": 0},
        {"event": "finished", "run": last.name},
        {"event": "finished", "run": first.name},
    ]
    (refused,) = [event for event in said if event["event"] == "refused"]
    assert refused["run"] == foreign.name
    assert f"asks for data {'0' * 16}, and --data has {data.data_hash[:16]};" in str(refused)
    assert stored_record(tmp_path / last.name).spec == last
    assert len(released) == 5  # after every run, for those beside it


def test_a_run_without_memory_is_said_to_be_too_large_and_the_next_is_trained(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vast, small = tiny_spec(data), replace(tiny_spec(data), seed=1)
    from archfit.train.run import TrainingRun

    honest = TrainingRun.to_the_end

    def greedy(self: TrainingRun) -> object:
        if self.spec == vast:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return honest(self)

    monkeypatch.setattr(TrainingRun, "to_the_end", greedy)
    said = answers([canonical_json(vast), canonical_json(small)], data, tmp_path)
    (large,) = [event for event in said if event["event"] == "out_of_memory"]
    assert large["run"] == vast.name
    assert "use a smaller network or batch" in str(large["reason"])
    assert said[-1] == {"event": "finished", "run": small.name}


def test_when_nobody_asks_any_more_the_run_is_saved_and_the_worker_ends(
    data: PreparedData, tmp_path: Path
) -> None:
    spec = tiny_spec(data, steps=2000)
    with pytest.raises(SystemExit) as ended:
        answers(
            [canonical_json(spec)], data, tmp_path, leaves_at=lambda e: e["event"] == "progress"
        )
    assert ended.value.code == 128 + signal.SIGTERM
    assert len(checkpoints(tmp_path / spec.name)) == 1


def test_a_line_that_is_no_spec_is_told(data: PreparedData, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a line of standard input holds no spec: .*lacks"):
        answers(["{}"], data, tmp_path)


def test_a_run_that_was_about_to_begin_when_the_asker_left_is_stopped(
    data: PreparedData, tmp_path: Path
) -> None:
    under_way, asked = StopRequest(), write_spec(tiny_spec(data), tmp_path)
    requests = SpecQueue(under_way)
    with asked.open() as lines:
        requests.read(lines)
    assert under_way.signal_number == signal.SIGTERM
    assert requests.next(SideBySide(torch.device("cpu"))) is None


def test_the_data_that_a_spec_speaks_of_are_found_among_several(
    data: PreparedData, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = tiny_data(tmp_path / "other")
    assert data_for(tiny_spec(data), [data]) is data
    spec = replace(tiny_spec(data), data_hash=data.data_hash)
    assert data_for(spec, [other, data]).data_hash == spec.data_hash


def test_progress_is_told_twice_a_second_at_most(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Event] = []
    spec: RunSpec = tiny_spec(data)
    watch = EventWatcher(spec, said.append)
    for step, now in ((1, 9.0), (2, 9.4), (3, 9.5), (4, 9.9), (5, 10.0)):
        monkeypatch.setattr("archfit.train.together.time.monotonic", lambda now=now: now)
        progress = Progress(
            step=step,
            steps=12,
            training_nats_per_token=2.5,
            tokens_per_second=7.0,
            flop_utilisation=0.5,
            seconds_left=3.0,
        )
        watch.progress(progress)
    assert [event["step"] for event in said] == [1, 3, 5]
    assert said[0] == {
        "event": "progress",
        "run": spec.name,
        "step": 1,
        "steps": 12,
        "training_nats_per_token": 2.5,
        "tokens_per_second": 7.0,
        "seconds_left": 3.0,
    }
