"""What a person sees of a sweep: a table that lives on a terminal, plain lines in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from archfit.report.sweep_document import cell_words, clock_words
from archfit.sweep.runner import SweepWatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType
    from rich.live import Live

    from archfit.spec import RunSpec
    from archfit.sweep.runner import CellQueue

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_DRAWINGS = 0.2
SHOWN_ENDS = 5  # cells that ended last
HELD = "held"  # somebody else trains it: no news


@contextlib.contextmanager
def watched(*, silent: bool) -> Iterator[SweepWatcher]:
    """A watcher that shows on stderr how the sweep goes, unless all is silent."""
    if silent:
        yield SweepWatcher()
    elif sys.stderr.isatty():
        with SweepTable() as table:
            yield table
    else:
        yield SweepLog()


@dataclass
class RunningCell:
    """A cell under way."""

    step: int
    loss: float | None = None
    rate: float = 0.0


class SweepStatus(SweepWatcher):
    """Where a sweep stands, and when it will be done by the work that is left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.cells: CellQueue
        self.running: dict[RunSpec, RunningCell] = {}
        self.ends: deque[tuple[RunSpec, str]] = deque(maxlen=SHOWN_ENDS)
        self.began, self.work_done = clock(), 0.0  # floating point operations, of ended cells

    def begins(self, cells: CellQueue) -> None:
        """Take the list, and start the clock."""
        self.cells, self.began = cells, self.clock()

    def started(self, spec: RunSpec, step: int) -> None:
        """A cell is under way."""
        self.running[spec] = RunningCell(step)

    def progress(self, spec: RunSpec, event: dict[str, object]) -> None:
        """Keep how far the cell has come."""
        at = self.running.setdefault(spec, RunningCell(0))
        at.step = int(str(event["step"]))
        at.loss = float(str(event["training_nats_per_token"]))
        at.rate = float(str(event["tokens_per_second"]))

    def ended(self, spec: RunSpec, how: str) -> None:
        """The cell is no longer under way."""
        self.running.pop(spec, None)
        if how != HELD:
            self.ends.append((spec, how))
        if how == "finished":
            self.work_done += spec.training_flops

    def summary(self) -> str:
        """Where the sweep stands, in one line."""
        cells = self.cells
        done, there = len(cells.done), len(cells.skipped)
        parts = [f"{done + there}/{cells.total} cells done"]
        if there:
            parts[0] += f" ({there} before)"
        if cells.failed:
            parts.append(f"{len(cells.failed)} failed")
        if cells.elsewhere:
            parts.append(f"{len(cells.elsewhere)} trained elsewhere")
        return ", ".join([*parts, self._time_left()])

    def _time_left(self) -> str:
        partly = sum(
            spec.training_flops * at.step / spec.recipe.steps for spec, at in self.running.items()
        )
        made = self.work_done + partly
        seconds = self.clock() - self.began
        if not made or seconds < 1:
            return "time left unknown"
        everything = [*self.cells.pending, *self.running]
        left = sum(spec.training_flops for spec in everything) - partly
        return f"{clock_words(seconds * left / made)} left"


class SweepLog(SweepStatus):
    """One line a cell that ends, and one every ten seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self.last_line = clock()

    def ended(self, spec: RunSpec, how: str) -> None:
        """Say how the cell ended."""
        super().ended(spec, how)
        if how != HELD:
            typer.echo(f"{spec.name}  {cell_words(spec)}: {how}", err=True)

    def passes(self) -> None:
        """Say where the sweep stands, not too often."""
        if self.clock() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = self.clock()
            typer.echo(self.summary(), err=True)


class SweepTable(SweepStatus):
    """A table of the cells under way and those that ended last."""

    live: Live
    last_drawn = 0.0

    def __enter__(self) -> SweepTable:
        from rich.console import Console
        from rich.live import Live

        self.live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
        self.live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.__exit__(None, None, None)

    def passes(self) -> None:
        """Draw the table again, not too often: drawing takes as long as a trivial cell."""
        if self.clock() - self.last_drawn > SECONDS_BETWEEN_DRAWINGS:
            self.live.update(self._table(), refresh=True)
            self.last_drawn = self.clock()

    def _table(self) -> RenderableType:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, caption=self.summary(), caption_justify="left")
        for column in ("run", "cell", "step", "nats", "tokens/s"):
            table.add_column(column)
        for spec, how in self.ends:
            table.add_row(spec.name, cell_words(spec), how[:40], "", "", style="dim")
        for spec, at in self.running.items():
            steps = f"{at.step}/{spec.recipe.steps}"
            loss = "" if at.loss is None else f"{at.loss:.3f}"
            table.add_row(spec.name, cell_words(spec), steps, loss, f"{at.rate:,.0f}")
        return table
