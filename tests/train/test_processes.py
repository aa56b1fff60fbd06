"""Two processes that share a batch, replicated or sharded, and one alone: the same losses."""

import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from archfit.data.prepared import PreparedData
from archfit.spec import Factorised, Linear, Rotary, Tied
from archfit.train import Stopped, train
from tests_training import (
    HERE,
    Recorder,
    checkpoints,
    forked,
    largest_difference,
    one_thread,
    program,
    record_of,
    stored_record,
    tiny_spec,
    write_spec,
)

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SHAPES: dict[str, dict[str, object]] = {
    "usual": {"full_context_tokens": 9},  # three batches: the second process has fewer
    "tied and factorised": {"head": Tied(), "embedding": Factorised(inner=3)},
    "analysed": {"attention": Linear(residual=True, causal=True), "feed_forward": 0},
    "llama": {"block": "llama", "positions": Rotary(), "kv_heads": 1},
    "begun by one process": {"steps": 13},
}


def two_processes(command: list[str], said: Path) -> list[BaseProcess]:
    """What torchrun would start, without the seconds that it takes; the first says it in 0.err."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [
        forked(
            command,
            said=said / str(rank),
            environment=meeting | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(2)
    ]


@dataclass(frozen=True)
class Outcome:
    """What two processes left and said."""

    out: Path
    stdout: str
    stderr: str


@pytest.fixture(scope="module", params=[pytest.param("replicate", marks=pytest.mark.slow), "shard"])
def outcome(
    request: pytest.FixtureRequest, data: PreparedData, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    """All shapes, one after another, by the same two processes; replicated ones by torchrun."""
    out, said = tmp_path_factory.mktemp(request.param), tmp_path_factory.mktemp("said")
    specs = [tiny_spec(data, **changes) for changes in SHAPES.values()]
    with pytest.raises(Stopped):
        train(specs[-1], data, out, HERE, Recorder(stop_after=6))
    files = [word for spec in specs for word in ("--spec", str(write_spec(spec, out)))]
    alone = program(data, out, "--sharding", request.param, *files)
    if request.param == "replicate":
        command = [alone[0], *TORCHRUN, *alone[1:]]
        done = subprocess.run(
            command, env=one_thread(), capture_output=True, text=True, check=False, timeout=100
        )
        assert done.returncode == 0, done.stderr
        return Outcome(out, done.stdout, done.stderr)
    processes = two_processes(alone, said)
    for process in processes:
        process.join(100)
    texts = ["".join((said / f"{r}.{end}").read_text() for r in (0, 1)) for end in ("out", "err")]
    assert [process.exitcode for process in processes] == [0, 0], texts[1]
    return Outcome(out, *texts)


@pytest.mark.parametrize("shape", SHAPES)
def test_two_processes_give_the_losses_of_one(
    data: PreparedData, tmp_path: Path, outcome: Outcome, shape: str
) -> None:
    spec = tiny_spec(data, **SHAPES[shape])
    record = stored_record(outcome.out / spec.name)
    assert largest_difference(record, record_of(spec, data, tmp_path)) < 1e-5
    assert record.machine.devices == 2
    assert record.machine.micro_batch_sequences == 2


def test_only_the_first_process_speaks(outcome: Outcome) -> None:
    assert outcome.stdout.count(f"{len(SHAPES)} runs: held-out loss") == 1
    assert outcome.stderr.count(" begins: ") == len(SHAPES) - 1
    assert outcome.stderr.count(" resumes at step 6: ") == 1
    assert "Warning" not in outcome.stderr


@pytest.mark.slow
def test_two_sharded_processes_of_which_one_is_asked_to_stop_both_do_and_one_goes_on(
    data: PreparedData, tmp_path: Path
) -> None:
    spec = tiny_spec(data, steps=100, evaluation_steps=20)
    run, file = tmp_path / spec.name, str(write_spec(spec, tmp_path))
    arguments = ("--spec", file, "--sharding", "shard", "--checkpoint-seconds", "0")
    processes = two_processes(program(data, tmp_path, *arguments), tmp_path)
    while not checkpoints(run) and all(process.is_alive() for process in processes):
        time.sleep(0.01)
    assert processes[1].pid is not None
    os.kill(processes[1].pid, signal.SIGTERM)
    for process in processes:
        process.join(60)
    said = (tmp_path / "0.err").read_text()
    assert [process.exitcode for process in processes] == [143, 143], said
    step = int(checkpoints(run)[-1].removeprefix("step-"))
    assert said.count(f"archfit: stopped at step {step}; run the same command again to resume") == 1
    assert (tmp_path / "1.err").read_text() == ""
    watch = Recorder()
    record = train(spec, data, tmp_path, HERE, watch)
    assert watch.starts == [step]
    assert largest_difference(record, record_of(spec, data, tmp_path / "alone")) < 1e-5
