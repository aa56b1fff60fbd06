"""`archfit data` and `archfit train`: token shards, and a run, or several seeds of it, on them."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from archfit.cli.progress import run_watchers, say_beyond_rates
from archfit.cli.shared import MANNER, MOST_SEEDS, bar, print_json, say_stopped, show, with_words
from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import DataSettings, guess_kind
from archfit.report.page import version_line
from archfit.report.sweep_document import data_document, runs_document
from archfit.spec import RunSpec, load_file
from archfit.spec.data_kinds import DATA_KINDS, SAMPLE
from archfit.spec.errors import check_at_least, check_choice, check_real, refuse_if
from archfit.spec.files import LARGEST_SPEC
from archfit.spec.run_options import ATTENTIONS, RunOptions
from archfit.spec.sizes import parse_size
from archfit.sweep.runner import DEVICES

if TYPE_CHECKING:
    from archfit.train import TrainSettings

STANDARD_INPUT = Path("-")
NUMBERS: dict[str, Callable[[str], float]] = {  # options that may be numbers
    "head": parse_size, "feed_forward": parse_size, "learning_rate": float,
}  # fmt: skip


@with_words("data prepare", DataSettings, kinds=DATA_KINDS)
def prepare(
    out: Path,
    source: str = SAMPLE,
    kind: str = "",
    heldout: str = "",
    field: str = "",
    heldout_field: str = "",
    columns: str = "",
    overwrite: bool = False,
    **others: Any,
) -> None:
    """Turn files into tokens: train.bin, heldout.bin (nanoGPT layout), tokenizer and data.json."""
    settings = DataSettings(
        **others,
        kind=kind or guess_kind(source),
        field=field or None,
        heldout_field=heldout_field or None,
        columns=tuple(name.strip() for name in columns.split(",") if name.strip()),
    )
    with bar("reading", of_bytes=True) as report:
        outcome = prepare_data(
            source, out, settings, heldout=heldout or None, overwrite=overwrite, report=report
        )
    there = "It was there already, made from this source with these settings."
    _show(outcome.data, *[there] * outcome.already_there)


@with_words("data inspect")
def inspect(folder: Path, verify: bool = False) -> None:
    """Show what a prepared data set holds."""
    data = open_prepared(folder)
    if verify:
        data.verify()
    _show(data, *["All files are as they were written: their hashes agree."] * verify)


def _show(data: PreparedData, *sentences: str) -> None:
    if MANNER.get().as_json:  # also of a data set whose description is damaged
        return print_json(data.description)
    return show(data_document(data.description, str(data.folder), *sentences))


@with_words("train", RunOptions)
def train(
    out: Path,
    data: list[Path] | None = None,
    spec: list[Path] | None = None,
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
    **run: Any,
) -> None:
    """Train a network. Run the same command again to resume."""
    check_choice(DEVICES, device=device)
    check_choice(("auto", "replicate", "shard"), sharding=sharding)
    check_choice(tuple(ATTENTIONS), attention=run["attention"])
    check_real(0, math.inf, checkpoint_seconds=checkpoint_seconds)
    check_real(1, MOST_SEEDS, seeds=seeds)
    _use_threads(threads)
    is_worker = spec == [STANDARD_INPUT]
    read = [] if is_worker else [_read_spec(file) for file in spec or ()]  # before data are made
    datasets = _datasets(data or [], out, is_worker=is_worker)
    from archfit.train import TrainSettings

    machine: dict[str, Any] = {"device": device, "sharding": sharding, "keep_weights": keep_weights}
    machine |= {"checkpoint_seconds": checkpoint_seconds, "code_version": version_line()}
    settings = TrainSettings(**machine)
    if is_worker:
        from archfit.train.together import serve

        # Where nobody hears it any more, standard input ends too, and the run is saved.
        return serve(sys.stdin, lambda it: typer.echo(json.dumps(it)), datasets, out, settings)
    specs = list(dict.fromkeys(read))  # each once
    if not specs:
        run["precision"] = _precision(precision, device)
        specs = _asked_for(run, datasets[0], range(seed, seed + seeds), tune=tune)
    say_beyond_rates(specs)
    return _train_all(specs, datasets[0], out, settings, track=track)


def _asked_for(
    options: dict[str, Any], data: PreparedData, seeds: range, *, tune: bool
) -> list[RunSpec]:
    """The runs that the options describe: every seed, with --tune at three rates."""
    for name, number in NUMBERS.items():  # other words are for the run to know
        with contextlib.suppress(ValueError):
            options[name] = None if options[name] is None else number(options[name])
    made = partial(RunOptions(**options).spec, vocab=data.vocab, data_hash=data.data_hash)
    specs = [made(seed=seed) for seed in seeds]
    factors = (0.5, 1.0, 2.0) if tune else (1.0,)
    return [spec.at_rate(factor) for factor in factors for spec in specs]


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

    check_at_least(1, threads=1 if wanted is None else wanted)
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

    leads = os.environ.get("RANK", "0") == "0"  # of torchrun's processes this one speaks
    names = tuple(name.strip() for name in track.split(",") if name.strip()) if leads else ()
    silent = MANNER.get().is_silent or not leads
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
        if leads:
            say_stopped(f"{stopped}")
        raise SystemExit(128 + stopped.signal_number) from stopped
    if leads:
        show(runs_document(records, str(out)))
