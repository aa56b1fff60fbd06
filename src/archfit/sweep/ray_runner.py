"""The runner of a Ray cluster: one task a cell, with the share of a GPU that it needs.

Out and data lie on a file system that all nodes see, as `archfit sweep` on several machines needs
anyway. Ray starts a task again elsewhere when its node is lost; the run then goes on from its
last checkpoint, since the worker of a dead node has let go of its lock.
"""

import contextlib
import importlib.util
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

from archfit.spec import RunSpec
from archfit.spec.gpu_cost import device_bytes
from archfit.sweep import runner
from archfit.sweep.devices import needs_a_gpu
from archfit.sweep.runner import CellQueue, RunnerOptions, SweepWatcher
from archfit.sweep.worker import SECONDS_TO_SAVE, absolute_import_path, train_cell

GPU_BYTES = 80 << 30  # taken for granted of a GPU: Ray gives out shares, not bytes
LEAST_SHARE = 0.1  # more than ten runs on a GPU only wait for each other
BACKLOG = 2  # tasks for each that can run: nobody idles, and a cluster that can grow sees why
SECONDS_TO_ANSWER = 10.0


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
    running: dict[Any, RunSpec] = {}
    with runner.noted_signals() as raise_noted:
        try:
            while _start_tasks(ray, cells, options, running, watch) or cells.elsewhere:
                for reference in _ended(ray, running):
                    cell, event = running.pop(reference), _answer(ray, reference)
                    cells.note(cell, event)
                    watch.ended(cell, str(event.get("reason", event["event"])))
                watch.passes()
                raise_noted()
        finally:  # with the end of its task Ray kills a worker at once, and it must save first
            for reference in running:
                ray.cancel(reference)
            if running:
                ray.wait([*running], num_returns=len(running), timeout=SECONDS_TO_SAVE)


def _start_tasks(
    ray: Any,
    cells: CellQueue,
    options: RunnerOptions,
    running: dict[Any, RunSpec],
    watch: SweepWatcher,
) -> bool:
    """Add as many tasks as the cluster can run now, and some that wait; whether there are any."""
    most = BACKLOG * max(1, int(ray.cluster_resources().get("CPU", 0)) // options.threads)
    while len(running) < most and (cell := cells.next(lambda _: True)) is not None:
        needs = _needs(cell, options, alone=cell in cells.alone)
        running[ray.remote(**needs)(train_cell).remote(cell, options)] = cell
        watch.started(cell, 0)
    return bool(running)


def _ended(ray: Any, running: Mapping[Any, RunSpec]) -> list[Any]:
    """Tasks that are over; waits for one, but not for long."""
    if not running:  # others are at the cells that are left
        time.sleep(runner.SECONDS_BETWEEN_LOOKS)
        return []
    ready: list[Any] = ray.wait([*running], timeout=runner.SECONDS_BETWEEN_LOOKS)[0]
    return ready


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
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_TO_ANSWER).close()
