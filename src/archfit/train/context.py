"""What surrounds a run: how it is carried out, what it tells those who watch, how it is stopped.

Nothing here decides a result; that is the spec's part.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from archfit.data.prepared import PreparedData
from archfit.spec import Evaluation, RunRecord, RunSpec
from archfit.spec.signals import StopRequest
from archfit.train.hardware import ProcessGroup


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainSettings:
    """What the user of a machine chooses, and the spec does not hold."""

    device: Literal["auto", "cpu", "cuda", "mps"]
    sharding: Literal["auto", "replicate", "shard"]  # among several processes
    checkpoint_seconds: float  # from one checkpoint to the next
    keep_weights: bool  # whether the finished run keeps model.safetensors
    code_version: str  # noted in the record


@dataclass(frozen=True, kw_only=True, slots=True)
class RunContext:
    """What the runs of one process share."""

    data: PreparedData
    out: Path  # holds a folder for each run
    settings: TrainSettings
    group: ProcessGroup
    stop: StopRequest


class Stopped(Exception):
    """A signal asked the run to end; its checkpoint is written."""

    def __init__(self, step: int, signal_number: int) -> None:
        super().__init__(f"stopped at step {step}; run the same command again to resume")
        self.signal_number = signal_number


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Where a run is."""

    step: int
    steps: int
    training_nats_per_token: float  # of the last step
    tokens_per_second: float
    flop_utilisation: float | None
    seconds_left: float


@runtime_checkable  # the tests check arguments at run time
class Watcher(Protocol):
    """Somebody who follows a run: the command line, TensorBoard and the like."""

    def started(self, spec: RunSpec, step: int) -> None:
        """A run begins, or goes on after `step`."""

    def progress(self, progress: Progress) -> None:
        """Some steps were made."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """The held-out loss was measured."""

    def notice(self, sentence: str) -> None:
        """Something that the user should know."""

    def finished(self, record: RunRecord) -> None:
        """The record is written."""


class Watchers:
    """Several watchers as one; with none, silence."""

    def __init__(self, *watchers: Watcher) -> None:
        self.watchers = watchers

    def started(self, spec: RunSpec, step: int) -> None:
        """Tell each that the run begins, or goes on."""
        for watcher in self.watchers:
            watcher.started(spec, step)

    def progress(self, progress: Progress) -> None:
        """Tell each where the run is."""
        for watcher in self.watchers:
            watcher.progress(progress)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Tell each the held-out loss."""
        for watcher in self.watchers:
            watcher.evaluated(evaluation)

    def notice(self, sentence: str) -> None:
        """Pass the sentence on to each."""
        for watcher in self.watchers:
            watcher.notice(sentence)

    def finished(self, record: RunRecord) -> None:
        """Give each the record."""
        for watcher in self.watchers:
            watcher.finished(record)
