"""A document as text for a terminal: the answer first, tables as wide as there is room."""

import os
import sys
import textwrap

from archfit.report.document import Command, Document, Section, Table

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
COLUMNS = 80


def text_of(document: Document, *, why: bool = True) -> str:
    """Headline and sections, without those that only a page has room for, or only who asks why."""
    lines = _wrapped(document.headline, "") if document.headline else []
    for at, section in enumerate(document.sections):
        if not section.is_detail and (why or not section.is_why):
            lines += _section_lines(section, under_headline=at == 0 and bool(lines))
    return "\n".join(lines)


def _section_lines(section: Section, *, under_headline: bool) -> list[str]:
    """Sentences stand under the title; commands further in, so that they are copied whole."""
    indent = "  " if section.title or under_headline else ""
    is_plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    title = section.title if is_plain else f"{BOLD}{section.title}{PLAIN}"
    lines = [title] if section.title else []
    for sentence in section.sentences:
        if isinstance(sentence, Command):
            lines.append(f"{indent}  {sentence}")
        else:
            lines += _wrapped(sentence, indent)
    return lines + [_table_text(table.narrowed()) for table in section.tables]


def _wrapped(sentence: str, indent: str) -> list[str]:
    """A sentence on lines of COLUMNS; words stay whole, also those with dashes."""
    if len(indent + sentence) <= COLUMNS or "\n" in sentence:
        return [indent + sentence]
    further = indent + "  "
    return textwrap.wrap(
        sentence, COLUMNS, initial_indent=indent, subsequent_indent=further,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _table_text(table: Table) -> str:
    """The table as wide as the terminal allows; numbers keep their line, words wrap."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    drawn = RichTable(title=escape(table.title), title_justify="left", box=box.SIMPLE_HEAD)
    for column in table.columns:
        drawn.add_column(column, overflow="fold")
    for row in table.rows:
        drawn.add_row(*map(escape, row))  # a path may look like markup
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(drawn)
    return captured.get().rstrip("\n") + "\n"
