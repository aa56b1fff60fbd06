"""A runner that is asked to end saves what its workers are at, and the same command goes on."""

import signal
from pathlib import Path

import pytest

from archfit.data.prepared import PreparedData
from archfit.spec.files import is_held
from tests_sweeps import (
    assert_same_results,
    descendants,
    document,
    is_alive,
    started,
    sweep_command,
    tiny_specs,
    undisturbed,
    wait_until,
    write_sweep,
)
from tests_training import checkpoints


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_a_signal_saves_says_one_sentence_and_the_same_command_goes_on(
    data: PreparedData, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    specs = tiny_specs(data, 2, steps=60, evaluation_steps=30)
    out = tmp_path / "out"
    command = sweep_command(write_sweep(data, specs, tmp_path), out)
    runner = started(command)
    wait_until(lambda: is_held(out / specs[0].name), "the first cell begun")
    workers = descendants(runner.pid)
    runner.send_signal(number)
    if number == signal.SIGTERM:  # a shell that passes it on is the second to send it
        runner.send_signal(number)
    said, complaint = runner.communicate(timeout=60)
    assert (runner.returncode, said) == (status, "")
    *_, last = complaint.splitlines()  # on a busy machine it says how the sweep goes before
    assert last == "archfit: stopped; run the same command again to resume: 2 of 2 runs left"
    assert workers
    assert not any(is_alive(worker) for worker in workers)
    assert len(checkpoints(out / specs[0].name)) == 1
    assert (out / "results.csv").is_file()
    assert document(started([*command, "--json"]))["done"] == 2
    assert_same_results(out, undisturbed(specs, data, tmp_path / "by itself"))
