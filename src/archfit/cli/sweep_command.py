"""`archfit sweep`: a named sweep or one of your own, run here, on Ray or by Slurm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.cli.options import CHECKPOINT_SECONDS, DEVICE, AsJson, chosen, flag, size, word
from archfit.cli.output import print_json, say_beyond_rates, show
from archfit.cli.progress import watched
from archfit.cli.sweep_request import SweepRequest, data_there
from archfit.report.sweep_document import cells_document, failures_document, outcome_document
from archfit.spec import write_whole
from archfit.spec.errors import check_at_least
from archfit.sweep.clusters import check_script_file, needs_a_gpu, run_on_ray, slurm_script
from archfit.sweep.folder import open_sweep, write_results
from archfit.sweep.local import WORKERS_ON_A_GPU, run_here, usual_slots
from archfit.sweep.named import NAMED
from archfit.sweep.runner import CellQueue, RunnerOptions, SweepStopped

if TYPE_CHECKING:
    from archfit.sweep.sweep import Sweep

SLURM_TASKS = 8
SOME_FAILED = 1  # exit status
WHAT, WHERE = "What is trained", "Where and how"
WHICH = typer.Argument(
    metavar="NAME|FILE", help=f"{', '.join(NAMED)}; a sweep file (.toml); or a sweep.json."
)
SCALE = word("smoke: minutes of a laptop; small: minutes of a GPU; paper: as published.", WHAT)
DATA = word(
    "Prepared data; repeatable where a sweep compares vocabularies. Else: the sample.", WHAT
)
PRECISION = word("float32, bfloat16, or auto: float32 at smoke, else bfloat16.", WHAT)
RULE = word("standard, completep or fan-in; auto: fan-in, but the papers' at paper.", WHAT)
KIND = word("Of an atlas: the kind of data, one of its own or a new name.", WHAT, "NAME")
TUNE = flag("--tune", "Every cell also at half and twice its rate; fits take the best.", WHAT)
WORKERS = size(
    f"Worker processes: on each GPU ({WORKERS_ON_A_GPU} if left out; it trains as many cells as "
    "fill the GPU), or on the CPU (one a core); with --slurm, tasks.",
    panel=WHERE,
)
THREADS = size("CPU threads of a worker; keep them, they decide the last bit.", "N", WHERE)
SLURM = word("Write an sbatch array to this file, and end.", WHERE)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunnerChoice:
    """Who trains the cells of a sweep: workers here, a Ray cluster, or the tasks of a script."""

    workers: int | None
    ray: str | None
    slurm: Path | None
    wait: bool

    def __post_init__(self) -> None:
        """Refuse before anything is prepared what could not be done after it."""
        if self.workers is not None:
            check_at_least(1, workers=self.workers)
        if self.ray is not None and (self.slurm is not None or self.workers is not None):
            other = "--slurm" if self.slurm is not None else "--workers"
            raise ValueError(
                f"--ray {self.ray} and {other} cannot both say who trains; leave one out"
            )
        if self.slurm is not None:
            check_script_file(self.slurm)


def sweep(
    invocation: typer.Context,
    which: Annotated[str, WHICH],
    out: Annotated[Path | None, word("Folder of the sweep; the same one goes on with it.")] = None,
    scale: Annotated[str, SCALE] = "smoke",
    data: Annotated[list[Path] | None, DATA] = None,
    seeds: Annotated[int | None, size("Seeds of every cell.", "N", WHAT)] = None,
    precision: Annotated[str, PRECISION] = "auto",
    learning_rate_rule: Annotated[str, RULE] = "auto",
    tune: Annotated[bool, TUNE] = False,
    kind: Annotated[str | None, KIND] = None,
    workers: Annotated[int | None, WORKERS] = None,
    threads: Annotated[int, THREADS] = 1,
    device: Annotated[str, DEVICE] = "auto",
    ray: Annotated[str | None, word("Address of a Ray cluster to run on, or auto.", WHERE)] = None,
    slurm: Annotated[Path | None, SLURM] = None,
    wait: Annotated[bool, word("Stay until cells are done that others train.", WHERE)] = True,
    checkpoint_seconds: Annotated[float, CHECKPOINT_SECONDS] = 60.0,
    dry_run: Annotated[bool, word("List and count the cells; train nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a sweep, skip what is done, and say what follows from it; killed, it goes on."""
    request = chosen(SweepRequest, invocation, data=tuple(data or ()))
    if dry_run:
        return show(cells_document(request.counted()), as_json=as_json)
    if out is None:
        raise ValueError("--out is missing; name the folder that the sweep is to have")
    options = chosen(RunnerOptions, invocation, out=out.resolve(), data_folders=())
    choice = chosen(RunnerChoice, invocation, slurm=slurm)
    opened = open_sweep(out, request.with_data(out))
    if choice.slurm is not None:
        return _write_slurm(choice, opened, options, as_json=as_json)
    say_beyond_rates(opened.specs)
    cells = CellQueue(opened.specs, out)
    _train(cells, opened, options, choice, silent=as_json)
    _show_outcome(cells, opened, out, as_json=as_json)
    if cells.failed:
        raise SystemExit(SOME_FAILED)
    return None


def _train(
    cells: CellQueue, opened: Sweep, options: RunnerOptions, choice: RunnerChoice, *, silent: bool
) -> None:
    """Train what is left of a sweep; a signal ends it with results.csv written."""
    if not cells.all_done:
        options = replace(options, data_folders=data_there(opened))
    try:
        with watched(silent=silent) as watch:
            if choice.ray is not None:
                run_on_ray(cells, options, watch, address=choice.ray)
            else:
                slots = usual_slots(options.device, choice.workers, options.threads)
                run_here(cells, options, slots, watch, wait=choice.wait)
    except SweepStopped as stopped:
        write_results(options.out, opened)
        typer.echo(f"archfit: {stopped}: {cells.left} of {cells.total} cells left", err=True)
        raise SystemExit(128 + stopped.signal_number) from stopped


def _show_outcome(cells: CellQueue, opened: Sweep, out: Path, *, as_json: bool) -> None:
    """Say how the sweep ended and what its records say so far, and rebuild results.csv."""
    from archfit.fit.conclusions import conclusions
    from archfit.fit.fitted import read_folders

    if cells.failed and not as_json:  # said first: on a full disk the table cannot be written
        show(failures_document(cells), as_json=False)
    results = str(write_results(out, opened))
    try:
        said = conclusions(read_folders([out]).fits())
    except ValueError as problem:  # too few records are no failure of the sweep
        said = (f"No conclusion yet: {problem}.",)
    document = outcome_document(cells, opened, folder=str(out), results=results, conclusions=said)
    show(document, as_json=as_json)


def _write_slurm(
    choice: RunnerChoice, opened: Sweep, options: RunnerOptions, *, as_json: bool
) -> None:
    """Write the script of a sweep whose tasks share its cells."""
    file, tasks = choice.slurm, choice.workers or SLURM_TASKS
    assert file is not None
    needs_gpu = any(needs_a_gpu(spec, options.device) for spec in opened.specs)
    workers = WORKERS_ON_A_GPU if needs_gpu else 1
    script = slurm_script(opened.name, options, tasks=tasks, workers=workers, needs_gpu=needs_gpu)
    write_whole(file, script.encode())
    if as_json:
        counts = {"cells": len(opened.specs), "done": 0, "failed": 0, "skipped": 0}
        return print_json({"sweep": opened.name, **counts, "script": str(file), "tasks": tasks})
    cells = f"{tasks} tasks for {len(opened.specs)} cells"
    return typer.echo(f"{file}: {cells}; submit it by sbatch {file}")
