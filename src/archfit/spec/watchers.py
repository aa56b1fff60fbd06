"""Who follows a run, and what they are told of it."""

from dataclasses import dataclass

from archfit.spec.record import Evaluation, RunRecord
from archfit.spec.run import RunSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Where a run is."""

    step: int
    steps: int
    training_nats_per_token: float  # of the last step
    tokens_per_second: float
    flop_utilisation: float | None
    seconds_left: float


class Watchers:
    """Whoever follows a run, such as the command line or TensorBoard: it overrides what it hears.

    The rest it passes on to others; with none, silence.
    """

    def __init__(self, *watchers: "Watchers") -> None:
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
