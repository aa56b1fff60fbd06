"""Processes killed at random moments: the record is that of an undisturbed run."""

import random
import time
from pathlib import Path

import pytest

from archfit.data.prepared import PreparedData
from archfit.spec import Evaluation, Rotary, Tokens, loads
from tests_training import (
    checkpoints,
    forked,
    program,
    record_of,
    stored_record,
    tiny_spec,
    write_spec,
)

LLAMA = {"block": "llama", "positions": Rotary(), "kv_heads": 1, "qk_norm": True}
ENCODER = {"objective": "masked"}
LONGEST_WAIT = 60.0  # seconds for a process to make a step


def killed(command: list[str], run: Path, delay: float) -> None:
    """Start the command, let it write a checkpoint and go on for a while, kill it."""
    before = checkpoints(run)[-1:]
    process = forked(command, said=run.with_suffix(".said"))
    try:
        give_up = time.monotonic() + LONGEST_WAIT
        while checkpoints(run)[-1:] == before and time.monotonic() < give_up:
            assert process.is_alive(), run.with_suffix(".said.err").read_text()
            time.sleep(0.002)
        until = time.monotonic() + delay
        while time.monotonic() < until:
            assert len(checkpoints(run)) <= 2
            time.sleep(0.002)
        assert process.is_alive(), "it finished: give it more steps"
    finally:
        process.kill()
        process.join()
    assert 1 <= len(checkpoints(run)) <= 2


@pytest.mark.parametrize(
    ("kills", "dropout", "shape"),
    [
        (1, 0.1, {}),
        pytest.param(20, 0.0, {}, marks=pytest.mark.slow),
        pytest.param(6, 0.0, LLAMA, marks=pytest.mark.slow),
        pytest.param(6, 0.0, ENCODER, marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_random_moments_gives_the_same_record(
    data: PreparedData, tmp_path: Path, kills: int, dropout: float, shape: dict[str, object]
) -> None:
    steps = 20 * kills + 20
    if shape is ENCODER:
        shape = shape | {"input": Tokens(vocab=data.vocab + 1)}
    spec = tiny_spec(
        data, steps=steps, dropout=dropout, evaluation_steps=3, warmup_steps=0, **shape
    )
    run, chance = tmp_path / spec.name, random.Random(kills)
    arguments = ("--spec", str(write_spec(spec, tmp_path)), "--checkpoint-seconds", "0")
    command = program(data, tmp_path, *arguments)
    for _ in range(kills):
        killed(command, run, delay=chance.uniform(0, 0.1))
    last = forked(command)
    last.join(LONGEST_WAIT)
    assert last.exitcode == 0
    record = stored_record(run)
    assert record.same_result(record_of(spec, data, tmp_path / "undisturbed"))
    lines = (run / "log.jsonl").read_text().splitlines()
    assert tuple(loads(Evaluation, line) for line in lines) == record.evaluations
    assert len(lines) == -(-steps // 3)
    names = {path.name for path in run.iterdir()}
    assert names == {".lock", "log.jsonl", "model.safetensors", "record.json", "spec.json"}
