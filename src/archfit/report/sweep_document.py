"""Sweeps, training runs and prepared data as documents."""

import math
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TypeVar

from archfit.advise.budgets import known_speed
from archfit.fit.noise import LEAST_DEGREES
from archfit.report.document import NEXT, Command, Document, Section, Table, counted, facts, json_of
from archfit.spec import Factorised, RunRecord, RunSpec, to_json
from archfit.spec.data_kinds import DATA_KINDS
from archfit.spec.gpu_cost import gpu_seconds
from archfit.sweep.runner import CellQueue
from archfit.sweep.sweep import Sweep

SECONDS_A_DAY = 86400
LONGEST_ON_CPU = 3600  # seconds of a sweep that one would train there
MOST_ROWS = 4  # of a table beside the answer
SIZES = {500_000_000: "100M", 50_000_000: "10M", 0: "1M"}  # of networks, by tokens to train on
ENDS = ("done", "failed", "skipped", "elsewhere")  # of a sweep's cells
Part = TypeVar("Part")


def cells_document(sweep: Sweep) -> Document:
    """A sweep before it is trained: runs, parameters, tokens, FLOPs and the GPU time they take."""
    tokens = sum(spec.training_tokens for spec in sweep.specs)
    flops = sum(spec.training_flops for spec in sweep.specs)
    each = {spec: gpu_seconds(spec) / SECONDS_A_DAY for spec in sweep.specs}
    days = sum(each.values())
    time = _time_words(days * SECONDS_A_DAY)
    on_cpu = sum(known_speed("cpu").seconds_of(spec) for spec in sweep.specs)
    if on_cpu < LONGEST_ON_CPU:
        time = f"{_time_words(on_cpu)} on two CPU cores, {time}"
    title = f"{sweep.name}, {sweep.scale}: {counted(len(sweep.specs), 'run')}"
    computed = {"cell": run_words, "time": lambda spec: _time_words(gpu_seconds(spec))}
    table = Table.of("sweep", sweep.specs, title=title, **computed)
    runs = [json_of("cell", spec, gpu_days=taken) for spec, taken in each.items()]
    of_runs = {"runs": runs, "tokens": tokens, "flops": flops, "gpu_days": days}
    shapes = sorted({spec.architecture.params for spec in sweep.specs})
    about = (
        *filter(None, [sweep.question]),  # a user's own sweep need not have one
        f"Networks of {shapes[0]:,} to {shapes[-1]:,} parameters, {tokens:.3g} tokens, "
        f"{flops:.3g} FLOPs in all. Times are from networks that we timed (docs/performance.md).",
    )
    return Document(
        title=title,
        headline=f"{title}, about {time} on one H200. Nothing was trained.",
        sections=(
            Section.of("", *about),
            Section.of(NEXT, "The same command without --dry-run and with --out DIR trains them."),
            Section.of("", table, is_why=True),
        ),
        data=json_of("sweep", sweep, cells=len(runs), none=0, **of_runs),
    )


def script_document(sweep: Sweep, file: str, tasks: int) -> Document:
    """The script by which Slurm trains a sweep."""
    counts = {"cells": len(sweep.specs), "done": 0, "failed": 0, "skipped": 0}
    what = f"{counted(tasks, 'task')} for {counted(len(sweep.specs), 'run')}"
    return Document(
        title=sweep.name,
        headline=f"{file}: {what}. Nothing was trained.",
        sections=(Section.of(NEXT, Command(f"sbatch {file}")),),
        data={"sweep": sweep.name, **counts, "script": file, "tasks": tasks},
    )


def outcome_document(
    cells: CellQueue, sweep: Sweep, *, folder: str, results: str, conclusions: Sequence[str]
) -> Document:
    """How a sweep ended, and what follows from its runs so far."""
    parts = [f"{len(cells.done)} done now", f"{len(cells.skipped)} done before"]
    if cells.elsewhere:
        parts.append(f"{len(cells.elsewhere)} trained by others")
    if cells.failed:
        parts.append(f"{len(cells.failed)} failed")
    failures = [
        {"run": spec.name, "cell": run_words(spec), "reason": reason}
        for spec, reason in cells.failed.items()
    ]
    title, rows = "Failed runs", tuple(tuple(row.values()) for row in failures)
    failed = Table(title=title, columns=("run", "network", "reason"), rows=rows)
    reasons, ends = cells.failed.values(), {name: len(getattr(cells, name)) for name in ENDS}
    found = {"failures": failures, "folder": folder, "results": results, "cells": cells.total}
    return Document(
        title=sweep.name,
        headline=f"{sweep.name}: {counted(len(sweep.specs), 'run')}, {', '.join(parts)}",
        sections=(
            Section.of("", *(f"Failed: {reason}" for reason in dict.fromkeys(reasons))),
            Section.of("", *conclusions),
            Section.of(NEXT, Command(f"archfit report {shlex.quote(folder)} --out report.html")),
            Section.of("Question", *filter(None, [sweep.question]), is_why=True),
            Section.of("Table of runs", results, is_why=True),
            Section.of("", failed, is_why=True),
        ),
        data=json_of("sweep-outcome", sweep, conclusions=tuple(conclusions), **ends, **found),
        status="failed" if failures else "",
    )


def run_words(spec: RunSpec) -> str:
    """A run in a few words: what sweeps change."""
    shape = spec.architecture
    words = [f"depth {shape.depth} width {shape.width} vocab {shape.input.vocab}"]
    if shape.attention_ratio != 1:
        words.append(f"attention {shape.attention_ratio:g}")
    if shape.input.tokens_per_position > 1:
        words.append(f"patch {shape.input.tokens_per_position}")
    words += [shape.block] if shape.block != "gpt2" else []
    words += [shape.objective] if shape.objective != "causal" else []
    tables = {"input": shape.embedding, "positions": shape.positions, "head": shape.head}
    for name, table in tables.items():
        if isinstance(table, Factorised):
            words.append(f"{name} rank {table.inner}")
    return f"{', '.join(words)}, seed {spec.seed}"


def clock_words(seconds: float) -> str:
    """Hours, minutes and seconds as clocks show them."""
    whole, rest = divmod(round(seconds), 60)
    hours, left = divmod(whole, 60)
    return f"{hours}:{left:02}:{rest:02}" if hours else f"{left}:{rest:02}"


def _time_words(seconds: float) -> str:
    if seconds > SECONDS_A_DAY:
        return f"{seconds / SECONDS_A_DAY:,.1f} GPU-days"
    return f"{seconds:.0f} seconds" if seconds < 60 else f"{seconds / 60:.1f} minutes"


def runs_document(records: Sequence[RunRecord], folder: str) -> Document:
    """Training runs with their held-out losses; `folder` holds a folder for each."""
    documents = [
        {"folder": f"{folder}/{record.spec.name}", "record": to_json(record)} for record in records
    ]
    is_masked = all(record.spec.architecture.objective == "masked" for record in records)
    losses = ("masked nats", "masked bits") if is_masked else ("held-out nats", "bits per byte")
    table = Table(
        title=folder,
        columns=("run", "seed", "rate", "status", *losses),
        rows=tuple(_run_row(record) for record in records),
    )
    ended = [record for record in records if record.status == "finished"]
    headline = "No run finished: all diverged. Try a lower --learning-rate."
    if ended:
        last = [float(_run_row(record)[-2]) for record in ended]
        (_, *_, nats, bits), what = _run_row(ended[0]), losses[1].replace("masked bits", "bits")
        headline = f"Held-out loss {nats} nats per token ({bits} {what})"
        if len(records) > 1:
            runs = counted(len(records), "run")
            headline = f"{runs}: held-out loss {min(last):.4f} to {max(last):.4f} nats per token"
    diverged = [record for record in records if record.status != "finished"]
    return Document(
        title=folder,
        headline=headline,
        sections=(
            Section.of(
                "",
                *_best_rate(records),
                *(f"{run.spec.name} diverged at step {run.diverged_at_step}." for run in diverged),
                f"The folder: {documents[0]['folder'] if len(documents) == 1 else folder}.",
            ),
            Section.of("", table, is_why=len(records) > MOST_ROWS),
            Section.of(NEXT, *map(Command, _after_training(records, shlex.quote(folder)))),
        ),
        data=documents[0] if len(documents) == 1 else {"runs": documents},
        status="" if ended else "failed",
    )


def _after_training(records: Sequence[RunRecord], folder: str) -> Iterator[str]:
    """What the runs are good for: the best for other tools, all for fits if seeds repeat."""
    ended = [record for record in records if record.status == "finished"]
    if ended:
        best = min(ended, key=lambda run: run.evaluations[-1].heldout_nats_per_token)
        yield f"archfit export --run {folder}/{best.spec.name} --out model"
    if len(ended) - len({replace(run.spec, seed=0) for run in ended}) >= LEAST_DEGREES:
        yield f"archfit fit {folder}"


def _best_rate(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Which of several learning rates did best, on average over its seeds."""
    losses: dict[float, list[float]] = defaultdict(list)
    for record in records:
        if record.status == "finished":
            rate = record.spec.recipe.peak_learning_rate
            losses[rate].append(record.evaluations[-1].heldout_nats_per_token)
    rates, tried = sorted(losses), {record.spec.recipe.peak_learning_rate for record in records}
    if not rates or len(tried) == 1:
        return ()
    best = min(rates, key=lambda rate: fmean(losses[rate]))
    at_the_end = best in (min(tried), max(tried))
    further = ", the last of those tried on that side: look further there" if at_the_end else ""
    return (f"The best of {len(tried)} learning rates is {best:.3g}{further}.",)


def _run_row(record: RunRecord) -> tuple[str, ...]:
    spec = record.spec
    run = (spec.name, str(spec.seed), f"{spec.recipe.peak_learning_rate:.3g}")
    if record.status == "diverged":
        return *run, f"diverged at step {record.diverged_at_step}", "-", "-"
    last = record.evaluations[-1]
    nats, bits = last.heldout_nats_per_token, last.heldout_bits_per_byte
    if spec.architecture.objective == "masked":
        bits = nats / math.log(2)
    return *run, record.status, f"{nats:.4f}", f"{bits:.4f}"


def data_document(description: Mapping[str, object], folder: str, *sentences: str) -> Document:
    """A prepared data set and what its tokens say, from its data.json; `sentences` first."""
    try:
        words = {**description, **dict(_data_words(description))}
        rows = facts("prepared_data", **words)
        brief = facts("data_in_brief", **words, folder=folder)
        notes = [f"Note: {warning}" for warning in _part(description["warnings"], list)]
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(
            f"{folder}/data.json is damaged ({problem}); prepare it again with --overwrite"
        ) from problem
    (_, headline), *others = brief
    tokens = _part(description["train"], dict)["tokens"]
    size = next(size for least, size in SIZES.items() if tokens >= least)
    return Document(
        title=folder,
        headline=headline,
        sections=(
            Section.of("", *sentences, *(sentence for _, sentence in others), *notes),
            Section.of(NEXT, Command(f"archfit advise {shlex.quote(folder)} --params {size}")),
            Section.of("", Table(title=folder, columns=("", ""), rows=tuple(rows)), is_why=True),
        ),
        data=dict(description),
    )


def _data_words(about: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """What the lists and objects of the description say, where they are such."""
    names = ("leakage", "cooccurrence", "settings", "split", "train", "heldout")
    leakage, ranks, settings, split, *_ = (_part(about[name], dict) for name in names)
    for form in ("plain", "normalised"):
        found = (_part(rank, dict) for rank in _part(ranks[form], list))
        words = (
            f"{r['rank']}{'' if r['exact'] else '+'} at {100 * r['energy']:.1f} %" for r in found
        )
        yield form, ", ".join(words)
    yield "rule", dict(facts("held_out"))[split["rule"]]
    yield "ends", "" if about["separator"] is None else " (one ends a document)"
    if about["vocabulary"] == "k-mers":
        letters = settings["kmer"]
        yield "vocabulary", "letters" if letters == 1 else f"groups of {letters} letters"
    units = DATA_KINDS[str(about["kind"])].units
    yield "units", "letters" if units == "letters" else "bytes"
    unit = "words" if leakage["unit"] == "word" else units
    shared = f"not measured: the held-out side has no 13 {unit} in a row"
    if leakage["share"] is not None:
        sample = f"{leakage['heldout_ngrams']:,} looked at, 1 in {leakage['one_in']}"
        share = f"{100 * leakage['share']:.1f} % of the held-out runs of 13 {unit}"
        shared = f"{share} occur in training, too ({sample.removesuffix(', 1 in 1')})"
    yield "shared", shared


def _part(value: object, kind: type[Part]) -> Part:
    """The value, which a file may hold in any other kind."""
    if not isinstance(value, kind):
        belongs = "an object" if kind is dict else "a list"
        raise ValueError(f"data.json holds {value!r} where {belongs} belongs; prepare it again")
    return value
