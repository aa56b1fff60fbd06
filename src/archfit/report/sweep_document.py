"""Sweeps, training runs and prepared data as documents."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from archfit.report.document import Document, Section, Table, facts, json_of
from archfit.spec import Factorised, RunRecord, RunSpec, to_json
from archfit.spec.gpu_cost import gpu_seconds
from archfit.sweep.runner import CellQueue
from archfit.sweep.sweep import Sweep

SECONDS_A_DAY = 86400
ENDS = ("done", "failed", "skipped", "elsewhere")  # of a sweep's cells
Part = TypeVar("Part")


def cells_document(sweep: Sweep) -> Document:
    """A sweep before it is trained: cells, parameters, tokens, FLOPs and the GPU time they take."""
    tokens = sum(spec.training_tokens for spec in sweep.specs)
    flops = sum(spec.training_flops for spec in sweep.specs)
    seconds = sum(gpu_seconds(spec) for spec in sweep.specs)
    days = seconds / SECONDS_A_DAY
    time = f"{days:,.1f} GPU-days" if days > 1 else clock_words(seconds)
    table = Table.of(
        "sweep",
        sweep.specs,
        title=f"{sweep.name}, {sweep.scale}: {len(sweep.specs)} cells",
        cell=cell_words,
        time=lambda spec: _gpu_time(gpu_seconds(spec)),
    )
    runs = [
        json_of("cell", spec, gpu_days=gpu_seconds(spec) / SECONDS_A_DAY) for spec in sweep.specs
    ]
    total = (
        f"In all {tokens:.3g} tokens, {flops:.3g} FLOPs, about {time} of one H200 (from our own "
        "training speed by width, docs/performance.md)."
    )
    return Document(
        title=table.title,
        headline=sweep.question,  # a user's own sweep need not have one
        sections=(Section.of("", table), Section.of("", total)),
        data={
            "sweep": sweep.name,
            "scale": sweep.scale,
            "question": sweep.question,
            "cells": len(sweep.specs),
            **dict.fromkeys(("done", "failed", "skipped"), 0),
            "runs": runs,
            "tokens": tokens,
            "flops": flops,
            "gpu_days": days,
        },
    )


def failures_document(cells: CellQueue) -> Document:
    """The cells that failed, and why."""
    failures = [
        {"run": spec.name, "cell": cell_words(spec), "reason": reason}
        for spec, reason in cells.failed.items()
    ]
    title, rows = f"{len(failures)} cells failed", tuple(tuple(row.values()) for row in failures)
    table = Table(title=title, columns=("run", "cell", "reason"), rows=rows)
    return Document(title=title, sections=(Section.of("", table),), data=failures)


def outcome_document(
    cells: CellQueue, sweep: Sweep, *, folder: str, results: str, conclusions: Sequence[str]
) -> Document:
    """How a sweep ended, and what follows from its runs so far."""
    parts = [f"{len(cells.done)} done now", f"{len(cells.skipped)} done before"]
    if cells.elsewhere:
        parts.append(f"{len(cells.elsewhere)} trained by others")
    counts = f"{sweep.name}: {len(sweep.specs)} cells, {', '.join(parts)}"
    return Document(
        title=sweep.name,
        headline=f"{counts}; table in {results}",
        sections=(
            Section.of("", *filter(None, [sweep.question])),
            Section.of("", *(f"- {sentence}" for sentence in conclusions)),
        ),
        data={
            "sweep": sweep.name,
            "scale": sweep.scale,
            "cells": len(sweep.specs),
            **{name: len(getattr(cells, name)) for name in ENDS},
            "failures": failures_document(cells).data,
            "folder": folder,
            "results": results,
            "conclusions": list(conclusions),
        },
    )


def cell_words(spec: RunSpec) -> str:
    """A cell in a few words: what sweeps change."""
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


def _gpu_time(seconds: float) -> str:
    days = seconds / SECONDS_A_DAY
    return clock_words(seconds) if days < 1 else f"{days:.1f} days"


def runs_document(records: Sequence[RunRecord], folder: str) -> Document:
    """Training runs with their held-out losses; `folder` holds a folder for each."""
    documents = [
        {"folder": f"{folder}/{record.spec.name}", "record": to_json(record)} for record in records
    ]
    is_masked = all(record.spec.architecture.objective == "masked" for record in records)
    losses = ("masked nats", "masked bits") if is_masked else ("held-out nats", "bits a byte")
    best = _best_rate(records)
    rates = ("rate",) if best else ()
    table = Table(
        title=folder,
        columns=("run", "seed", *rates, "status", *losses),
        rows=tuple(_run_row(record, has_rate=bool(best)) for record in records),
    )
    return Document(
        title=folder,
        sections=(Section.of("", table, *best),),
        data=documents[0] if len(documents) == 1 else {"runs": documents},
    )


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


def _run_row(record: RunRecord, *, has_rate: bool) -> tuple[str, ...]:
    spec = record.spec
    rate = (f"{spec.recipe.peak_learning_rate:.3g}",) if has_rate else ()
    run = (spec.name, str(spec.seed), *rate)
    if record.status == "diverged":
        return *run, f"diverged at step {record.diverged_at_step}", "-", "-"
    last = record.evaluations[-1]
    nats, bits = last.heldout_nats_per_token, last.heldout_bits_per_byte
    if spec.architecture.objective == "masked":
        bits = nats / math.log(2)
    return *run, record.status, f"{nats:.4f}", f"{bits:.4f}"


def data_document(description: Mapping[str, object], folder: str) -> Document:
    """A prepared data set and what its tokens say, from its data.json."""
    try:
        rows = facts("prepared_data", **{**description, **dict(_data_words(description))})
        notes = [f"Note: {warning}" for warning in _part(description["warnings"], list)]
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(
            f"{folder}/data.json is damaged ({problem}); prepare it again with --overwrite"
        ) from problem
    table = Table(title=folder, columns=("quantity", "value"), rows=tuple(rows))
    sections = Section.of("", table), Section.of("", *notes)
    return Document(title=folder, sections=sections, data=dict(description))


def _data_words(about: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """What the lists and objects of the description say, where they are such."""
    names = ("leakage", "cooccurrence", "train", "heldout", "split")
    leakage, ranks, *_ = (_part(about[name], dict) for name in names)
    for form in ("plain", "normalised"):
        found = (_part(rank, dict) for rank in _part(ranks[form], list))
        words = (f"{r['rank']}{'' if r['exact'] else '+'} at {r['energy']:.1%}" for r in found)
        yield form, ", ".join(words)
    shared = "not measured: the held-out side has no 13 words in a row"
    if leakage["share"] is not None:
        shared = f"{leakage['share']:.2%} of {leakage['heldout_ngrams']:,} held-out"
    yield "shared", shared


def _part(value: object, kind: type[Part]) -> Part:
    """The value, which a file may hold in any other kind."""
    if not isinstance(value, kind):
        belongs = "an object" if kind is dict else "a list"
        raise ValueError(f"data.json holds {value!r} where {belongs} belongs; prepare it again")
    return value
