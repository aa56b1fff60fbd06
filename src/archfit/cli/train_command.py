"""`archfit train`: one run, or several seeds of it, with progress that a person can read."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.cli.options import size_option
from archfit.cli.output import print_json, print_table, version_line
from archfit.cli.train_progress import watchers as shown_progress
from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import SAMPLE, DataSettings
from archfit.spec import RunRecord, RunSpec, load_file, to_json
from archfit.spec.asked import ATTENTIONS, AskedRun
from archfit.spec.sizes import parse_size

if TYPE_CHECKING:
    from archfit.train import Settings

Shape, Training, Machine = "Shape", "Training", "Machine and files"
LARGEST_SPEC = 1 << 20  # bytes
MOST_SEEDS = 1000
STANDARD_INPUT = Path("-")


def size(text: str, panel: str) -> typer.models.OptionInfo:
    """An option for a whole number as people write it."""
    option: typer.models.OptionInfo = typer.Option(
        parser=size_option, metavar="N", help=text, rich_help_panel=panel
    )
    return option


def train(
    out: Annotated[Path, typer.Option(help="Folder of runs; each gets a folder in it.")],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Prepared data; left out: the sample archfit ships with. "
            "Specs choose among several by their hash."
        ),
    ] = None,
    spec: Annotated[
        list[Path] | None,
        typer.Option(
            help="spec.json instead of all options of shape and training; repeatable. "
            "-: specs from standard input, one a line, answered by one JSON event a line."
        ),
    ] = None,
    depth: Annotated[int, size("Blocks.", Shape)] = 4,
    width: Annotated[int, size("Residual stream.", Shape)] = 64,
    heads: Annotated[int, size("Attention heads.", Shape)] = 2,
    head_dim: Annotated[
        int | None, size("Size of a head; width / heads if left out.", Shape)
    ] = None,
    context: Annotated[int, size("Positions seen at once.", Shape)] = 128,
    feed_forward_multiple: Annotated[
        int | None, size("Hidden units of the feed-forward layer over width.", Shape)
    ] = None,
    embedding_inner: Annotated[
        int | None, size("Factorise the input embedding to this inner size.", Shape)
    ] = None,
    position_inner: Annotated[
        int | None, size("Factorise the position table to this inner size.", Shape)
    ] = None,
    head: Annotated[
        str, typer.Option(help="full, tied, or an inner size.", rich_help_panel=Shape)
    ] = "full",
    patch: Annotated[int | None, size("Tokens of a position, embedded as one.", Shape)] = None,
    patch_encoding: Annotated[
        str, typer.Option(help="one-hot or scalar.", rich_help_panel=Shape)
    ] = "one-hot",
    attention: Annotated[
        str,
        typer.Option(
            help="softmax; linear or linear-residual, the analysed networks.", rich_help_panel=Shape
        ),
    ] = "softmax",
    steps: Annotated[int, size("Training steps.", Training)] = 1500,
    batch: Annotated[int, size("Sequences of a step.", Training)] = 16,
    warmup: Annotated[int | None, size("Steps of warm-up; a tenth if left out.", Training)] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="At its peak; 0.032 / sqrt(width) if left out, 0.002 for completep.",
            rich_help_panel=Training,
        ),
    ] = None,
    learning_rate_rule: Annotated[
        str,
        typer.Option(
            help="standard, or completep, which keeps the best rate at every depth and width.",
            rich_help_panel=Training,
        ),
    ] = "standard",
    weight_decay: Annotated[
        float, typer.Option(help="On matrices.", rich_help_panel=Training)
    ] = 0.01,
    beta1: Annotated[float, typer.Option(help="AdamW.", rich_help_panel=Training)] = 0.9,
    beta2: Annotated[float, typer.Option(help="AdamW.", rich_help_panel=Training)] = 0.999,
    gradient_clip: Annotated[
        float, typer.Option(help="Norm above which it is scaled down.", rich_help_panel=Training)
    ] = 1.0,
    dropout: Annotated[float, typer.Option(rich_help_panel=Training)] = 0.0,
    precision: Annotated[
        str,
        typer.Option(
            help="float32, bfloat16, or auto: bfloat16 on a GPU.", rich_help_panel=Training
        ),
    ] = "auto",
    evaluate_every: Annotated[
        int | None, size("Steps between evaluations; a tenth if left out.", Training)
    ] = None,
    evaluation_sequences: Annotated[
        int, size("Held-out sequences in an evaluation, at most.", Training)
    ] = 512,
    full_context_tokens: Annotated[
        int, size("Held-out tokens to predict each from a whole context at the end.", Training)
    ] = 0,
    seed: Annotated[int, size("Of weights, batches and dropout.", Training)] = 0,
    seeds: Annotated[int, size("Train this many, from --seed on.", Training)] = 1,
    device: Annotated[
        str, typer.Option(help="auto, cuda, mps or cpu.", rich_help_panel=Machine)
    ] = "auto",
    sharding: Annotated[
        str,
        typer.Option(
            help="Under torchrun: auto, replicate or shard (FSDP2).", rich_help_panel=Machine
        ),
    ] = "auto",
    checkpoint_seconds: Annotated[
        float, typer.Option(help="From one checkpoint to the next.", rich_help_panel=Machine)
    ] = 60.0,
    keep_weights: Annotated[
        bool,
        typer.Option(help="Keep model.safetensors of the finished run.", rich_help_panel=Machine),
    ] = True,
    track: Annotated[
        str,
        typer.Option(help="Mirror to tensorboard, wandb, mlflow (a,b).", rich_help_panel=Machine),
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """Train a Transformer; interrupted or killed, the same command goes on where it was."""
    _check_choices(device=device, sharding=sharding, attention=attention)
    if not 1 <= seeds <= MOST_SEEDS:
        raise ValueError(f"--seeds {seeds} is not in 1..{MOST_SEEDS}; each of them is a run")
    _require_torch()
    is_worker = spec == [STANDARD_INPUT]
    read = [] if is_worker else [_read_spec(file) for file in spec or ()]  # before data are made
    datasets = [open_prepared(one) for one in data] if data else [_prepared_sample(out)]
    settings = _settings(device, sharding, checkpoint_seconds, keep_weights)
    if is_worker:
        _work(datasets, out, settings)
        return
    prepared = _only(datasets)
    asked = AskedRun(
        depth=depth, width=width, heads=heads, head_dim=head_dim, context=context,
        feed_forward_multiple=feed_forward_multiple, embedding_inner=embedding_inner,
        position_inner=position_inner, head=_head(head), patch=patch,
        patch_encoding=patch_encoding, attention=attention, steps=steps, batch=batch,
        warmup=warmup, learning_rate=learning_rate, learning_rate_rule=learning_rate_rule,
        weight_decay=weight_decay, beta1=beta1, beta2=beta2, gradient_clip=gradient_clip,
        dropout=dropout, precision=_precision(precision, device), evaluate_every=evaluate_every,
        evaluation_sequences=evaluation_sequences, full_context_tokens=full_context_tokens,
    )  # fmt: skip
    if read:
        specs = list(dict.fromkeys(read))  # each once
    else:
        specs = [
            asked.spec(vocab=prepared.vocab, data_hash=prepared.data_hash, seed=one)
            for one in range(seed, seed + seeds)
        ]
    _train_all(specs, prepared, out, settings, track=track, as_json=as_json)


def _work(datasets: list[PreparedData], out: Path, settings: Settings) -> None:
    """Train what standard input asks for, and say on standard output how it goes."""
    from archfit.train.worker import serve

    def say(event: dict[str, object]) -> None:
        try:
            typer.echo(json.dumps(event))  # it flushes
        except BrokenPipeError:  # nobody hears it; standard input ends too, and the run is saved
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    serve(sys.stdin, say, datasets, out, settings)


def _only(datasets: list[PreparedData]) -> PreparedData:
    if len(datasets) > 1:
        raise ValueError(
            f"--data names {len(datasets)} data sets, and only --spec - chooses among several; "
            "give one of them"
        )
    return datasets[0]


def _check_choices(**words: str) -> None:
    choices = {
        "device": ("auto", "cuda", "mps", "cpu"),
        "sharding": ("auto", "replicate", "shard"),
        "attention": tuple(ATTENTIONS),
    }
    for name, word in words.items():
        if word not in choices[name]:
            raise ValueError(f"--{name} {word} is unknown; use one of {', '.join(choices[name])}")


def _head(text: str) -> str | int:
    """full or tied as they are, anything else as a size."""
    if text in ("full", "tied"):
        return text
    try:
        return parse_size(text)
    except ValueError as problem:
        raise ValueError(f"head={text!r} is unknown; use full, tied, or an inner size") from problem


def _require_torch() -> None:
    if importlib.util.find_spec("torch") is None:
        raise ValueError("training needs torch, which is not installed; pip install archfit[train]")


def _precision(wanted: str, device: str) -> str:
    """bfloat16 on a GPU, float32 elsewhere: some CPUs advertise bfloat16 and then fail."""
    if wanted != "auto":
        return wanted
    from archfit.train.devices import choose_device

    return "bfloat16" if choose_device(device) == "cuda" else "float32"


def _prepared_sample(out: Path) -> PreparedData:
    return prepare_data(SAMPLE, out / "sample-data", DataSettings(kind="text")).data


def _read_spec(file: Path) -> RunSpec:
    try:
        return load_file(RunSpec, file, most_bytes=LARGEST_SPEC)
    except ValueError as problem:
        raise ValueError(f"{file} holds no spec: {problem}") from problem


def _settings(
    device: str, sharding: str, checkpoint_seconds: float, keep_weights: bool
) -> Settings:
    from archfit.train import Settings

    if not checkpoint_seconds >= 0:
        raise ValueError(f"--checkpoint-seconds {checkpoint_seconds} is below 0; use 0 or more")
    return Settings(
        device=device,  # type: ignore[arg-type]  # checked
        sharding=sharding,  # type: ignore[arg-type]  # checked
        checkpoint_seconds=checkpoint_seconds,
        keep_weights=keep_weights,
        code_version=version_line(),
    )


def _train_all(
    specs: list[RunSpec],
    data: PreparedData,
    out: Path,
    settings: Settings,
    *,
    track: str,
    as_json: bool,
) -> None:
    from archfit.train import Stopped, Watchers, train_together
    from archfit.train.trackers import trackers

    names = tuple(name.strip() for name in track.split(",") if name.strip()) if _leads() else ()
    silent = as_json or not _leads()
    with shown_progress(len(specs), silent=silent) as shown, contextlib.ExitStack() as at_the_end:
        watchers = []
        for spec, one in zip(specs, shown, strict=True):
            mirrors = trackers(names, out / spec.name, one.notice)
            for mirror in mirrors:
                at_the_end.callback(mirror.close)
            watchers.append(Watchers(one, *mirrors))
        try:
            records = train_together(specs, data, out, settings, watchers)
        except Stopped as stopped:
            if _leads():
                typer.echo(f"archfit: {stopped}", err=True)
            raise SystemExit(128 + stopped.signal_number) from stopped  # all is said
    _show(records, out, as_json=as_json)


def _show(records: list[RunRecord], out: Path, *, as_json: bool) -> None:
    if not _leads():
        return
    if as_json:
        documents = [
            {"folder": str(out / record.spec.name), "record": to_json(record)} for record in records
        ]
        print_json(documents[0] if len(documents) == 1 else {"runs": documents})
        return
    print_table(str(out), ("run", "seed", "status", "held-out nats", "bits a byte"), [
        _row(record) for record in records
    ])  # fmt: skip


def _leads() -> bool:
    """Whether this is the one of torchrun's processes that speaks."""
    return os.environ.get("RANK", "0") == "0"


def _row(record: RunRecord) -> tuple[str, ...]:
    name, seed = record.spec.name, str(record.spec.seed)
    if record.status == "diverged":
        return name, seed, f"diverged at step {record.diverged_at_step}", "-", "-"
    last = record.evaluations[-1]
    nats, bits = last.heldout_nats_per_token, last.heldout_bits_per_byte
    return name, seed, record.status, f"{nats:.4f}", f"{bits:.4f}"
