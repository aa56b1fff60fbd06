"""What a person sees while something is made: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from archfit.cli.shared import MANNER, NAME, bars_of, say
from archfit.report.document import counted
from archfit.report.sweep_document import clock_words, run_words
from archfit.report.terminal import visible
from archfit.spec.rates import beyond_rates
from archfit.spec.record import Progress, Watchers
from archfit.sweep.runner import SweepWatcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.live import Live
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from archfit.spec import Evaluation, RunSpec
    from archfit.sweep.runner import CellQueue

SECONDS_BETWEEN_LINES = 10.0
SHOWN_ENDS = 5  # cells that ended last


def say_beyond_rates(specs: Iterable[RunSpec]) -> None:
    """Say once, on standard error, where automatic learning rates are asked too much."""
    said = [sentence for spec in specs if (sentence := beyond_rates(spec)) is not None]
    if said:
        others = f" (and {counted(len(said) - 1, 'more run')})" if len(said) > 1 else ""
        say(f"{NAME}: {said[0]}{others}")


@contextlib.contextmanager
def run_watchers(count: int, *, silent: bool) -> Iterator[Sequence[Watchers]]:
    """One for each of `count` runs, which shows its progress on stderr unless all is silent."""
    if silent:
        yield [Watchers() for _ in range(count)]
    elif sys.stderr.isatty():
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

        columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
        with bars_of(*columns) as bars:
            yield [RunBar(bars) for _ in range(count)]
    else:
        yield [RunLog(names_run=count > 1) for _ in range(count)]


class RunLog(Watchers):
    """One line an evaluation, and one every ten seconds."""

    def __init__(self, *, names_run: bool) -> None:
        super().__init__()
        self.last_line, self.names_run = time.monotonic(), names_run
        self.spec: RunSpec

    def started(self, spec: RunSpec, step: int) -> None:
        """A run begins, or goes on after `step`."""
        self.spec, shape = spec, spec.architecture
        begins = f"resumes at step {step}" if step else "begins"
        self.notice(
            f"run {spec.name} {begins}: depth {shape.depth}, width {shape.width}, "
            f"{shape.params:,} parameters, {spec.training_tokens:,} tokens"
        )

    def progress(self, progress: Progress) -> None:
        """Say where the run is, not too often."""
        if time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            loss = f"training {progress.training_nats_per_token:.4f} nats"
            self.notice(f"{self._at(progress.step)}  {loss}  {speed(progress)}")

    def evaluated(self, evaluation: Evaluation) -> None:
        """Say the losses on training and held-out data."""
        nats, bits = evaluation.heldout_nats_per_token, evaluation.heldout_bits_per_byte
        loss = f"{nats:.4f} nats per token, {bits:.4f} bits per byte"
        if self.spec.architecture.objective == "masked":
            loss = f"{nats:.4f} nats, {nats / math.log(2):.4f} bits per masked token"
        trained = f"training {evaluation.training_nats_per_token:.4f}"
        self.notice(f"{self._at(evaluation.step)}  {trained}  held out {loss}")

    def _at(self, step: int) -> str:
        label = f"{self.spec.name}  " if self.names_run else ""
        return f"{label}step {step}/{self.spec.recipe.steps}"

    def notice(self, sentence: str) -> None:
        """Write the sentence to stderr."""
        say(sentence)


class RunBar(RunLog):
    """A bar for each run, with losses, speed and time left."""

    task: TaskID
    heldout = ""

    def __init__(self, bars: Bars) -> None:
        super().__init__(names_run=False)
        self.bars = bars

    def started(self, spec: RunSpec, step: int) -> None:
        """Say so above a new bar."""
        super().started(spec, step)
        self.task = self.bars.add_task("", total=spec.recipe.steps, completed=step)

    def progress(self, progress: Progress) -> None:
        """Move the bar."""
        loss = f"{progress.training_nats_per_token:.3f} nats"
        text = f"{loss}{self.heldout}  {speed(progress)}"
        self.bars.update(self.task, completed=progress.step, description=text)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Keep the last held-out loss in sight."""
        self.heldout = f", held out {evaluation.heldout_nats_per_token:.4f}"

    def notice(self, sentence: str) -> None:
        """Write the sentence above the bar."""
        self.bars.console.print(visible(sentence), highlight=False, markup=False)


def speed(progress: Progress) -> str:
    """Rate, utilisation where it is known, and time left."""
    used = progress.flop_utilisation
    utilisation = f"  {used:.1%} of peak" if used is not None else ""
    left = clock_words(progress.seconds_left)
    return f"{progress.tokens_per_second:,.0f} tokens/s{utilisation}  {left} left"


@contextlib.contextmanager
def watched() -> Iterator[SweepWatcher]:
    """A watcher that shows on stderr how the sweep goes, unless all is silent."""
    if MANNER.get().is_silent:
        yield SweepWatcher()
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:
            yield SweepTable(live)
    else:
        yield SweepLog()


class SweepLog(SweepWatcher):
    """One line a cell that ends, and one every ten seconds; knows when the work will be done."""

    seconds_between = 10.0

    def __init__(self) -> None:
        self.cells: CellQueue
        self.running: dict[RunSpec, dict[str, Any]] = {}  # with the last that was heard of it
        self.began = self.last_shown = time.monotonic()

    def begins(self, cells: CellQueue) -> None:
        """Take the list, and start the clock."""
        self.cells, self.began = cells, time.monotonic()

    def progress(self, spec: RunSpec, event: dict[str, object]) -> None:
        """Keep how far the cell has come."""
        self.running[spec] = event

    def ended(self, spec: RunSpec, how: str) -> None:
        """The cell is no longer under way."""
        self.running.pop(spec, None)
        if how != "held":  # somebody else trains it: no news
            self.tell(spec, how)

    def tell(self, spec: RunSpec, how: str) -> None:
        """Say how the cell ended."""
        say(f"{spec.name}  {run_words(spec)}: {how}")

    def passes(self) -> None:
        """Show where the sweep stands, not too often."""
        if time.monotonic() - self.last_shown > self.seconds_between:
            self.last_shown = time.monotonic()
            self.show()

    def show(self) -> None:
        """Say where the sweep stands."""
        say(self.summary())

    def summary(self) -> str:
        """Where the sweep stands, in one line."""
        cells = self.cells
        there = len(cells.skipped)
        before = f" ({there} before)" if there else ""
        parts = [f"{len(cells.done) + there}/{cells.total} runs done{before}"]
        others = {"failed": len(cells.failed), "trained elsewhere": len(cells.elsewhere)}
        parts += [f"{count} {what}" for what, count in others.items() if count]
        return ", ".join([*parts, f"{self._time_left()} left"])

    def _time_left(self) -> str:
        partly = sum(
            spec.training_flops * last["step"] / spec.recipe.steps
            for spec, last in self.running.items()
        )
        done = sum(spec.training_flops for spec in self.cells.done)
        made, seconds = done + partly, time.monotonic() - self.began
        if not made or seconds < 1:
            return "unknown time"
        everything = [*self.cells.pending, *self.running]
        left = sum(spec.training_flops for spec in everything) - partly
        return clock_words(seconds * left / made)


class SweepTable(SweepLog):
    """A table of the cells under way and those that ended last."""

    seconds_between = 0.2  # drawing takes as long as a trivial cell

    def __init__(self, live: Live) -> None:
        super().__init__()
        self.live = live
        self.ends: deque[tuple[RunSpec, str]] = deque(maxlen=SHOWN_ENDS)

    def tell(self, spec: RunSpec, how: str) -> None:
        """Keep how the cell ended."""
        self.ends.append((spec, how))

    def show(self) -> None:
        """Draw the table again."""
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, caption=self.summary(), caption_justify="left")
        for column in ("run", "network", "step", "nats", "tokens/s"):
            table.add_column(column)
        for spec, how in self.ends:
            table.add_row(spec.name, run_words(spec), visible(how[:40]), "", "", style="dim")
        for spec, last in self.running.items():
            steps, loss = f"{last['step']}/{spec.recipe.steps}", last.get("training_nats_per_token")
            rate, said = last.get("tokens_per_second", 0), "" if loss is None else f"{loss:.3f}"
            table.add_row(spec.name, run_words(spec), steps, said, f"{rate:,.0f}")
        self.live.update(table, refresh=True)
