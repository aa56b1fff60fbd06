"""What the tests of training share: tiny data, tiny runs, and the program as a process."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData
from archfit.data.sources import DataSettings
from archfit.spec import (
    Recipe,
    RunRecord,
    RunSpec,
    canonical_json,
    loads,
    standard_architecture,
)
from archfit.train import Progress, TrainSettings, Watchers, train

HERE = TrainSettings(
    device="cpu", sharding="auto", checkpoint_seconds=1e9, keep_weights=True, code_version="test"
)
RECIPE = Recipe(
    steps=12,
    batch_sequences=4,
    warmup_steps=2,
    peak_learning_rate=4e-3,
    learning_rate_rule="standard",
    weight_decay=0.01,
    beta1=0.9,
    beta2=0.999,
    gradient_clip=1.0,
    dropout=0.0,
    precision="float32",
    evaluation_steps=5,
    evaluation_sequences=7,
    full_context_tokens=0,
)
HELDOUT = b"to be or not to be, that is the question; " * 12


def tiny_data(folder: Path) -> PreparedData:
    """Bytes with some order in them, and a held-out side of its own."""
    draws = np.random.default_rng(0).integers(0, 26, 3000)
    words = "".join(chr(97 + draw) + ("e " if draw % 3 else "") for draw in draws)
    (folder / "train.txt").write_text(words)
    (folder / "heldout.txt").write_bytes(HELDOUT)
    source, heldout = str(folder / "train.txt"), str(folder / "heldout.txt")
    return prepare(source, folder / "data", DataSettings(kind="bytes"), heldout=heldout).data


def tiny_spec(data: PreparedData, **changes: object) -> RunSpec:
    """A run of milliseconds; `changes` are fields of its recipe or of its architecture."""
    shape = standard_architecture(depth=2, width=16, heads=2, vocab=data.vocab, context=12)
    in_recipe = {name: value for name, value in changes.items() if hasattr(RECIPE, name)}
    in_shape = {name: value for name, value in changes.items() if name not in in_recipe}
    if "width" in in_shape:
        in_shape = {"feed_forward": 4 * int(str(in_shape["width"])), **in_shape}
    return RunSpec(
        architecture=replace(shape, **in_shape),  # type: ignore[arg-type]  # it checks
        data_hash=data.data_hash,
        recipe=replace(RECIPE, **in_recipe),  # type: ignore[arg-type]  # it checks
        seed=0,
    )


class Recorder(Watchers):
    """Keeps what it is told, and may ask the run to stop after a step."""

    def __init__(self, *, stop_after: int = 0) -> None:
        super().__init__()
        self.stop_after = stop_after
        self.starts: list[int] = []
        self.losses: list[float] = []
        self.notices: list[str] = []

    def started(self, spec: RunSpec, step: int) -> None:
        del spec
        self.starts.append(step)

    def progress(self, progress: Progress) -> None:
        self.losses.append(progress.training_nats_per_token)
        if progress.step == self.stop_after:
            os.kill(os.getpid(), signal.SIGTERM)

    def notice(self, sentence: str) -> None:
        self.notices.append(sentence)


def record_of(spec: RunSpec, data: PreparedData, out: Path) -> RunRecord:
    return train(spec, data, out, HERE, Watchers())


def stored_record(run: Path) -> RunRecord:
    return loads(RunRecord, (run / "record.json").read_text())


def checkpoints(run: Path) -> list[str]:
    """Names of those that are there, oldest first."""
    return sorted(path.name for path in run.glob("checkpoint/step-*"))


def write_spec(spec: RunSpec, folder: Path) -> Path:
    path = folder / f"{spec.name}.json"
    path.write_text(canonical_json(spec))
    return path


def program(data: PreparedData, out: Path, *arguments: str) -> list[str]:
    """The command line that trains, in a process of its own."""
    start = [sys.executable, "-m", "archfit", "train", "--data", str(data.folder)]
    return [*start, "--out", str(out), "--device", "cpu", *arguments]


FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(
    ["archfit.cli.train_commands", "archfit.train.together", "torch.distributed.fsdp"]
)


def forked(
    command: list[str], *, said: Path | None = None, environment: Mapping[str, str] | None = None
) -> BaseProcess:
    """The same command line in a process that need not load torch: it is a copy of one that has.

    What it says goes to the files `said`.out and `said`.err.
    """
    process = FORKING.Process(
        target=_run_program, args=(command[command.index("train") :], said, environment or {})
    )
    process.start()
    return process


def _run_program(words: list[str], said: Path | None, environment: Mapping[str, str]) -> None:
    import torch

    from archfit.cli.app import main

    os.environ.update(environment)
    torch.set_num_threads(1)
    for descriptor, ending in ((1, ".out"), (2, ".err")):
        path = os.devnull if said is None else str(said) + ending
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644), descriptor)
    sys.argv = ["archfit", *words]
    main()


def one_thread() -> dict[str, str]:
    """The environment of a child."""
    return os.environ | {"OMP_NUM_THREADS": "1"}


def largest_difference(first: RunRecord, second: RunRecord) -> float:
    """Between their losses, nats per token; the steps must be the same."""
    assert [e.step for e in first.evaluations] == [e.step for e in second.evaluations]
    pairs = [
        (getattr(one, name), getattr(other, name))
        for one, other in zip(first.evaluations, second.evaluations, strict=True)
        for name in ("training_nats_per_token", "heldout_nats_per_token")
    ]
    if first.full_context is not None:
        assert second.full_context is not None
        both = first.full_context, second.full_context
        pairs.append((both[0].heldout_nats_per_token, both[1].heldout_nats_per_token))
    return max(abs(float(one - other)) for one, other in pairs)
