"""The runner of a Ray cluster: one task a cell, with the share of a GPU that it needs.

Out and data lie on a file system that all nodes see, as `archfit sweep` on several machines needs
anyway. Ray starts a task again elsewhere when its node is lost; the run then goes on from its
last checkpoint, since the worker of a dead node has let go of its lock.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from archfit.sweep.cells import SECONDS_BETWEEN_LOOKS
from archfit.sweep.cost import device_bytes
from archfit.sweep.signals import raised_signals
from archfit.sweep.worker import absolute_import_path, trained

if TYPE_CHECKING:
    from typing import Any

    from archfit.spec import RunSpec
    from archfit.sweep.cells import Cells
    from archfit.sweep.watch import SweepWatcher
    from archfit.sweep.worker import Workshop

GPU_BYTES = 80 << 30  # taken for granted of a GPU: Ray gives out shares, not bytes
LEAST_SHARE = 0.1  # more than ten runs on a GPU only wait for each other


def run_on_ray(cells: Cells, workshop: Workshop, watch: SweepWatcher, *, address: str) -> None:
    """Train all cells on the cluster at `address`; `auto` is the one this machine belongs to."""
    ray = _ray()
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **_environment())
    except (ConnectionError, ValueError, RuntimeError) as problem:
        raise ValueError(f"--ray {address} is no cluster that answers: {problem}") from problem
    watch.begins(cells)
    try:
        with raised_signals():
            _run(ray, cells, workshop, watch)
    finally:
        ray.shutdown()


def _run(ray: Any, cells: Cells, workshop: Workshop, watch: SweepWatcher) -> None:
    task = ray.remote(trained)
    running: dict[Any, RunSpec] = {}
    while True:
        while (cell := cells.next(lambda _: True)) is not None:
            running[task.options(**_needs(cell, workshop)).remote(cell, workshop)] = cell
            watch.started(cell, 0)
        if not running and not cells.elsewhere:
            return
        ready, _ = ray.wait([*running], timeout=SECONDS_BETWEEN_LOOKS) if running else ([], [])
        for reference in ready:
            cell = running.pop(reference)
            event = _answer(ray, reference)
            cells.note(cell, event)
            watch.ended(cell, str(event.get("reason", event["event"])))
        watch.passes()


def _answer(ray: Any, reference: Any) -> dict[str, object]:
    try:
        event: dict[str, object] = ray.get(reference)
    except ray.exceptions.RayError as problem:  # the cluster gave up on it
        return {"event": "died", "reason": " ".join(str(problem).split())[-300:]}
    return event


def _needs(cell: RunSpec, workshop: Workshop) -> dict[str, object]:
    """What Ray must find for the cell; it tries again without end when nodes are lost."""
    needs: dict[str, object] = {"num_cpus": workshop.threads, "max_retries": -1}
    if cell.recipe.precision == "bfloat16" or workshop.device == "cuda":
        share = max(LEAST_SHARE, device_bytes(cell) / GPU_BYTES)
        needs["num_gpus"] = round(share, 3) if share < 1 else 1  # a run has at most one
    return needs


def _environment() -> dict[str, object]:
    """A checkout that is not installed is found by its path, on all nodes."""
    path = absolute_import_path()
    return {"runtime_env": {"env_vars": {"PYTHONPATH": path}}} if path else {}


def _ray() -> Any:
    if importlib.util.find_spec("ray") is None:
        raise ValueError("--ray needs Ray, which is not installed; pip install archfit[ray]")
    return importlib.import_module("ray")
