"""What a runner tells those who watch it: the table of the command line."""

from typing import Protocol

from archfit.spec import RunSpec
from archfit.sweep.cells import Cells


class SweepWatcher(Protocol):
    """Somebody who wants to know."""

    def begins(self, cells: Cells) -> None:
        """The list is there; it changes while the runner works."""

    def started(self, spec: RunSpec, step: int) -> None:
        """A cell is being trained, from this step on."""

    def progress(self, spec: RunSpec, event: dict[str, object]) -> None:
        """Some steps were made: step, steps, training_nats_per_token, tokens_per_second."""

    def ended(self, spec: RunSpec, how: str) -> None:
        """A cell is no longer trained: finished, or the reason."""

    def passes(self) -> None:
        """Time passes; comes at least once a second."""
