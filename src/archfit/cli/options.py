"""Options that several commands share, each written once, and commands' options as one value."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_origin, get_type_hints

import typer
from typer.models import ParameterInfo

from archfit.cli.output import MANNER, Manner
from archfit.spec.errors import InvalidValue
from archfit.spec.packed import packed_table
from archfit.spec.run_options import NAMES_OF_FIELD
from archfit.spec.sizes import parse_bytes, parse_size

Value = TypeVar("Value")
Command = TypeVar("Command", bound=Callable[..., None])
MOST_SEEDS = 1000
GENERAL = ("why", "quiet", "as_json")  # options of every command


def with_words(
    command: str, fields_of: type | tuple[type, ...] = (), **lists: Iterable[str]
) -> Callable[[Command], Command]:
    """A command with the options that resources/options.toml lists, in that order.

    Type and default of an option are those of the function's parameter of this name, else of the
    field of `fields_of`, one class or several. `lists` are what a sentence of the table, or the
    function's own, names in braces.
    """

    kinds = fields_of if isinstance(fields_of, tuple) else (fields_of,)

    def worded(function: Command) -> Command:
        own = signature(function).parameters
        filled = [each for kind in kinds for each in fields(kind)]
        types = {name: hint for kind in kinds for name, hint in get_type_hints(kind).items()}
        types |= get_type_hints(function, include_extras=True)
        types |= dict.fromkeys(GENERAL, bool)
        defaults = {it.name: it.default for it in filled if it.default is not MISSING}
        defaults |= dict.fromkeys(GENERAL, False) | {name: it.default for name, it in own.items()}
        said, table = {name: ", ".join(words) for name, words in lists.items()}, all_words()
        options = {name: it for name, it in table[command].items() if isinstance(it, dict)}
        for name, words in (options | {name: {} for name in GENERAL}).items():
            if get_origin(types[name]) is not Annotated:
                made = _option(words or table["shared"][name], said, is_flag=types[name] is bool)
                types[name] = Annotated[types[name], made]
        names = [*(name for name in own if types[name] is typer.Context), *options, *GENERAL]

        @functools.wraps(function)
        def run(**given: Any) -> None:
            manner = Manner(**{name: given.pop(name) for name in GENERAL})
            token = MANNER.set(manner)
            try:
                function(**given)
            except InvalidValue as problem:
                raise problem.named(_option_names(problem, given)) from problem
            finally:
                MANNER.reset(token)

        usual = {name: defaults.get(name, Parameter.empty) for name in names}  # each once
        run.__signature__ = Signature(  # type: ignore[attr-defined]  # typer reads it
            [
                Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
                for name, default in usual.items()
            ]
        )
        run.__annotations__ = types
        run.__doc__ = (function.__doc__ or "").format(**said)
        return run  # type: ignore[return-value]  # it is called as the command was

    return worded


def examples(command: str) -> str:
    """What `--help` ends with: lines that can be typed as they stand."""
    lines = all_words()[command]["examples"]
    return "\n\n".join(["Examples:", *(f"  {line}" for line in lines)])


def _option_names(problem: InvalidValue, options: Mapping[str, object]) -> dict[str, str]:
    """Which option stands for each field; where several may, that of the refused value."""
    names = {}
    for field in problem.fields:
        given = [name for name in NAMES_OF_FIELD.get(field, (field,)) if name in options]
        given.sort(key=lambda name: str(options[name]) != str(problem.value))
        if given:
            names[field] = f"--{given[0].replace('_', '-')}"
    return names


def all_words() -> dict[str, dict[str, Any]]:
    """What resources/options.toml says of each command."""
    return packed_table("options.toml")


def _option(words: Mapping[str, str], said: Mapping[str, str], *, is_flag: bool) -> ParameterInfo:
    """What typer reads, of one line of the table; a flag has no value to name."""
    settings: dict[str, Any] = {
        "help": words["help"].format(**said),
        "metavar": words.get("metavar", "" if is_flag else None),
    }
    for kind, parse in (("size", parse_size), ("bytes", parse_bytes)):
        if kind in words:
            settings |= {"parser": _parsed_by(parse), "metavar": words[kind]}
    if "argument" in words:
        argument: ParameterInfo = typer.Argument(**settings)
        return argument
    names = [words["name"]] if "name" in words else []
    option: ParameterInfo = typer.Option(*names, rich_help_panel=words.get("panel"), **settings)
    return option


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
    typer.Option(
        help="Draw a chart: .svg, .png or .html.", metavar="FILE", callback=_checked_chart
    ),
]
