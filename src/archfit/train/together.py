"""Several runs in one process, at once where that is faster.

A small network leaves most of a GPU idle. Runs that take turns on streams of their own fill it,
and each still executes exactly the kernels that it would execute alone. Whether that pays depends
on shapes and device, so it is measured: some steps of one run alone, then as many of all together.
On a CPU one run at a time already uses every core, and runs follow each other.
"""

import time
from collections.abc import Generator, Sequence
from pathlib import Path

import torch

from archfit.data.prepared import PreparedData
from archfit.spec import RunRecord, RunSpec
from archfit.train.run import check_data, result, training, workplace
from archfit.train.settings import Settings, Stopped
from archfit.train.step import STEPS_BEFORE_CAPTURE
from archfit.train.watch import Watcher

MEASURED_STEPS = 20
LEAST_GAIN = 1.05


def train_together(
    specs: Sequence[RunSpec],
    data: PreparedData,
    out: Path,
    settings: Settings,
    watchers: Sequence[Watcher],
) -> list[RunRecord]:
    """The records of all specs, in their order; `watchers` has one for each."""
    for spec in specs:
        check_data(spec, data)
    with workplace(data, out, settings) as place:
        runs = [training(spec, place, watch) for spec, watch in zip(specs, watchers, strict=True)]
        is_alone = len(runs) == 1 or place.team.world > 1  # a team's clocks would disagree
        if is_alone or place.team.device.type != "cuda":
            return [result(run) for run in runs]
        turns = [_Turn(run) for run in runs]
        _finish_all(turns, watchers[0])
    return [turn.result() for turn in turns]


class _Turn:
    """A run that takes its steps on a stream of its own."""

    def __init__(self, run: Generator[None, None, RunRecord]) -> None:
        self.run = run
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
                next(self.run)
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


def _finish_all(turns: Sequence[_Turn], watch: Watcher) -> None:
    _seconds(turns, STEPS_BEFORE_CAPTURE + 2)  # plans, compilation and capture
    alone = _seconds(turns[:1], MEASURED_STEPS)
    together = _seconds(turns, MEASURED_STEPS)
    gain = alone * len(turns) / together
    groups = [list(turns)] if gain >= LEAST_GAIN else [[turn] for turn in turns]
    manner = "together" if len(groups) == 1 else "one after another"
    watch.notice(f"{len(turns)} runs {manner}: together measured {gain:.2f} times as fast")
    for group in groups:
        while not all(turn.has_ended for turn in group):
            for turn in group:
                turn.step()


def _seconds(turns: Sequence[_Turn], steps: int) -> float:
    """How long it takes each to make that many steps, in turns."""
    torch.cuda.synchronize()
    started = time.monotonic()
    for _ in range(steps):
        for turn in turns:
            turn.step()
    torch.cuda.synchronize()
    return time.monotonic() - started
