"""Options that several commands share, each written once, and commands' options as one value."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_origin, get_type_hints

import typer
from typer.models import ParameterInfo

from archfit.spec.sizes import parse_bytes, parse_size

Value = TypeVar("Value")
Command = TypeVar("Command", bound=Callable[..., None])
MOST_SEEDS = 1000


def with_words(command: str, **lists: Iterable[str]) -> Callable[[Command], Command]:
    """A command whose options have the words of resources/options.toml in `--help`.

    Types and defaults are those of the function's parameters; what is annotated there stays.
    `lists` are what a sentence of the table names in braces.
    """

    def worded(function: Command) -> Command:
        table = _all_words()
        hints = get_type_hints(function, include_extras=True)
        said = {name: ", ".join(names) for name, names in lists.items()}
        for name, hint in hints.items():
            words = table[command].get(name, table["shared"].get(name))
            if words is not None and get_origin(hint) is not Annotated:
                hints[name] = Annotated[hint, _option(words, said)]
        function.__annotations__ = hints
        return function

    return worded


@cache
def _all_words() -> dict[str, dict[str, dict[str, str]]]:
    file = resources.files("archfit.resources").joinpath("options.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _option(words: Mapping[str, str], said: Mapping[str, str]) -> ParameterInfo:
    """What typer reads, of one line of the table."""
    settings: dict[str, Any] = {
        "help": words["help"].format(**said),
        "metavar": words.get("metavar"),
    }
    for kind, parse in (("size", parse_size), ("bytes", parse_bytes)):
        if kind in words:
            settings |= {"parser": _parsed_by(parse), "metavar": words[kind]}
    made: ParameterInfo
    if "argument" in words:
        made = typer.Argument(**settings)
    else:
        names = [words["name"]] if "name" in words else []
        made = typer.Option(*names, rich_help_panel=words.get("panel"), **settings)
    return made


def _parsed_by(parse: Callable[[str], int]) -> Callable[[str | int], int]:
    """The parser of an option, whose default comes as a number."""

    def read(given: str | int) -> int:
        try:
            return given if isinstance(given, int) else parse(given)
        except ValueError as problem:
            raise typer.BadParameter(str(problem)) from problem

    return read


def chosen(kind: type[Value], invocation: typer.Context, /, **others: object) -> Value:
    """The options of a command that are fields of `kind` as that value, with `others` over them."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    given = {name: value for name, value in invocation.params.items() if name in names}
    return kind(**(given | others))


def _checked_chart(file: Path | None) -> Path | None:
    """The file that a chart goes to; one that cannot be written is refused before any work."""
    if file is not None:
        from archfit.report.page import check_chart_file

        check_chart_file(file)
    return file


Chart = Annotated[
    Path | None,
    typer.Option(help="Draw it: .svg .png .html", metavar="FILE", callback=_checked_chart),
]
