"""`archfit train`: one run, or several seeds of it, with progress that a person can read."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.cli import options
from archfit.cli.options import SHAPE, TRAINING, AsJson, chosen, flag, size, word
from archfit.cli.output import say_beyond_rates, show, version_line
from archfit.cli.progress import run_watchers
from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import SAMPLE, DataSettings
from archfit.spec import RunSpec, load_file
from archfit.spec.run_options import ATTENTIONS, RunOptions
from archfit.spec.sizes import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from archfit.train import TrainSettings

MACHINE = "Machine and files"
LARGEST_SPEC = 1 << 20  # bytes
STANDARD_INPUT = Path("-")

DATA = word(
    "Prepared data; left out: the sample archfit ships with. Specs choose among several by their "
    "hash."
)
SPEC = word(
    "spec.json instead of all options of shape and training; repeatable. -: specs from standard "
    "input, one a line, answered by one JSON event a line."
)
FEED_FORWARD = word(
    "Hidden units; attention: 4 heads head_dim. 4 width if left out, 8/3 width in llama.",
    SHAPE,
    "N",
)
MULTIPLE = size("Hidden units over width, instead.", "N", SHAPE)
KV_HEADS = size("Heads of keys and values, if fewer (llama).", "H", SHAPE)
QK_NORM = flag("--qk-norm", "RMS norms of queries and keys (llama).", SHAPE)
EMBEDDING = size("Factorise the input embedding to this inner size.", "R", SHAPE)
POSITIONS = size("Factorise the position table to this inner size.", "R", SHAPE)
HEAD = word("full, tied, or an inner size.", SHAPE)
PATCH = size("Tokens of a position, embedded as one.", "N", SHAPE)
ATTENTION = word("softmax; linear or linear-residual, the analysed networks.", SHAPE)
WARMUP = size("Steps of warm-up; a tenth if left out, three under fan-in.", "N", TRAINING)
RATE = word(
    "At its peak, or auto: fitted to many networks. Left out: 0.032 / sqrt(width), 0.002 for "
    "completep.",
    TRAINING,
)
RULE = word(
    "standard; completep, which keeps the best rate at every size; fan-in, that of auto rates.",
    TRAINING,
)
BETA2 = word("AdamW; 0.999 if left out, 0.95 under fan-in.", TRAINING)
TUNE = flag("--tune", "Also at half and twice the rate; the best is named.", TRAINING)
CLIP = word("Norm above which it is scaled down.", TRAINING)
PRECISION = word("float32, bfloat16, or auto: bfloat16 on a GPU.", TRAINING)
EVALUATE = size("Steps between evaluations; a tenth if left out.", "N", TRAINING)
SEQUENCES = size("Held-out sequences in an evaluation, at most.", "N", TRAINING)
WHOLE_CONTEXT = size("Held-out tokens to predict from a whole context at the end.", "N", TRAINING)
SEED = size("Of weights, batches and dropout.", "N", TRAINING)
SEEDS = size("Train this many, from --seed on.", "N", TRAINING)
SHARDING = word("Under torchrun: auto, replicate or shard (FSDP2).", MACHINE)
KEEP = word("Keep model.safetensors of the finished run.", MACHINE)
TRACK = word("Mirror to tensorboard, wandb, mlflow (a,b).", MACHINE)


def train(
    invocation: typer.Context,
    out: Annotated[Path, word("Folder of runs; each gets a folder in it.")],
    data: Annotated[list[Path] | None, DATA] = None,
    spec: Annotated[list[Path] | None, SPEC] = None,
    depth: Annotated[int, options.DEPTH] = 4,
    width: Annotated[int, options.WIDTH] = 64,
    heads: Annotated[int, options.HEADS] = 2,
    head_dim: Annotated[int | None, options.HEAD_DIM] = None,
    context: Annotated[int, options.CONTEXT] = 128,
    feed_forward: Annotated[str | None, FEED_FORWARD] = None,
    feed_forward_multiple: Annotated[int | None, MULTIPLE] = None,
    embedding_inner: Annotated[int | None, EMBEDDING] = None,
    position_inner: Annotated[int | None, POSITIONS] = None,
    head: Annotated[str, HEAD] = "full",
    patch: Annotated[int | None, PATCH] = None,
    patch_encoding: Annotated[str, word("one-hot or scalar.", SHAPE)] = "one-hot",
    attention: Annotated[str, ATTENTION] = "softmax",
    block: Annotated[str, options.BLOCK] = "gpt2",
    kv_heads: Annotated[int | None, KV_HEADS] = None,
    qk_norm: Annotated[bool, QK_NORM] = False,
    objective: Annotated[str, options.OBJECTIVE] = "causal",
    steps: Annotated[int, size("Training steps.", "N", TRAINING)] = 1500,
    batch: Annotated[int, size("Sequences of a step.", "N", TRAINING)] = 16,
    warmup: Annotated[int | None, WARMUP] = None,
    learning_rate: Annotated[str | None, RATE] = None,
    learning_rate_rule: Annotated[str | None, RULE] = None,
    tune: Annotated[bool, TUNE] = False,
    weight_decay: Annotated[float, word("On matrices.", TRAINING)] = 0.01,
    beta1: Annotated[float, word("AdamW.", TRAINING)] = 0.9,
    beta2: Annotated[float | None, BETA2] = None,
    gradient_clip: Annotated[float, CLIP] = 1.0,
    dropout: Annotated[float, word("Share of units left out.", TRAINING)] = 0.0,
    precision: Annotated[str, PRECISION] = "auto",
    evaluate_every: Annotated[int | None, EVALUATE] = None,
    evaluation_sequences: Annotated[int, SEQUENCES] = 512,
    full_context_tokens: Annotated[int, WHOLE_CONTEXT] = 0,
    seed: Annotated[int, SEED] = 0,
    seeds: Annotated[int, SEEDS] = 1,
    device: Annotated[str, options.DEVICE] = "auto",
    sharding: Annotated[str, SHARDING] = "auto",
    checkpoint_seconds: Annotated[float, options.CHECKPOINT_SECONDS] = 60.0,
    keep_weights: Annotated[bool, KEEP] = True,
    track: Annotated[str, TRACK] = "",
    as_json: AsJson = False,
) -> None:
    """Train a Transformer; interrupted or killed, the same command goes on where it was."""
    _check_choices(device=device, sharding=sharding, attention=attention)
    is_worker = spec == [STANDARD_INPUT]
    read = [] if is_worker else [_read_spec(file) for file in spec or ()]  # before data are made
    datasets = _datasets(data or [], out, is_worker=is_worker)
    settings = _settings(invocation)
    if is_worker:
        return _work(datasets, out, settings)
    specs = list(dict.fromkeys(read)) or _asked_for(invocation, datasets[0])  # each once
    say_beyond_rates(specs)
    return _train_all(specs, datasets[0], out, settings, track=track, as_json=as_json)


def _asked_for(invocation: typer.Context, data: PreparedData) -> list[RunSpec]:
    """The runs that the options describe: every seed, with --tune at three rates."""
    given = invocation.params
    seed, seeds = given["seed"], given["seeds"]
    if not 1 <= seeds <= options.MOST_SEEDS:
        raise ValueError(
            f"--seeds {seeds} is not in 1..{options.MOST_SEEDS}; each of them is a run"
        )
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
    return [made(rate, seed=number) for rate in rates for number in range(seed, seed + seeds)]


def _number_or_word(text: str | None, parse: Callable[[str], float]) -> float | str | None:
    """A number where it is one; which other words there are, the run knows."""
    with contextlib.suppress(ValueError):
        return None if text is None else parse(text)
    return text


def _work(datasets: list[PreparedData], out: Path, settings: TrainSettings) -> None:
    """Train what standard input asks for, and say on standard output how it goes."""
    from archfit.train.worker import serve

    def say(event: dict[str, object]) -> None:
        try:
            typer.echo(json.dumps(event))  # it flushes
        except BrokenPipeError:  # nobody hears it; standard input ends too, and the run is saved
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    serve(sys.stdin, say, datasets, out, settings)


def _datasets(folders: list[Path], out: Path, *, is_worker: bool) -> list[PreparedData]:
    """The data named, else the sample; only a worker's specs choose among several."""
    if not folders:
        return [prepare_data(SAMPLE, out / "sample-data", DataSettings(kind="text")).data]
    datasets = [open_prepared(folder) for folder in folders]
    if len(datasets) > 1 and not is_worker:
        raise ValueError(
            f"--data names {len(datasets)} data sets, and only --spec - chooses among several; "
            "give one of them"
        )
    return datasets


def _check_choices(**words: str) -> None:
    """Refuse an unknown word, and training without torch."""
    choices = {
        "device": ("auto", "cuda", "mps", "cpu"),
        "sharding": ("auto", "replicate", "shard"),
        "attention": tuple(ATTENTIONS),
    }
    for name, given in words.items():
        if given not in choices[name]:
            raise ValueError(f"--{name} {given} is unknown; use one of {', '.join(choices[name])}")
    if importlib.util.find_spec("torch") is None:
        raise ValueError("training needs torch, which is not installed; pip install archfit[train]")


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


def _settings(invocation: typer.Context) -> TrainSettings:
    from archfit.train import TrainSettings

    seconds = invocation.params["checkpoint_seconds"]
    if not seconds >= 0:
        raise ValueError(f"--checkpoint-seconds {seconds} is below 0; use 0 or more")
    return chosen(TrainSettings, invocation, code_version=version_line())


def _train_all(
    specs: list[RunSpec],
    data: PreparedData,
    out: Path,
    settings: TrainSettings,
    *,
    track: str,
    as_json: bool,
) -> None:
    from archfit.train import Stopped, Watchers, train_together
    from archfit.train.trackers import trackers

    names = tuple(name.strip() for name in track.split(",") if name.strip()) if _leads() else ()
    silent = as_json or not _leads()
    with run_watchers(len(specs), silent=silent) as watched, contextlib.ExitStack() as at_the_end:
        watchers = []
        for spec, watcher in zip(specs, watched, strict=True):
            mirrors = trackers(names, out / spec.name, watcher.notice)
            for mirror in mirrors:
                at_the_end.callback(mirror.close)
            watchers.append(Watchers(watcher, *mirrors))
        try:
            records = train_together(specs, data, out, settings, watchers)
        except Stopped as stopped:
            if _leads():
                typer.echo(f"archfit: {stopped}", err=True)
            raise SystemExit(128 + stopped.signal_number) from stopped  # all is said
    if _leads():
        from archfit.report.sweep_document import runs_document

        show(runs_document(records, str(out)), as_json=as_json)


def _leads() -> bool:
    """Whether this is the one of torchrun's processes that speaks."""
    return os.environ.get("RANK", "0") == "0"
