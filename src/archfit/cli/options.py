"""Options that several commands share, each written once, and commands' options as one value."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.models import OptionInfo

from archfit.spec.sizes import parse_bytes, parse_size

Value = TypeVar("Value")
MOST_SEEDS = 1000
SHAPE, DATA, TRAINING = "Shape", "Your data", "Training"


def _parsed_by(parse: Callable[[str], int]) -> Callable[[str | int], int]:
    """The parser of an option, whose default comes as a number."""

    def read(given: str | int) -> int:
        try:
            return given if isinstance(given, int) else parse(given)
        except ValueError as problem:
            raise typer.BadParameter(str(problem)) from problem

    return read


def _option(*names: str, **settings: Any) -> OptionInfo:
    made: OptionInfo = typer.Option(*names, **settings)
    return made


def size(text: str, metavar: str = "N", panel: str | None = None) -> OptionInfo:
    """An option for a whole number as people write it: 125M, 1.3B, 2e7."""
    parser = _parsed_by(parse_size)
    return _option(parser=parser, metavar=metavar, help=text, rich_help_panel=panel)


def byte_size(text: str, panel: str | None = None) -> OptionInfo:
    """An option for a number of bytes: 500k, 16MB, 1GiB."""
    parser = _parsed_by(parse_bytes)
    return _option(parser=parser, metavar="16MB", help=text, rich_help_panel=panel)


def word(text: str, panel: str | None = None, metavar: str | None = None) -> OptionInfo:
    """An option for a word, a path or a number that is not whole."""
    return _option(help=text, rich_help_panel=panel, metavar=metavar)


def flag(name: str, text: str, panel: str | None = None) -> OptionInfo:
    """An option that is there or not."""
    return _option(name, help=text, rich_help_panel=panel)


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


DEPTH = size("Number of layers.", "L", SHAPE)
WIDTH = size("Residual stream.", "D", SHAPE)
HEADS = size("Heads in a layer.", "H", SHAPE)
HEAD_DIM = size("Size of a head; width / heads if left out.", "K", SHAPE)
CONTEXT = size("Positions seen at once.", "N", SHAPE)
RANK = size("Of the embedding.", "R", SHAPE)
POSITION_RANK = size("0: no positional vectors.", "R", SHAPE)
RESIDUAL = flag("--residual", "With residual connections.", SHAPE)
BLOCK = word("gpt2, or llama: RMS norm, SwiGLU, rotary.", SHAPE, "NAME")
OBJECTIVE = word("causal, or masked: an encoder.", SHAPE, "NAME")
PARAMS = size("Budget: all parameters.")
MAX_DEPTH = size("Layers that you would train.", "L")
DEVICE = word("auto, cuda, mps or cpu.")
FAMILY = word("Of the data: text, code, protein, DNA, music …; any: none of them.")
CHECKPOINT_SECONDS = word("From one checkpoint to the next.")

Why = Annotated[bool, flag("--why", "What the answer rests on, and what others advise.")]
AsJson = Annotated[bool, flag("--json", "Print one JSON document and nothing else.")]
Chart = Annotated[
    Path | None,
    typer.Option(help="Draw it: .svg .png .html", metavar="FILE", callback=_checked_chart),
]
