"""`archfit train`: one run, or several seeds of it, with progress that a person can read."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from archfit.cli.options import MOST_SEEDS, chosen, with_words
from archfit.cli.output import manner, say_beyond_rates, say_stopped, show
from archfit.cli.progress import run_watchers
from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import SAMPLE, DataSettings
from archfit.report.page import version_line
from archfit.spec import RunSpec, load_file
from archfit.spec.errors import check_at_least, check_choice, check_real, refuse_if
from archfit.spec.files import LARGEST_SPEC
from archfit.spec.run_options import ATTENTIONS, RunOptions
from archfit.spec.sizes import parse_size
from archfit.sweep.runner import DEVICES

if TYPE_CHECKING:
    from collections.abc import Callable

    from archfit.train import TrainSettings

STANDARD_INPUT = Path("-")


@with_words("train", fields_of=RunOptions)
def train(
    invocation: typer.Context,
    out: Path,
    data: list[Path] | None = None,
    spec: list[Path] | None = None,
    feed_forward: str | None = None,
    head: str = "full",
    attention: str = "softmax",
    learning_rate: str | None = None,
    tune: bool = False,
    precision: str = "auto",
    seed: int = 0,
    seeds: int = 1,
    device: str = "auto",
    threads: int | None = None,
    sharding: str = "auto",
    checkpoint_seconds: float = 60.0,
    keep_weights: bool = True,
    track: str = "",
    **_fields: object,
) -> None:
    """Train a network. Run the same command again to resume."""
    check_choice(DEVICES, device=device)
    check_choice(("auto", "replicate", "shard"), sharding=sharding)
    check_choice(tuple(ATTENTIONS), attention=attention)
    check_real(0, math.inf, checkpoint_seconds=checkpoint_seconds)
    check_real(1, MOST_SEEDS, seeds=seeds)
    _use_threads(threads)
    is_worker = spec == [STANDARD_INPUT]
    read = [] if is_worker else [_read_spec(file) for file in spec or ()]  # before data are made
    datasets = _datasets(data or [], out, is_worker=is_worker)
    from archfit.train import TrainSettings

    settings = chosen(TrainSettings, invocation, code_version=version_line())
    if is_worker:
        from archfit.train.together import serve

        # Where nobody hears it any more, standard input ends too, and the run is saved.
        return serve(sys.stdin, lambda it: typer.echo(json.dumps(it)), datasets, out, settings)
    specs = list(dict.fromkeys(read)) or _asked_for(invocation, datasets[0])  # each once
    say_beyond_rates(specs)
    return _train_all(specs, datasets[0], out, settings, track=track)


def _asked_for(invocation: typer.Context, data: PreparedData) -> list[RunSpec]:
    """The runs that the options describe: every seed, with --tune at three rates."""
    given = invocation.params
    wanted = chosen(
        RunOptions,
        invocation,
        precision=_precision(given["precision"], given["device"]),
        head=_number_or_word(given["head"], parse_size),
        feed_forward=_number_or_word(given["feed_forward"], parse_size),
        learning_rate=_number_or_word(given["learning_rate"], float),
    )
    made = partial(RunOptions.spec, vocab=data.vocab, data_hash=data.data_hash)
    rates = wanted.neighbours() if given["tune"] else (wanted,)
    seeds = range(given["seed"], given["seed"] + given["seeds"])
    return [made(rate, seed=seed) for rate in rates for seed in seeds]


def _number_or_word(text: str | None, parse: Callable[[str], float]) -> float | str | None:
    """A number where it is one; which other words there are, the run knows."""
    with contextlib.suppress(ValueError):
        return None if text is None else parse(text)
    return text


def _datasets(folders: list[Path], out: Path, *, is_worker: bool) -> list[PreparedData]:
    """The data named, else the sample; only a worker's specs choose among several."""
    if not folders:
        return [prepare_data(SAMPLE, out / "sample-data", DataSettings(kind="text")).data]
    datasets = [open_prepared(folder) for folder in folders]
    is_choice = len(datasets) > 1 and not is_worker
    refuse_if(is_choice, "train-data", count=len(datasets))
    return datasets


def _use_threads(wanted: int | None) -> None:
    """One, as in a sweep, unless more are asked for: they decide the last bit, and on a busy
    machine they wait for each other."""
    refuse_if(importlib.util.find_spec("torch") is None, "no-torch")
    import torch

    if wanted is not None:
        check_at_least(1, threads=wanted)
    if wanted is not None or "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(wanted or 1)


def _precision(wanted: str, device: str) -> str:
    """bfloat16 on a GPU, float32 elsewhere: some CPUs advertise bfloat16 and then fail."""
    if wanted != "auto":
        return wanted
    from archfit.train.hardware import choose_device

    return "bfloat16" if choose_device(device) == "cuda" else "float32"


def _read_spec(file: Path) -> RunSpec:
    try:
        return load_file(RunSpec, file, most_bytes=LARGEST_SPEC)
    except ValueError as problem:
        raise ValueError(f"{file} holds no spec: {problem}") from problem


def _train_all(
    specs: list[RunSpec], data: PreparedData, out: Path, settings: TrainSettings, *, track: str
) -> None:
    from archfit.train import Stopped, Watchers, train_together
    from archfit.train.trackers import trackers

    names = tuple(name.strip() for name in track.split(",") if name.strip()) if _leads() else ()
    silent = manner().is_silent or not _leads()
    try:
        with run_watchers(len(specs), silent=silent) as watched, contextlib.ExitStack() as at_end:
            watchers = []
            for spec, watcher in zip(specs, watched, strict=True):
                mirrors = trackers(names, out / spec.name, watcher.notice)
                for mirror in mirrors:
                    at_end.callback(mirror.close)
                watchers.append(Watchers(watcher, *mirrors))
            records = train_together(specs, data, out, settings, watchers)
    except Stopped as stopped:  # said when the bars are gone
        if _leads():
            say_stopped(f"{stopped}")
        raise SystemExit(128 + stopped.signal_number) from stopped
    if _leads():
        from archfit.report.sweep_document import runs_document

        show(runs_document(records, str(out)))


def _leads() -> bool:
    """Whether this is the one of torchrun's processes that speaks."""
    return os.environ.get("RANK", "0") == "0"
