"""What commands print: JSON for programs, a document's text for people, a bar meanwhile."""

from __future__ import annotations

import contextlib
import json
import sys
import textwrap
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from archfit.report.document import counted
from archfit.report.terminal import COLUMNS, PLAIN, RED, is_coloured, text_of, visible
from archfit.spec.rates import beyond_rates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.progress import Progress, ProgressColumn

    from archfit.report.document import Document
    from archfit.spec import RunSpec

NAME = "archfit"  # how refusals and warnings begin


@dataclass(frozen=True, kw_only=True, slots=True)
class Manner:
    """How somebody asked to be answered."""

    why: bool = False
    quiet: bool = False
    as_json: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether nothing is said of work under way."""
        return self.quiet or self.as_json


# How the one who typed the command that runs wants to be answered.
MANNER: ContextVar[Manner] = ContextVar("MANNER", default=Manner())  # noqa: B039  # it is frozen


def print_json(document: object) -> None:
    """One JSON document on stdout, and nothing else; in ASCII, which steers no terminal."""
    typer.echo(json.dumps(document, indent=2).replace("\x7f", "\\u007f"))


def say(sentence: str) -> None:
    """A line on stderr, beside the answer; a person sees it folded."""
    prefix = f"{NAME}:"
    line = visible(sentence)
    if sys.stderr.isatty():
        line = textwrap.fill(line, COLUMNS, break_long_words=False, break_on_hyphens=False)
    if line.startswith(prefix) and is_coloured(sys.stderr):
        line = line.replace(prefix, f"{RED}{prefix}{PLAIN}", 1)
    typer.echo(line, err=True)


def say_stopped(sentence: str) -> None:
    """The same after Ctrl-C, which a terminal echoes where the cursor is."""
    if sys.stderr.isatty():
        typer.echo(err=True)
    say(f"{NAME}: {sentence}")


def show(document: Document, *, chart: Path | None = None, figure: str = "") -> None:
    """The result in the manner asked for; `figure` of it is drawn to the file `chart`."""
    asked = MANNER.get()
    if chart is not None and figure:
        from archfit.report.page import save_figure

        save_figure(document.figure(figure), chart)
    if asked.as_json:
        more = {} if chart is None else {"chart": str(chart)}
        data = document.data
        return print_json(data | more if isinstance(data, dict) else data)
    drawn = [] if chart is None or asked.quiet else [f"Chart: {visible(str(chart))}"]
    return typer.echo("\n".join([text_of(document, why=asked.why, quiet=asked.quiet), *drawn]))


@contextlib.contextmanager
def bar(first: str, *, of_bytes: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """What to call with stage, done and total; it moves a bar on a terminal, else nothing."""
    if not sys.stderr.isatty() or MANNER.get().is_silent:
        yield lambda _stage, _done, _total: None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

    sizes = (DownloadColumn(),) if of_bytes else ()
    columns = (TextColumn("{task.description}"), BarColumn(), *sizes, TimeRemainingColumn())
    with bars_of(*columns) as bars:
        task = bars.add_task(first, total=None)
        yield lambda stage, done, total: bars.update(
            task, description=stage, completed=done, total=total or None
        )


def bars_of(*columns: ProgressColumn) -> Progress:
    """Bars with these columns, drawn on stderr and gone when all is done."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)


def say_beyond_rates(specs: Iterable[RunSpec]) -> None:
    """Say once, on standard error, where automatic learning rates are asked too much."""
    said = [sentence for spec in specs if (sentence := beyond_rates(spec)) is not None]
    if said:
        others = f" (and {counted(len(said) - 1, 'more run')})" if len(said) > 1 else ""
        say(f"{NAME}: {said[0]}{others}")
