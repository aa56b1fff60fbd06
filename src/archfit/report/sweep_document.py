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
from archfit.report.document import Command, Document, Section, Table, facts, json_of, said
from archfit.spec import Factorised, RunRecord, RunSpec, to_json
from archfit.spec.data_kinds import DATA_KINDS
from archfit.spec.errors import refusal
from archfit.spec.gpu_cost import gpu_seconds
from archfit.sweep.runner import CellQueue
from archfit.sweep.sweep import Sweep

SECONDS_A_DAY = 86400
LONGEST_ON_CPU = 3600  # seconds of a sweep that one would train there
MOST_ROWS = 4  # of a table beside the answer
SIZES = {500_000_000: "100M", 50_000_000: "10M", 0: "1M"}  # of networks, by tokens to train on
IN_BRIEF = ("answer", "split", "entropy", "leak")  # what is said of prepared data
ENDS = ("done", "skipped", "elsewhere", "failed")  # of a sweep's cells
Part = TypeVar("Part")


def cells_document(sweep: Sweep) -> Document:
    """A sweep before it is trained: runs, parameters, tokens, FLOPs and the GPU time they take."""
    specs = sweep.specs
    tokens = sum(spec.training_tokens for spec in specs)
    flops = sum(spec.training_flops for spec in specs)
    days = {spec: gpu_seconds(spec) / SECONDS_A_DAY for spec in specs}
    time = _time_words(sum(days.values()) * SECONDS_A_DAY)
    on_cpu = sum(known_speed("cpu").seconds_of(spec) for spec in specs)
    if on_cpu < LONGEST_ON_CPU:
        time = f"{_time_words(on_cpu)} on two CPU cores, {time}"
    title = said("sweeps.title", sweep, runs=len(specs))
    computed = {"cell": run_words, "time": lambda spec: _time_words(gpu_seconds(spec))}
    shapes = sorted({spec.architecture.params for spec in specs})
    runs = [json_of("cell", spec, gpu_days=taken) for spec, taken in days.items()]
    counts = {"tokens": tokens, "flops": flops}
    return Document(
        title=title,
        headline=f"{title}, about {time} on one H200. Nothing was trained.",
        sections=(
            Section.of(sweep.question, said("sweeps.about", shapes[0], shapes[-1], **counts)),
            Section.next("The same command without --dry-run and with --out DIR trains them."),
            Section.of(Table.of("sweep", specs, title=title, **computed), is_why=True),
        ),
        data=json_of("sweep", sweep, none=0, runs=runs, gpu_days=sum(days.values()), **counts),
    )


def script_document(sweep: Sweep, file: str, tasks: int) -> Document:
    """The script by which Slurm trains a sweep."""
    return Document(
        title=sweep.name,
        headline=said("sweeps.script", file, tasks, len(sweep.specs)),
        sections=(Section.next(Command(f"sbatch {file}")),),
        data=json_of("sweep-script", sweep, none=0, script=file, tasks=tasks),
    )


def outcome_document(
    cells: CellQueue, sweep: Sweep, *, folder: str, results: str, conclusions: Sequence[str]
) -> Document:
    """How a sweep ended, and what follows from its runs so far."""
    ends = {name: len(getattr(cells, name)) for name in ENDS}
    parts = [said(f"sweeps.{end}", n) for end, n in ends.items() if n or end in ENDS[:2]]
    failures = [
        {"run": spec.name, "cell": run_words(spec), "reason": reason}
        for spec, reason in cells.failed.items()
    ]
    rows = tuple(tuple(row.values()) for row in failures)
    failed = Table(title="Failed runs", columns=("run", "network", "reason"), rows=rows)
    found = {"failures": failures, "folder": folder, "results": results, "cells": cells.total}
    return Document(
        title=sweep.name,
        headline=said("sweeps.ended", sweep, runs=len(sweep.specs), parts=parts),
        sections=(
            Section.of(*(f"Failed: {reason}" for reason in dict.fromkeys(cells.failed.values()))),
            Section.of(*conclusions),
            Section.next(Command(f"archfit report {shlex.quote(folder)} --out report.html")),
            Section.of(sweep.question, title="Question", is_why=True),
            Section.of(results, title="Table of runs", is_why=True),
            Section.of(failed, is_why=True),
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


Row = tuple[RunRecord, str, float | None, float | None]  # how a run ended, its nats and bits


def runs_document(records: Sequence[RunRecord], folder: str) -> Document:
    """Training runs with their held-out losses; `folder` holds a folder for each."""
    documents = [
        {"folder": f"{folder}/{record.spec.name}", "record": to_json(record)} for record in records
    ]
    rows, is_one = [_row(record) for record in records], len(records) == 1
    ended = [(run, nats) for run, _, nats, _ in rows if nats is not None]
    is_masked = all(record.spec.architecture.objective == "masked" for record in records)
    table = Table.of("masked-runs" if is_masked else "runs", rows, title=folder)
    headline = "No run finished: all diverged. Try a lower --learning-rate."
    if ended:
        nats = [nats for _, nats in ended]
        words = {"bits": rows[0][3], "unit": "bits" if is_masked else "bits per byte"}
        how = "runs.one" if is_one else "runs.several"
        headline = said(how, len(records), min(nats), max(nats), **words)
    return Document(
        title=folder,
        headline=headline,
        sections=(
            Section.of(
                *_best_rate(rows),
                *(f"{run.spec.name} {status}." for run, status, nats, _ in rows if nats is None),
                f"The folder: {documents[0]['folder'] if is_one else folder}.",
            ),
            Section.of(table, is_why=len(records) > MOST_ROWS),
            Section.next(*map(Command, _after_training(ended, shlex.quote(folder)))),
        ),
        data=documents[0] if is_one else {"runs": documents},
        status="" if ended else "failed",
    )


def _row(record: RunRecord) -> Row:
    """Its last losses, in nats per token and in bits: per byte, or of a masked token."""
    if record.status != "finished":
        return record, f"diverged at step {record.diverged_at_step}", None, None
    last = record.evaluations[-1]
    nats, bits = last.heldout_nats_per_token, last.heldout_bits_per_byte
    is_masked = record.spec.architecture.objective == "masked"
    return record, record.status, nats, nats / math.log(2) if is_masked else bits


def _after_training(ended: Sequence[tuple[RunRecord, float]], folder: str) -> Iterator[str]:
    """What the runs are good for: the best for other tools, all for fits if seeds repeat."""
    if ended:
        best, _ = min(ended, key=lambda row: row[1])
        yield f"archfit export --run {folder}/{best.spec.name} --out model"
    if len(ended) - len({replace(run.spec, seed=0) for run, _ in ended}) >= LEAST_DEGREES:
        yield f"archfit fit {folder}"


def _best_rate(rows: Sequence[Row]) -> Iterator[str]:
    """Which of several learning rates did best, on average over its seeds."""
    losses: dict[float, list[float]] = defaultdict(list)
    for run, _, nats, _ in rows:
        losses[run.spec.recipe.peak_learning_rate] += [] if nats is None else [nats]
    if len(losses) > 1 and any(losses.values()):
        best = min(filter(losses.get, losses), key=lambda rate: fmean(losses[rate]))
        at_the_end = best in (min(losses), max(losses))
        yield said("runs.best-at-end" if at_the_end else "runs.best", len(losses), best)


def data_document(description: Mapping[str, object], folder: str, *sentences: str) -> Document:
    """A prepared data set and what its tokens say, from its data.json; `sentences` first."""
    try:
        words = {**description, **dict(_data_words(description))}
        rows = facts("prepared_data", **words)
        brief = [said(f"data.{name}", **words, folder=folder) for name in IN_BRIEF]
        notes = [f"Note: {warning}" for warning in _part(description["warnings"], list)]
    except (KeyError, TypeError, ValueError) as problem:
        raise refusal("damaged-description", folder=folder, problem=problem) from problem
    tokens = _part(description["train"], dict)["tokens"]
    size = next(size for least, size in SIZES.items() if tokens >= least)
    return Document(
        title=folder,
        headline=brief[0],
        sections=(
            Section.of(*sentences, *brief[1:], *notes),
            Section.next(Command(f"archfit advise {shlex.quote(folder)} --params {size}")),
            Section.of(Table(title=folder, columns=("", ""), rows=tuple(rows)), is_why=True),
        ),
        data=dict(description),
    )


def _data_words(about: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """What the lists and objects of the description say, where they are such."""
    names = ("leakage", "cooccurrence", "settings", "split", "train", "heldout")
    leakage, ranks, settings, split, *_ = (_part(about[name], dict) for name in names)
    for form in ("plain", "normalised"):
        found = (_part(rank, dict) for rank in _part(ranks[form], list))
        yield form, ", ".join(said("data.rank", more="+" * (not r["exact"]), **r) for r in found)
    yield "rule", dict(facts("held_out"))[split["rule"]]
    yield "ends", "" if about["separator"] is None else " (one ends a document)"
    if about["vocabulary"] == "k-mers":
        letters = settings["kmer"]
        yield "vocabulary", "letters" if letters == 1 else f"groups of {letters} letters"
    units = DATA_KINDS[str(about["kind"])].units
    yield "units", "letters" if units == "letters" else "bytes"
    unit = "words" if leakage["unit"] == "word" else units
    shared = "data.unshared" if leakage["share"] is None else "data.shared"
    every = "" if leakage["one_in"] == 1 else f", 1 in {leakage['one_in']}"
    yield "shared", said(shared, **{**leakage, "unit": unit, "every": every})


def _part(value: object, kind: type[Part]) -> Part:
    """The value, which a file may hold in any other kind."""
    if not isinstance(value, kind):
        belongs = "an object" if kind is dict else "a list"
        raise refusal("description-of-other-kind", value=repr(value), belongs=belongs)
    return value
