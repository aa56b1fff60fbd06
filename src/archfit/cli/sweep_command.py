"""`archfit sweep`: a named or own sweep, run here, on Ray or by Slurm, and what it shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.cli.options import size_option
from archfit.cli.output import print_json
from archfit.cli.sweep_asked import Asked
from archfit.cli.sweep_output import list_cells, show_outcome
from archfit.cli.sweep_table import watched
from archfit.spec.checks import check_at_least
from archfit.sweep.devices import needs_a_gpu
from archfit.sweep.folder import open_sweep, write_results
from archfit.sweep.local import MOST_ON_A_GPU, run_here, usual_slots
from archfit.sweep.named import NAMED
from archfit.sweep.runner import CellQueue, RunnerOptions, SweepStopped
from archfit.sweep.slurm import check_script_file, slurm_script, write_script

if TYPE_CHECKING:
    from archfit.sweep.sweep import Sweep

SLURM_TASKS = 8
SOME_FAILED = 1  # exit status
What, Where = "What is trained", "Where and how"


def sweep(
    which: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", help=f"{', '.join(NAMED)}; a sweep file (.toml); or a sweep.json."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the sweep; the same one goes on with it.")
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="smoke: minutes of a laptop; small: minutes of a GPU; paper: as published.",
            rich_help_panel=What,
        ),
    ] = "smoke",
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Prepared data; repeatable where a sweep compares vocabularies. "
            "Left out: the sample archfit ships with.",
            rich_help_panel=What,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            parser=size_option, metavar="N", help="Seeds of every cell.", rich_help_panel=What
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            help="float32, bfloat16, or auto: float32 at smoke, else bfloat16.",
            rich_help_panel=What,
        ),
    ] = "auto",
    learning_rate_rule: Annotated[
        str,
        typer.Option(
            help="standard or completep; auto: standard at paper, else completep.",
            rich_help_panel=What,
        ),
    ] = "auto",
    workers: Annotated[
        int | None,
        typer.Option(
            parser=size_option,
            metavar="N",
            help=f"Cells trained at a time: on each GPU (at most {MOST_ON_A_GPU} if left out, as "
            "memory allows), or on the CPU (its cores); with --slurm, tasks.",
            rich_help_panel=Where,
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            parser=size_option,
            metavar="N",
            help="CPU threads of a worker. Keep it in a sweep: it decides the last bit.",
            rich_help_panel=Where,
        ),
    ] = 1,
    device: Annotated[
        str, typer.Option(help="auto, cuda, mps or cpu.", rich_help_panel=Where)
    ] = "auto",
    ray: Annotated[
        str | None,
        typer.Option(
            help="Run on the Ray cluster at this address, or auto.", rich_help_panel=Where
        ),
    ] = None,
    slurm: Annotated[
        Path | None,
        typer.Option(help="Write an sbatch array to this file, and end.", rich_help_panel=Where),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option(help="Stay until cells are done that others train.", rich_help_panel=Where),
    ] = True,
    checkpoint_seconds: Annotated[
        float, typer.Option(help="From one checkpoint to the next.", rich_help_panel=Where)
    ] = 60.0,
    dry_run: Annotated[bool, typer.Option(help="List and count the cells; train nothing.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """Train a sweep, skip what is done, and say what follows from it; killed, it goes on."""
    asked = Asked(
        which=which, scale=scale, data=tuple(data or ()), seeds=seeds,
        precision=precision, learning_rate_rule=learning_rate_rule,
    )  # fmt: skip
    if dry_run:
        list_cells(asked.counted(), as_json=as_json)
        return
    if out is None:
        raise ValueError("--out is missing; name the folder that the sweep is to have")
    options = RunnerOptions(
        out=out.resolve(), data_folders=(), device=device, threads=threads,
        checkpoint_seconds=checkpoint_seconds,
    )  # fmt: skip
    _check_who_trains(workers, ray, slurm)
    opened = open_sweep(out, asked.with_data(out))
    if slurm is not None:
        _write_slurm(slurm, opened, options, tasks=workers or SLURM_TASKS, as_json=as_json)
        return
    cells = CellQueue(opened.specs, out)
    if not cells.all_done:
        from archfit.cli.sweep_data import data_there

        options = replace(options, data_folders=data_there(opened))
    try:
        with watched(silent=as_json) as watch:
            if ray is not None:
                from archfit.sweep.ray_runner import run_on_ray

                run_on_ray(cells, options, watch, address=ray)
            else:
                run_here(cells, options, usual_slots(device, workers, threads), watch, wait=wait)
    except SweepStopped as stopped:
        write_results(out, opened)
        typer.echo(f"archfit: {stopped}: {cells.left} of {cells.total} cells left", err=True)
        raise SystemExit(128 + stopped.signal_number) from stopped
    show_outcome(cells, opened, out, as_json=as_json)
    if cells.failed:
        raise SystemExit(SOME_FAILED)


def _check_who_trains(workers: int | None, ray: str | None, slurm: Path | None) -> None:
    """Refuse before anything is prepared what could not be done after it."""
    if workers is not None:
        check_at_least(1, workers=workers)
    if ray is not None and (slurm is not None or workers is not None):
        other = "--slurm" if slurm is not None else "--workers"
        raise ValueError(f"--ray {ray} and {other} cannot both say who trains; leave one out")
    if slurm is not None:
        check_script_file(slurm)


def _write_slurm(
    file: Path, opened: Sweep, options: RunnerOptions, *, tasks: int, as_json: bool
) -> None:
    needs_gpu = any(needs_a_gpu(spec, options.device) for spec in opened.specs)
    workers = MOST_ON_A_GPU if needs_gpu else 1
    script = slurm_script(opened.name, options, tasks=tasks, workers=workers, needs_gpu=needs_gpu)
    write_script(file, script)
    if as_json:
        document = {"cells": len(opened.specs), "done": 0, "failed": 0, "skipped": 0}
        print_json({"sweep": opened.name, **document, "script": str(file), "tasks": tasks})
        return
    typer.echo(f"{file}: {tasks} tasks for {len(opened.specs)} cells; submit it by sbatch {file}")
