"""What a person sees of a run: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from archfit.spec import Evaluation, RunRecord, RunSpec
    from archfit.train import Progress, Watcher

SECONDS_BETWEEN_LINES = 10.0


@contextlib.contextmanager
def watchers(count: int, *, silent: bool) -> Iterator[Sequence[Watcher]]:
    """Somebody for each of `count` runs who shows its progress on stderr, or nobody."""
    from archfit.train import Watchers

    if silent:
        yield [Watchers() for _ in range(count)]
    elif sys.stderr.isatty():
        with _bar() as bar:
            yield [OnTerminal(bar) for _ in range(count)]
    else:
        yield [InLog(names_run=count > 1) for _ in range(count)]


class InLog:
    """One line an evaluation, and one every ten seconds."""

    def __init__(self, *, names_run: bool) -> None:
        self.last_line = time.monotonic()
        self.steps = 0
        self.names_run, self.label = names_run, ""

    def started(self, spec: RunSpec, step: int) -> None:
        """A run begins, or goes on after `step`."""
        self.steps = spec.recipe.steps
        self.label = f"{spec.name}  " if self.names_run else ""
        _say(opening(spec, step))

    def progress(self, progress: Progress) -> None:
        """Say it, not too often."""
        if time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            loss = f"training {progress.training_nats_per_token:.4f} nats"
            _say(f"{self.label}step {progress.step}/{progress.steps}  {loss}  {speed(progress)}")

    def evaluated(self, evaluation: Evaluation) -> None:
        """Say it."""
        _say(f"{self.label}step {evaluation.step}/{self.steps}  {losses(evaluation)}")

    def notice(self, sentence: str) -> None:
        """Say it."""
        _say(sentence)

    def finished(self, record: RunRecord) -> None:
        """The table that follows says it."""


class OnTerminal:
    """A bar for each run, with losses, speed and time left."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.task: TaskID | None = None
        self.heldout = ""

    def started(self, spec: RunSpec, step: int) -> None:
        """A run begins, or goes on after `step`."""
        self.bar.console.print(opening(spec, step), highlight=False, markup=False)
        self.task = self.bar.add_task("", total=spec.recipe.steps, completed=step)

    def progress(self, progress: Progress) -> None:
        """Move the bar."""
        assert self.task is not None
        loss = f"{progress.training_nats_per_token:.3f} nats"
        text = f"{loss}{self.heldout}  {speed(progress)}"
        self.bar.update(self.task, completed=progress.step, description=text)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Keep the last held-out loss in sight."""
        self.heldout = f", held out {evaluation.heldout_nats_per_token:.4f}"

    def notice(self, sentence: str) -> None:
        """Say it above the bar."""
        self.bar.console.print(sentence, highlight=False, markup=False)

    def finished(self, record: RunRecord) -> None:
        """The table that follows says it."""


def opening(spec: RunSpec, step: int) -> str:
    """The first line of a run."""
    shape = spec.architecture
    begins = f"goes on from step {step}" if step else "begins"
    return (
        f"run {spec.name} {begins}: depth {shape.depth}, width {shape.width}, "
        f"{shape.params:,} parameters, {spec.training_tokens:,} tokens"
    )


def speed(progress: Progress) -> str:
    """Rate, utilisation where it is known, and time left."""
    used = progress.flop_utilisation
    utilisation = f"  {used:.1%} of peak" if used is not None else ""
    minutes, seconds = divmod(round(progress.seconds_left), 60)
    return f"{progress.tokens_per_second:,.0f} tokens/s{utilisation}  {minutes}:{seconds:02} left"


def losses(evaluation: Evaluation) -> str:
    """The figures of an evaluation."""
    return (
        f"training {evaluation.training_nats_per_token:.4f}  "
        f"held out {evaluation.heldout_nats_per_token:.4f} nats a token, "
        f"{evaluation.heldout_bits_per_byte:.4f} bits a byte"
    )


def _say(line: str) -> None:
    typer.echo(line, err=True)


@contextlib.contextmanager
def _bar() -> Iterator[Bar]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar
