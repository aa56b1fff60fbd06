"""What a run tells those who watch it: the command line, TensorBoard and the like."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from archfit.spec import Evaluation, RunRecord, RunSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Where a run is."""

    step: int
    steps: int
    training_nats_per_token: float  # of the last step
    tokens_per_second: float
    flop_utilisation: float | None
    seconds_left: float


@runtime_checkable  # the types of a call are checked in tests
class Watcher(Protocol):
    """Somebody who wants to know."""

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
        """Tell each."""
        for watcher in self.watchers:
            watcher.started(spec, step)

    def progress(self, progress: Progress) -> None:
        """Tell each."""
        for watcher in self.watchers:
            watcher.progress(progress)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Tell each."""
        for watcher in self.watchers:
            watcher.evaluated(evaluation)

    def notice(self, sentence: str) -> None:
        """Tell each."""
        for watcher in self.watchers:
            watcher.notice(sentence)

    def finished(self, record: RunRecord) -> None:
        """Tell each."""
        for watcher in self.watchers:
            watcher.finished(record)
