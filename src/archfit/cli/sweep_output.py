"""What `archfit sweep` prints: the cells before they are trained, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from archfit.cli.output import print_json, print_table
from archfit.cli.sweep_table import described, minutes
from archfit.sweep.devices import gpu_seconds
from archfit.sweep.folder import write_results

if TYPE_CHECKING:
    from pathlib import Path

    from archfit.spec import RunSpec
    from archfit.sweep.runner import CellQueue
    from archfit.sweep.sweep import Sweep

SECONDS_A_DAY = 86400


def list_cells(made: Sweep, *, as_json: bool) -> None:
    """Print cells, parameters, tokens, FLOPs and the GPU time they would take."""
    rows = [_counted(spec) for spec in made.specs]
    total = {
        "tokens": sum(spec.training_tokens for spec in made.specs),
        "flops": sum(spec.training_flops for spec in made.specs),
        "gpu_days": sum(gpu_seconds(spec) for spec in made.specs) / SECONDS_A_DAY,
    }
    if as_json:
        print_json(
            {
                "sweep": made.name,
                "scale": made.scale,
                "question": made.question,
                "cells": len(rows),
                "done": 0,
                "failed": 0,
                "skipped": 0,
                "runs": rows,
                **total,
            }
        )
        return
    _say_question(made.question)
    print_table(
        f"{made.name}, {made.scale}: {len(rows)} cells",
        ("cell", "parameters", "in blocks", "tokens", "FLOPs", "H200"),
        [_row(spec) for spec in made.specs],
    )
    seconds = total["gpu_days"] * SECONDS_A_DAY
    days = f"{total['gpu_days']:,.1f} GPU-days" if total["gpu_days"] > 1 else minutes(seconds)
    typer.echo(
        f"In all {total['tokens']:.3g} tokens, {total['flops']:.3g} FLOPs, about {days} of one "
        "H200 (from our own training speed by width, docs/performance.md)."
    )


def show_outcome(cells: CellQueue, sweep: Sweep, out: Path, *, as_json: bool) -> None:
    """Print how the sweep ended, and rebuild results.csv."""
    failures = [
        {"run": spec.name, "cell": described(spec), "reason": reason}
        for spec, reason in cells.failed.items()
    ]
    if failures and not as_json:  # said first: on a full disk the table cannot be written
        rows = [(one["run"], one["cell"], one["reason"]) for one in failures]
        print_table(f"{len(failures)} cells failed", ("run", "cell", "reason"), rows)
    results = write_results(out, sweep)
    if as_json:
        print_json(
            {
                "sweep": sweep.name,
                "scale": sweep.scale,
                "cells": len(sweep.specs),
                "done": len(cells.done),
                "failed": len(cells.failed),
                "skipped": len(cells.skipped),
                "elsewhere": len(cells.elsewhere),
                "failures": failures,
                "folder": str(out),
                "results": str(results),
                "conclusions": _conclusions(out),
            }
        )
        return
    parts = [f"{len(cells.done)} done now", f"{len(cells.skipped)} done before"]
    if cells.elsewhere:
        parts.append(f"{len(cells.elsewhere)} trained by others")
    typer.echo(f"{sweep.name}: {len(sweep.specs)} cells, {', '.join(parts)}; table in {results}")
    _say_question(sweep.question)
    for sentence in _conclusions(out):
        typer.echo(f"- {sentence}")


def _say_question(question: str) -> None:
    if question:  # an own sweep need not have one
        typer.echo(question)


def _conclusions(out: Path) -> list[str]:
    """What the records say so far; too few of them are no failure of the sweep."""
    from archfit.fit.conclusions import conclusions
    from archfit.fit.fitted import fitted
    from archfit.fit.reading import read_folders

    try:
        return list(conclusions(fitted(read_folders([out]))))
    except ValueError as problem:
        return [f"No conclusion yet: {problem}."]


def _counted(spec: RunSpec) -> dict[str, object]:
    shape = spec.architecture
    return {
        "run": spec.name,
        "depth": shape.depth,
        "width": shape.width,
        "heads": shape.heads,
        "head_dim": shape.head_dim,
        "vocab": shape.input.vocab,
        "context": shape.context,
        "embedding_rank": shape.embedding_rank,
        "position_rank": shape.position_rank,
        "seed": spec.seed,
        "steps": spec.recipe.steps,
        "batch_sequences": spec.recipe.batch_sequences,
        "params": shape.params,
        "block_params": shape.block_params,
        "tokens": spec.training_tokens,
        "flops": spec.training_flops,
        "gpu_days": gpu_seconds(spec) / SECONDS_A_DAY,
    }


def _row(spec: RunSpec) -> tuple[str, ...]:
    shape = spec.architecture
    seconds = gpu_seconds(spec)
    time = minutes(seconds) if seconds < SECONDS_A_DAY else f"{seconds / SECONDS_A_DAY:.1f} days"
    sizes = (f"{shape.params:,}", f"{shape.block_params:,}")
    return (
        described(spec),
        *sizes,
        f"{spec.training_tokens:.3g}",
        f"{spec.training_flops:.3g}",
        time,
    )
