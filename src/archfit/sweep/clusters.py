"""Runners of clusters: a Slurm job array, and tasks of Ray.

Out and data lie on a file system that all nodes see, as `archfit sweep` on several machines needs
anyway.

**Slurm.** The tasks of the array are runners on one folder, and nothing waits for them. Each takes
the cells that are neither done nor held, so tasks need no list, may be more or fewer than cells,
may die, and may be submitted again. Near its time limit a task is sent SIGUSR1, saves its run and
puts itself back into the queue; one that is cancelled gets SIGTERM and stays out.

**Ray.** One task a cell, with the share of a GPU that it needs. Ray starts a task again elsewhere
when its node is lost; the run then goes on from its last checkpoint, since the worker of a dead
node has let go of its lock.
"""

import contextlib
import importlib.util
import re
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Any

from archfit.spec import RunSpec
from archfit.spec.files import SWEEP
from archfit.spec.gpu_cost import device_bytes
from archfit.spec.packed import packed_file
from archfit.spec.signals import stop_requests
from archfit.sweep import runner
from archfit.sweep.runner import CellQueue, RunnerOptions, SweepWatcher, absolute_import_path

SECONDS_BEFORE_THE_LIMIT = 120  # of a Slurm task's time, for a checkpoint
GPU_BYTES = 80 << 30  # taken for granted of a GPU: Ray gives out shares, not bytes
LEAST_SHARE = 0.1  # more than ten runs on a GPU only wait for each other
BACKLOG = 2  # tasks for each that can run: nobody idles, and a cluster that can grow sees why
SECONDS_TO_ANSWER = 10.0


def needs_a_gpu(spec: RunSpec, device: str) -> bool:
    """Whether the run is to have one; some CPUs advertise bfloat16 and then fail."""
    return spec.recipe.precision == "bfloat16" or device == "cuda"


# ---- Slurm


def slurm_script(
    name: str, options: RunnerOptions, *, tasks: int, workers: int, needs_gpu: bool
) -> str:
    """The batch file; `sbatch FILE` submits it."""
    out = options.out.resolve()
    if not str(out).isprintable():  # a line break in it would begin a line of the script
        raise ValueError(f"--out {str(out)!r} cannot stand in a batch file; use a plainer name")
    words = [
        *(sys.executable, "-m", "archfit", "sweep", str(out / SWEEP), "--out", str(out)),
        *("--device", options.device, "--threads", str(options.threads)),
        *("--workers", str(workers), "--checkpoint-seconds", str(options.checkpoint_seconds)),
        "--no-wait",
    ]
    path = absolute_import_path()  # by which a checkout is found, whatever shell submits
    log = str(out / "slurm-%A_%a.log")
    log = f'"{log}"' if any(letter.isspace() for letter in log) else log
    template = packed_file("slurm_job.sh").read_text(encoding="utf-8")
    return template.format(
        name=re.sub(r"[^A-Za-z0-9_.-]+", "-", name),
        last_task=tasks - 1,
        cores=max(1, workers * options.threads),
        gpu="#SBATCH --gpus-per-task=1\n" if needs_gpu else "",
        log=log,
        seconds_to_save=SECONDS_BEFORE_THE_LIMIT,
        export=f"\nexport PYTHONPATH={shlex.quote(path)}" if path else "",
        command=shlex.join(words),
    )


def check_script_file(file: Path) -> None:
    """Refuse a place where no batch file can be written."""
    if not file.parent.is_dir():
        raise ValueError(f"{file} is in a folder that does not exist; make {file.parent} first")
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name the file that the batch script is to have")


# ---- Ray


def run_on_ray(
    cells: CellQueue, options: RunnerOptions, watch: SweepWatcher, *, address: str
) -> None:
    """Train all cells on the cluster at `address`; `auto` is the one this machine belongs to."""
    if importlib.util.find_spec("ray") is None:
        raise ValueError("--ray needs Ray, which is not installed; pip install archfit[ray]")
    ray = importlib.import_module("ray")
    try:
        _check_answers(address)
        path = absolute_import_path()  # by which a checkout is found on all nodes
        environment = {"runtime_env": {"env_vars": {"PYTHONPATH": path}}} if path else {}
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **environment)
    except (OSError, ValueError, RuntimeError) as problem:
        raise ValueError(f"--ray {address} is no cluster that answers: {problem}") from problem
    watch.begins(cells)
    with contextlib.redirect_stdout(sys.stderr):  # Ray speaks of lost nodes there
        try:
            _run(ray, cells, options, watch)
        finally:
            ray.shutdown()


def _run(ray: Any, cells: CellQueue, options: RunnerOptions, watch: SweepWatcher) -> None:
    """As many tasks as the cluster can run now, and some that wait, until no cell is left."""
    running: dict[Any, RunSpec] = {}
    patience = runner.SECONDS_BETWEEN_LOOKS
    with stop_requests(repeatable=(signal.SIGTERM,)) as request:
        try:
            while True:
                most = max(1, int(ray.cluster_resources().get("CPU", 0)) // options.threads)
                while len(running) < BACKLOG * most and (cell := cells.next(lambda _: True)):
                    needs = _needs(cell, options, alone=cell in cells.alone)
                    running[ray.remote(**needs)(runner.train_cell).remote(cell, options)] = cell
                    watch.progress(cell, {"step": 0})
                if not running and not cells.elsewhere:
                    break
                if not running:  # others are at the cells that are left
                    time.sleep(patience)
                for reference in ray.wait([*running], timeout=patience)[0] if running else ():
                    cells.note(running.pop(reference), _answer(ray, reference), watch)
                watch.passes()
                runner.end_if_asked(request, options.out)
        finally:  # with the end of its task Ray kills a worker at once, and it must save first
            for reference in running:
                ray.cancel(reference)
            if running:
                ray.wait([*running], num_returns=len(running), timeout=runner.SECONDS_TO_SAVE)


def _answer(ray: Any, reference: Any) -> dict[str, object]:
    try:
        event: dict[str, object] = ray.get(reference)
    except ray.exceptions.RayError as problem:  # the cluster gave up on it
        return {"event": "died", "reason": " ".join(str(problem).split())[-300:]}
    return event


def _needs(cell: RunSpec, options: RunnerOptions, *, alone: bool) -> dict[str, object]:
    """What Ray must find for the cell; it tries again without end when nodes are lost.

    A cell that ran out of memory beside others gets a GPU for itself.
    """
    needs: dict[str, object] = {"num_cpus": options.threads, "max_retries": -1}
    if needs_a_gpu(cell, options.device):
        share = 1.0 if alone else max(LEAST_SHARE, device_bytes(cell) / GPU_BYTES)
        needs["num_gpus"] = round(share, 3) if share < 1 else 1  # a run has at most one
    return needs


def _check_answers(address: str) -> None:
    """Refuse a place where nobody listens; Ray itself would try for long and not in silence."""
    import socket

    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_TO_ANSWER).close()
