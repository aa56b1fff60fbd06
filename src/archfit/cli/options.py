"""The options of commands: their words and types, each written once, and charts that they draw."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer

from archfit.cli.output import MANNER, Manner
from archfit.spec.errors import InvalidValue
from archfit.spec.packed import packed_table
from archfit.spec.run_options import NAMES_OF_FIELD
from archfit.spec.sizes import parse_bytes, parse_size

Command = TypeVar("Command", bound=Callable[..., None])
WORDS: dict[str, dict[str, Any]] = packed_table("options.toml")  # of each command
MOST_SEEDS = 1000
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
