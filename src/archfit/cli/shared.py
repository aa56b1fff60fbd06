"""What all commands share: their options, written once, and how they answer.

JSON is for programs, a document's text for people, a bar meanwhile.
"""

import contextlib
import functools
import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from archfit.report.document import Document
from archfit.report.terminal import COLUMNS, PLAIN, RED, is_coloured, text_of, visible
from archfit.spec.errors import InvalidValue
from archfit.spec.packed import packed_table
from archfit.spec.sizes import parse_bytes, parse_size

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

Command = TypeVar("Command", bound=Callable[..., None])
NAME = "archfit"  # how refusals and warnings begin
WORDS: dict[str, dict[str, Any]] = packed_table("options.toml")  # of each command
MOST_SEEDS = 1000


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
GENERAL = tuple(each.name for each in fields(Manner))  # options of every command
SIZE = Parameter("size", Parameter.KEYWORD_ONLY, default=None, annotation=int | None)


def with_words(
    command: str, *fields_of: Callable[..., object], **lists: Iterable[str]
) -> Callable[[Command], Command]:
    """A command with the options that resources/options.toml lists, in that order.

    Type and default of an option are those of the function's parameter of this name, else of the
    field of a class in `fields_of`; what neither has is a size that may be left out, and what may
    be a number or one of some words is given as a word. `lists` are what a sentence of the table,
    or the function's own, names in braces.
    """
    said = {name: ", ".join(words) for name, words in lists.items()}

    def worded(function: Command) -> Command:
        makers: list[Callable[..., object]] = [Manner, *fields_of, function]
        known: dict[str, Parameter] = {}
        for maker in makers:
            known |= signature(maker, eval_str=True).parameters
        options = {name: it for name, it in WORDS[command].items() if isinstance(it, dict)}
        parameters = []
        for name, words in (options | {name: {} for name in GENERAL}).items():
            one = known.get(name, SIZE)
            hint, parts = one.annotation, get_args(one.annotation)
            if any(part is str or isinstance(part, str) for part in parts):
                hint = str | None if type(None) in parts else str
            made = _option(words or WORDS["shared"][name], said, is_flag=hint is bool)
            typed = one.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[hint, made])
            parameters.append(typed.replace(name=name))

        @functools.wraps(function)
        def run(**given: Any) -> None:
            token = MANNER.set(Manner(**{name: given.pop(name) for name in GENERAL}))
            try:
                function(**given)
            except InvalidValue as problem:
                raise problem.named(_option_names(problem, given)) from problem
            finally:
                MANNER.reset(token)

        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__doc__ = (function.__doc__ or "").format(**said)
        return run  # type: ignore[return-value]  # it is called as the command was

    return worded


def _option_names(problem: InvalidValue, options: Mapping[str, object]) -> dict[str, str]:
    """Which option stands for each field; where several may, that of the refused value."""
    from archfit.spec.run_options import NAMES_OF_FIELD

    names = {}
    for field in problem.fields:
        given = [name for name in NAMES_OF_FIELD.get(field, (field,)) if name in options]
        given.sort(key=lambda name: str(options[name]) != str(problem.value))
        if given:
            names[field] = f"--{given[0].replace('_', '-')}"
    return names


def _option(words: Mapping[str, str], said: Mapping[str, str], *, is_flag: bool) -> Any:
    """What typer reads, of one line of the table; a flag has no value to name."""
    settings: dict[str, Any] = {
        "help": words["help"].format(**said),
        "metavar": words.get("metavar", "" if is_flag else None),
        "callback": _checked_chart if "draws" in words else None,
    }
    for kind, parse in (("size", parse_size), ("bytes", parse_bytes)):
        if kind in words:
            settings |= {"parser": _parsed_by(parse), "metavar": words[kind]}
    if "argument" in words:
        return typer.Argument(**settings)
    names = [words["name"]] if "name" in words else []
    return typer.Option(*names, rich_help_panel=words.get("panel"), **settings)


def _parsed_by(parse: Callable[[str], int]) -> Callable[[str | int], int]:
    """The parser of an option, whose default comes as a number."""

    def read(given: str | int) -> int:
        try:
            return given if isinstance(given, int) else parse(given)
        except ValueError as problem:
            raise typer.BadParameter(str(problem)) from problem

    return read


def _checked_chart(file: Path | None) -> Path | None:
    """The file that a chart goes to; one that cannot be written is refused before any work."""
    if file is not None:
        from archfit.report.page import check_chart_file

        check_chart_file(file)
    return file


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


def bars_of(*columns: "ProgressColumn") -> "Progress":
    """Bars with these columns, drawn on stderr and gone when all is done."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)
