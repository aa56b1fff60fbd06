"""Several runs in one process, at once where that is faster.

A small network leaves most of a GPU idle. Runs that take turns on streams of their own fill it,
and each still executes exactly the kernels that it would execute alone. Whether that pays depends
on shapes and device, so it is measured: some steps of one run alone, then as many of all together.
On a CPU one run at a time already uses every core, and runs follow each other.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import torch

from archfit.data.prepared import PreparedData
from archfit.spec import RunRecord, RunSpec
from archfit.train.context import Stopped, TrainSettings, Watcher, run_context
from archfit.train.run import TrainingSteps, check_data, run_to_end, training_steps
from archfit.train.step import STEPS_BEFORE_CAPTURE

MEASURED_STEPS = 20
LEAST_GAIN = 1.05


def train_together(
    specs: Sequence[RunSpec],
    data: PreparedData,
    out: Path,
    settings: TrainSettings,
    watchers: Sequence[Watcher],
) -> list[RunRecord]:
    """The records of all specs, in their order; `watchers` has one for each."""
    for spec in specs:
        check_data(spec, data)
    with run_context(data, out, settings) as context:
        runs = [
            training_steps(spec, context, watch)
            for spec, watch in zip(specs, watchers, strict=True)
        ]
        is_alone = len(runs) == 1 or context.group.world > 1  # clocks of a group would disagree
        if is_alone or context.group.device.type != "cuda":
            return [run_to_end(run) for run in runs]
        interleaved = [InterleavedRun(run) for run in runs]
        _finish_all(interleaved, watchers[0])
    return [run.result() for run in interleaved]


class InterleavedRun:
    """A run that takes its steps on a stream of its own, in turns with others."""

    def __init__(self, steps: TrainingSteps) -> None:
        self.steps = steps
        self.stream = torch.cuda.Stream()
        self.record: RunRecord | None = None
        self.stopped: Stopped | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the record is there, or a signal came and the checkpoint is."""
        return self.record is not None or self.stopped is not None

    def step(self) -> None:
        """Make the next step, if there is one."""
        if self.has_ended:
            return
        with torch.cuda.stream(self.stream):
            try:
                next(self.steps)
            except StopIteration as finished:
                self.record = finished.value
            except Stopped as stopped:  # the others save theirs when their turn comes
                self.stopped = stopped

    def result(self) -> RunRecord:
        """The record of a run that has ended."""
        if self.stopped is not None:
            raise self.stopped
        assert self.record is not None
        return self.record


def _finish_all(runs: Sequence[InterleavedRun], watch: Watcher) -> None:
    _seconds(runs, STEPS_BEFORE_CAPTURE + 2)  # plans, compilation and capture
    alone = _seconds(runs[:1], MEASURED_STEPS)
    together = _seconds(runs, MEASURED_STEPS)
    gain = alone * len(runs) / together
    groups = [list(runs)] if gain >= LEAST_GAIN else [[run] for run in runs]
    manner = "together" if len(groups) == 1 else "one after another"
    watch.notice(f"{len(runs)} runs {manner}: together measured {gain:.2f} times as fast")
    for group in groups:
        while not all(run.has_ended for run in group):
            for run in group:
                run.step()


def _seconds(runs: Sequence[InterleavedRun], steps: int) -> float:
    """How long it takes each to make that many steps, in turns."""
    torch.cuda.synchronize()
    started = time.monotonic()
    for _ in range(steps):
        for run in runs:
            run.step()
    torch.cuda.synchronize()
    return time.monotonic() - started
