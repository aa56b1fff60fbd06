"""What a person sees while something is made: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn, TaskID

    from archfit.spec import Evaluation, RunRecord, RunSpec
    from archfit.train import Progress, Watcher

SECONDS_BETWEEN_LINES = 10.0


@contextlib.contextmanager
def bar(first: str, *, of_bytes: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """What to call with stage, done and total; it moves a bar on a terminal, else nothing."""
    if not sys.stderr.isatty():
        yield lambda _stage, _done, _total: None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

    sizes = (DownloadColumn(),) if of_bytes else ()
    columns = (TextColumn("{task.description}"), BarColumn(), *sizes, TimeRemainingColumn())
    with _bars(*columns) as bars:
        task = bars.add_task(first, total=None)
        yield lambda stage, done, total: bars.update(
            task, description=stage, completed=done, total=total or None
        )


@contextlib.contextmanager
def run_watchers(count: int, *, silent: bool) -> Iterator[Sequence[Watcher]]:
    """One for each of `count` runs, which shows its progress on stderr unless all is silent."""
    from archfit.train import Watchers

    if silent:
        yield [Watchers() for _ in range(count)]
    elif sys.stderr.isatty():
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

        columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
        with _bars(*columns) as bars:
            yield [RunBar(bars) for _ in range(count)]
    else:
        yield [RunLog(names_run=count > 1) for _ in range(count)]


def _bars(*columns: ProgressColumn) -> Bars:
    from rich.console import Console
    from rich.progress import Progress as Bars

    return Bars(*columns, console=Console(stderr=True), transient=True)


class RunLog:
    """One line an evaluation, and one every ten seconds."""

    def __init__(self, *, names_run: bool) -> None:
        self.last_line = time.monotonic()
        self.steps = 0
        self.names_run, self.label = names_run, ""

    def started(self, spec: RunSpec, step: int) -> None:
        """A run begins, or goes on after `step`."""
        self.steps = spec.recipe.steps
        self.label = f"{spec.name}  " if self.names_run else ""
        self.notice(opening(spec, step))

    def progress(self, progress: Progress) -> None:
        """Say where the run is, not too often."""
        if time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            loss = f"training {progress.training_nats_per_token:.4f} nats"
            at = f"step {progress.step}/{progress.steps}"
            self.notice(f"{self.label}{at}  {loss}  {speed(progress)}")

    def evaluated(self, evaluation: Evaluation) -> None:
        """Say the losses on training and held-out data."""
        self.notice(
            f"{self.label}step {evaluation.step}/{self.steps}  "
            f"training {evaluation.training_nats_per_token:.4f}  "
            f"held out {evaluation.heldout_nats_per_token:.4f} nats a token, "
            f"{evaluation.heldout_bits_per_byte:.4f} bits a byte"
        )

    def notice(self, sentence: str) -> None:
        """Write the sentence to stderr."""
        typer.echo(sentence, err=True)

    def finished(self, record: RunRecord) -> None:
        """Say nothing: the table that follows does."""


class RunBar:
    """A bar for each run, with losses, speed and time left."""

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.task: TaskID | None = None
        self.heldout = ""

    def started(self, spec: RunSpec, step: int) -> None:
        """A run begins, or goes on after `step`."""
        self.notice(opening(spec, step))
        self.task = self.bars.add_task("", total=spec.recipe.steps, completed=step)

    def progress(self, progress: Progress) -> None:
        """Move the bar."""
        assert self.task is not None
        loss = f"{progress.training_nats_per_token:.3f} nats"
        text = f"{loss}{self.heldout}  {speed(progress)}"
        self.bars.update(self.task, completed=progress.step, description=text)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Keep the last held-out loss in sight."""
        self.heldout = f", held out {evaluation.heldout_nats_per_token:.4f}"

    def notice(self, sentence: str) -> None:
        """Write the sentence above the bar."""
        self.bars.console.print(sentence, highlight=False, markup=False)

    def finished(self, record: RunRecord) -> None:
        """Say nothing: the table that follows does."""


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
