"""Two runners on one folder, killed at random moments and started again: as if nothing happened."""

import random
import subprocess
import time
from pathlib import Path

import pytest

from archfit.data.prepared import PreparedData
from archfit.spec.files import is_held
from tests_sweeps import (
    RecordsWritten,
    assert_same_results,
    crashing,
    descendants,
    document,
    is_alive,
    kill_all,
    started,
    sweep_command,
    tiny_specs,
    undisturbed,
    wait_until,
    write_sweep,
)

STEPS = 150  # of a cell: about a second, seven evaluations


class Chaos:
    """Runners that are killed."""

    def __init__(self, command: list[str], environment: dict[str, str], runs: list[Path]) -> None:
        self.command, self.environment, self.runs = command, environment, runs
        self.out = runs[0].parent
        self.chance = random.Random(len(runs))
        self.seen: set[int] = set()  # processes
        self.kills = 0

    def round(self) -> None:
        """Start two runners, and kill both when it is least convenient."""
        runners = [started(self.command, self.environment) for _ in range(2)]
        self.chance.shuffle(runners)
        for runner in runners:
            lines = self.lines() + self.chance.randrange(3)
            if self.chance.random() < 0.75:  # else it has hardly been started
                wait_until(lambda: self.is_at_work() and self.lines() >= lines, "some work done")  # noqa: B023  # waited for at once
            time.sleep(self.chance.uniform(0, 0.1))
            self.kill(runner)

    def is_at_work(self) -> bool:
        return any(is_held(run) for run in self.runs)

    def lines(self) -> int:
        """Evaluations so far."""
        return sum(len(log.read_text().splitlines()) for log in self.out.glob("*/log.jsonl"))

    def kill(self, runner: subprocess.Popen[str]) -> None:
        """By kill -9: the runner alone, or its workers with it."""
        workers = descendants(runner.pid)
        self.seen.update(workers)
        assert runner.poll() is None, "it finished: give it more steps"
        kill_all([runner.pid, *(workers if self.chance.random() < 0.5 else [])])
        runner.communicate()  # nobody else has the other end of its pipes
        self.kills += 1


@pytest.mark.slow  # each signal and each death by itself is tried every time
@pytest.mark.parametrize(("kills", "cells"), [(2, 3), (30, 20)])
def test_runners_killed_at_random_moments_do_every_cell_exactly_once(
    data: PreparedData, tmp_path: Path, kills: int, cells: int
) -> None:
    crashes, *specs = tiny_specs(
        data, cells + 1, steps=STEPS, evaluation_steps=20, warmup_steps=0, dropout=0.1
    )
    out = tmp_path / "out"
    runs = [out / spec.name for spec in specs]
    written = RecordsWritten(runs)
    file = write_sweep(data, (crashes, *specs), tmp_path)
    command = sweep_command(file, out, "--checkpoint-seconds", "0.05", "--json")
    environment = crashing(crashes.name, tmp_path / "hook")
    chaos = Chaos(command, environment, runs)
    while chaos.kills < kills:
        chaos.round()
    last = [started(command, environment) for _ in range(2)]
    ends = [document(runner, status=1) for runner in last]
    for end in ends:  # each reports the cell that always crashes, once, and is done with the rest
        assert (end["failed"], end["elsewhere"]) == (1, 0)
        assert [failure["run"] for failure in end["failures"]] == [crashes.name]  # type: ignore[attr-defined]  # a list
    assert_same_results(out, undisturbed(tuple(specs), data, tmp_path / "by itself"))
    assert written.counted() == {spec.name: 1 for spec in specs}
    for run in runs:
        assert {path.name for path in run.iterdir()} == {
            *(".lock", "log.jsonl", "record.json", "spec.json")
        }
    wait_until(lambda: not any(map(is_alive, chaos.seen)), "no worker left")
    table = (out / "results.csv").read_text().splitlines()
    assert len(table) == 1 + len(specs)
