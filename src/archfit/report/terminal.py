"""A document as text for a terminal: the answer first, tables as wide as there is room."""

from typing import TYPE_CHECKING

from archfit.report.document import Command, Document, Section, Table

if TYPE_CHECKING:
    from rich.console import Console

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def text_of(document: Document) -> str:
    """Headline and sections, without those that only a page has room for."""
    from rich.console import Console

    console = Console(highlight=False)
    lines = [document.headline] if document.headline else []
    for at, section in enumerate(document.sections):
        if not section.is_detail:
            lines += _section_lines(section, console, under_headline=at == 0 and bool(lines))
    return "\n".join(lines)


def _section_lines(section: Section, console: "Console", *, under_headline: bool) -> list[str]:
    """Sentences stand under the title; commands further in, so that they are copied whole."""
    indent = "  " if section.title or under_headline else ""
    title = f"{BOLD}{section.title}{PLAIN}" if console.is_terminal else section.title
    lines = [title] if section.title else []
    for sentence in section.sentences:
        lines.append(f"{indent}{'  ' if isinstance(sentence, Command) else ''}{sentence}")
    return lines + [_table_text(table.narrowed(), console) for table in section.tables]


def _table_text(table: Table, console: "Console") -> str:
    """The table as wide as the terminal allows; numbers keep their line, words wrap."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table as RichTable

    drawn = RichTable(title=escape(table.title), title_justify="left", box=box.SIMPLE_HEAD)
    for column in table.columns:
        drawn.add_column(column, overflow="fold")
    for row in table.rows:
        drawn.add_row(*map(escape, row))  # a path may look like markup
    with console.capture() as captured:
        console.print(drawn)
    return captured.get().rstrip("\n") + "\n"
