"""What commands print: one JSON document for programs, tables for people."""

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal

import typer


def print_json(document: object) -> None:
    """One JSON document on stdout, and nothing else."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table as wide as the terminal allows; numbers keep their line, words wrap."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))  # a path may look like markup
    Console(highlight=False).print(table)


def short_real(value: Decimal) -> str:
    """A real as a person wants it in a table: six digits."""
    if value == 0:
        return "0"
    if -4 <= value.adjusted() < 9:
        return f"{value:.6g}"
    return f"{value:.5e}".replace("e+", "e")


def short_integer(digits: str) -> str:
    """An integer that a line can hold: its first and last digits and their number."""
    if len(digits) <= 60 or not digits.lstrip("-").isdigit():
        return digits
    return f"{digits[:20]}…{digits[-10:]} ({len(digits.lstrip('-')):,} digits)"
