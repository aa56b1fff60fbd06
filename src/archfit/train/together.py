"""Runs of one process, one after another or side by side.

A small network leaves most of a GPU idle. Runs that take turns on streams of their own fill it, and
each still executes exactly the kernels that it would execute alone. On a CPU one run at a time
already uses every core.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import torch

from archfit.data.prepared import PreparedData
from archfit.spec import RunRecord, RunSpec
from archfit.spec.gpu_cost import gpu_share
from archfit.train.context import RunContext, Stopped, TrainSettings, Watcher, run_context
from archfit.train.hardware import release_memory
from archfit.train.run import TrainingSteps, check_data, training_steps
from archfit.train.step import Compiling

SECONDS_TO_WAIT = 50e-6  # when every run waits for the GPU
SHARE_OF_MEMORY = 0.6  # that runs which have ended may keep of a GPU


class RunInTurn:
    """A run that takes its steps in turns with others, on a GPU on a stream of its own."""

    def __init__(self, spec: RunSpec, begin: Callable[[], TrainingSteps], device: torch.device):
        self.spec, self.begin = spec, begin
        self.steps: TrainingSteps | None = None
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.waits_for: torch.cuda.Event | Compiling | None = None
        self.record: RunRecord | None = None
        self.problem: Exception | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the record is there, or the reason why it is not."""
        return self.record is not None or self.problem is not None

    def advance(self) -> None:
        """Go on to the next pause; what stops the run is kept in `problem`."""
        if self.waits_for is not None and not self.waits_for.query():
            return
        with torch.cuda.stream(self.stream):  # None: the stream stays what it is
            try:
                if self.steps is None:
                    self.steps = self.begin()
                self.waits_for = next(self.steps)
            except StopIteration as finished:
                self.record = finished.value
            except (Stopped, MemoryError, OSError, ValueError) as problem:
                self.problem = problem
            if self.has_ended:
                self.steps = None  # its tensors go with it


class SideBySide:
    """Runs that take turns; who gives them sees to it that they fit."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.runs = device, list[RunInTurn]()

    def add(self, spec: RunSpec, begin: Callable[[], TrainingSteps]) -> None:
        """Let a run begin when its turn comes."""
        self.runs.append(RunInTurn(spec, begin, self.device))

    def advance(self) -> Iterator[RunInTurn]:
        """One turn of each; those that have ended leave."""
        started = time.monotonic()
        for run in self.runs:
            run.advance()
        ended = [run for run in self.runs if run.has_ended]
        self.runs = [run for run in self.runs if not run.has_ended]
        if ended:
            self._free_memory()
        elif time.monotonic() - started < SECONDS_TO_WAIT:
            time.sleep(SECONDS_TO_WAIT)
        yield from ended

    def _free_memory(self) -> None:
        """Give back what ended runs took; waits for the GPU, so only where there is need."""
        if self.runs and self.device.type == "cuda":
            total = torch.cuda.get_device_properties(self.device).total_memory
            if torch.cuda.memory_reserved(self.device) < SHARE_OF_MEMORY * total:
                return
        release_memory()


def train(
    spec: RunSpec, data: PreparedData, out: Path, settings: TrainSettings, watch: Watcher
) -> RunRecord:
    """Train one run in the folder out/NAME and return its record; at once if it is there."""
    (record,) = train_together([spec], data, out, settings, [watch])
    return record


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
        ended = list(_all_ended(specs, context, watchers))
    for run in ended:
        if run.problem is not None:
            raise run.problem
    by_spec = {run.spec: run.record for run in ended}
    return [record for spec in specs if (record := by_spec[spec]) is not None]


def _all_ended(
    specs: Iterable[RunSpec], context: RunContext, watchers: Iterable[Watcher]
) -> Iterator[RunInTurn]:
    """All runs when they have ended, as many at once as fill the GPU; after a stop none begins."""
    waiting = list(zip(specs, watchers, strict=True))
    group = SideBySide(context.group.device)
    while waiting or group.runs:
        while waiting and _fits(waiting[0][0], group.runs, context):
            spec, watch = waiting.pop(0)
            group.add(spec, lambda spec=spec, watch=watch: training_steps(spec, context, watch))  # type: ignore[misc]
        for run in group.advance():
            yield run
            if run.problem is not None:
                waiting = []


def _fits(spec: RunSpec, beside: Sequence[RunInTurn], context: RunContext) -> bool:
    if not beside:
        return True
    if context.group.device.type != "cuda" or context.group.world > 1:
        return False  # clocks of a group would disagree
    return sum(gpu_share(run.spec) for run in beside) + gpu_share(spec) <= 1
