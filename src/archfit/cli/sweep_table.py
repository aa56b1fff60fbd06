"""What a person sees of a sweep: a table that lives on a terminal, plain lines in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import typer

from archfit.spec import Factorised, RunSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.live import Live

    from archfit.sweep.runner import CellQueue, SweepWatcher

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_DRAWINGS = 0.2
SHOWN_ENDS = 5  # cells that ended last
HELD = "held"  # somebody else trains it: no news


class Clock(Protocol):
    """Seconds that only grow."""

    def __call__(self) -> float:
        """Now."""


@contextlib.contextmanager
def watched(*, silent: bool) -> Iterator[SweepWatcher]:
    """Somebody who shows on stderr how the sweep goes, or nobody."""
    if silent:
        yield Silent()
    elif sys.stderr.isatty():
        with OnTerminal() as shown:
            yield shown
    else:
        yield InLog()


class Silent:
    """Nobody."""

    def begins(self, cells: CellQueue) -> None:
        """Say nothing."""

    def started(self, spec: RunSpec, step: int) -> None:
        """Say nothing."""

    def progress(self, spec: RunSpec, event: dict[str, object]) -> None:
        """Say nothing."""

    def ended(self, spec: RunSpec, how: str) -> None:
        """Say nothing."""

    def passes(self) -> None:
        """Say nothing."""


@dataclass
class Running:
    """A cell under way."""

    step: int
    loss: float | None = None
    rate: float = 0.0


class Standing(Silent):
    """Where a sweep stands, and when it will be done by the work that is left."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self.cells: CellQueue
        self.running: dict[RunSpec, Running] = {}
        self.ends: deque[tuple[RunSpec, str]] = deque(maxlen=SHOWN_ENDS)
        self.began, self.work_done = clock(), 0.0  # floating point operations, of ended cells

    def begins(self, cells: CellQueue) -> None:
        """The list is there."""
        self.cells, self.began = cells, self.clock()

    def started(self, spec: RunSpec, step: int) -> None:
        """A cell is under way."""
        self.running[spec] = Running(step)

    def progress(self, spec: RunSpec, event: dict[str, object]) -> None:
        """It has come further."""
        at = self.running.setdefault(spec, Running(0))
        at.step = int(str(event["step"]))
        at.loss = float(str(event["training_nats_per_token"]))
        at.rate = float(str(event["tokens_per_second"]))

    def ended(self, spec: RunSpec, how: str) -> None:
        """It is no longer under way."""
        self.running.pop(spec, None)
        if how != HELD:
            self.ends.append((spec, how))
        if how == "finished":
            self.work_done += spec.training_flops

    def summary(self) -> str:
        """One line."""
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
        return f"{minutes(seconds * left / made)} left"


class InLog(Standing):
    """One line a cell that ends, and one every ten seconds."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__(clock)
        self.last_line = clock()

    def ended(self, spec: RunSpec, how: str) -> None:
        """Say it."""
        super().ended(spec, how)
        if how != HELD:
            typer.echo(f"{spec.name}  {described(spec)}: {how}", err=True)

    def passes(self) -> None:
        """Say where the sweep stands, not too often."""
        if self.clock() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = self.clock()
            typer.echo(self.summary(), err=True)


class OnTerminal(Standing):
    """A table of the cells under way and those that ended last."""

    live: Live
    last_drawn = 0.0

    def __enter__(self) -> OnTerminal:
        from rich.console import Console
        from rich.live import Live

        self.live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
        self.live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.__exit__(None, None, None)

    def passes(self) -> None:
        """Draw it again, not too often: drawing takes as long as a trivial cell."""
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
            table.add_row(spec.name, described(spec), how[:40], "", "", style="dim")
        for spec, at in self.running.items():
            steps = f"{at.step}/{spec.recipe.steps}"
            loss = "" if at.loss is None else f"{at.loss:.3f}"
            table.add_row(spec.name, described(spec), steps, loss, f"{at.rate:,.0f}")
        return table


def described(spec: RunSpec) -> str:
    """A cell in a few words: what sweeps change."""
    shape = spec.architecture
    words = [f"depth {shape.depth} width {shape.width} vocab {shape.input.vocab}"]
    if shape.attention_ratio != 1:
        words.append(f"attention {shape.attention_ratio:g}")
    if shape.input.tokens_per_position > 1:
        words.append(f"patch {shape.input.tokens_per_position}")
    tables = {"input": shape.embedding, "positions": shape.positions, "head": shape.head}
    for name, table in tables.items():
        if isinstance(table, Factorised):
            words.append(f"{name} rank {table.inner}")
    return f"{', '.join(words)}, seed {spec.seed}"


def minutes(seconds: float) -> str:
    """Hours, minutes and seconds as clocks show them."""
    whole, rest = divmod(round(seconds), 60)
    hours, left = divmod(whole, 60)
    return f"{hours}:{left:02}:{rest:02}" if hours else f"{left}:{rest:02}"
