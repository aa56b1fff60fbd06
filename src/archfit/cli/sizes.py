"""Sizes as options of the command line."""

import typer

from archfit.spec.sizes import parse_size


def size_option(given: str | int) -> int:
    """`parse_size` for an option of the command line, whose default comes as a number."""
    if isinstance(given, int):
        return given
    try:
        return parse_size(given)
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from problem
