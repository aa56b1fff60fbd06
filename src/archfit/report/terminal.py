"""A document as text for a terminal: the answer in twelve lines, or all of it where one asks why.

Words stay whole, and every text that may be somebody else's (names of files, of columns, of
models) passes `visible`: nothing in it can steer a terminal.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TextIO

from archfit.report.document import NEXT, Command, Document, Section, Table

LINES, COLUMNS = 12, 80  # of an answer
LINES_OF_NEXT = 5  # of these at most, its title among them
MORE = "Add --why for the rest."
PLAIN, BOLD, RED, YELLOW, GREEN = "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[32m"
TINTS = {  # of titles and headlines, by what they say
    "high": RED, "refuted": RED, "failed": RED,
    "medium": YELLOW, "undecided": YELLOW, "unchecked": YELLOW,
    "held": GREEN, "confirmed": GREEN,
}  # fmt: skip
NOTE = "Note:"
JOINED = "\xa0%"  # where no line ends


def text_of(document: Document, *, why: bool = True, quiet: bool = False) -> str:
    """All that a terminal has room for, the answer in twelve lines, or its headline alone."""
    head = _headed(document.headline or document.title, document.status)
    parts = [section for section in document.sections if not section.is_detail]
    if quiet:
        return "\n".join(head)
    told = _fitting(parts, sys.maxsize)[0] if why else _brief(parts, LINES - len(head))
    return "\n".join([*head, *told])


def _brief(sections: Sequence[Section], room: int) -> list[str]:
    """What fits of what is said beside the answer, what to do next, and whether there is more.

    What comes first is more important; sentences and tables are shown whole or not at all.
    """
    told = [section for section in sections if not section.is_why]
    rest = any(section.is_why for section in sections)
    after, more = _fitting([part for part in told if part.title == NEXT], LINES_OF_NEXT)
    rest |= more
    about = [part for part in told if part.title != NEXT]
    lines, more = _fitting(about, room - len(after) - rest)
    if more and not rest:  # one line less: it says so
        lines, _ = _fitting(about, room - len(after) - 1)
    return [*lines, *after, *[MORE] * (rest or more)]


def _fitting(sections: Sequence[Section], room: int) -> tuple[list[str], bool]:
    """The first parts of each of these sections that fit, and whether anything is left over."""
    lines: list[str] = []
    is_left = False
    for section in sections:
        title = _headed(section.title, section.status)
        for part in _part_lines(section):
            if len(lines) + len(title) + len(part) > room:
                is_left = True
                break
            lines += [*title, *part]
            title = []
    return lines, is_left


def _headed(title: str, status: str) -> list[str]:
    return _tinted(_wrapped(title), TINTS.get(status, "") + BOLD)


def _part_lines(section: Section) -> Iterator[list[str]]:
    """Each sentence and each table; commands stand further in, and can be copied whole."""
    for sentence in section.sentences:
        if isinstance(sentence, Command):
            yield _folded(visible(sentence), "    ")
        elif sentence.startswith(NOTE):
            first, *others = _wrapped(sentence, "  ")
            marked = "".join(_tinted([NOTE], YELLOW))
            yield [first.replace(NOTE, marked, 1), *others]
        else:
            yield _wrapped(sentence, "  ")
    for table in section.tables:
        yield _table_lines(table.narrowed())


def visible(text: str) -> str:
    """The text on one line, with all that a terminal would obey and not show written as escapes.

    Those are control characters, marks that turn the direction of a line around, and bytes of
    file names that are no text.
    """
    letters = (x if x.isprintable() else x.encode("unicode_escape").decode() for x in text)
    return "".join(letters)


def is_coloured(stream: TextIO) -> bool:
    """Whether a person looks at the stream, and wants colours (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _tinted(lines: list[str], tint: str) -> list[str]:
    return [f"{tint}{line}{PLAIN}" for line in lines] if is_coloured(sys.stdout) else lines


def _wrapped(text: str, indent: str = "", width: int = COLUMNS) -> list[str]:
    """A sentence on lines; words stay whole, also those with dashes, and numbers beside their %."""
    lines = textwrap.wrap(
        visible(text).replace(" %", JOINED), width, initial_indent=indent,
        subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace(JOINED, " %") for line in lines]


def _folded(command: str, indent: str) -> list[str]:
    """A command on lines that a shell reads as one; its options stay beside their values, and what
    is said behind it is left out where it would need a line of its own."""
    lines, line = [], indent
    said, _, comment = command.partition("  #")
    for word in said.replace(" --", "\n--").split("\n"):
        if len(line) + len(word) + 3 > COLUMNS and line.strip():
            lines.append(f"{line} \\")
            line = f"{indent}  "
        line += word if not line.strip() else f" {word}"
    has_room = comment and len(line) + len(comment) + 3 <= COLUMNS
    return [*lines, f"{line}  #{comment}" if has_room else line]


def _table_lines(table: Table) -> list[str]:
    """The table as wide as the terminal allows; where not even its words fit, row by row."""
    rows = [tuple(map(visible, row)) for row in (table.columns, *table.rows)]
    columns = [*zip(*rows, strict=True)]
    least = [
        max(len(word) for cell in column for word in [*cell.split(), ""]) for column in columns
    ]
    widths = [max(map(len, column)) for column in columns]
    terminal = shutil.get_terminal_size((COLUMNS, LINES)).columns
    room = max(terminal, COLUMNS) - 2 * len(columns)
    lines = _tinted(_wrapped(table.title, width=terminal), BOLD)
    if sum(least) > room:
        for row in table.rows:
            said = [f"{name} {cell}" for name, cell in zip(table.columns, row, strict=True) if cell]
            lines += _wrapped("; ".join(said) if any(table.columns) else ": ".join(row), "  ")
        return lines
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda at: (widths[at] > least[at], widths[at]))
        widths[widest] -= 1
    for number, row in enumerate(rows):
        lines += _row_lines(row, widths, table.numeric)
        lines += ["  " + "  ".join("-" * width for width in widths)] * (number == 0 and any(row))
    return lines


def _row_lines(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> Iterator[str]:
    """A row on as many lines as its longest cell takes."""
    cells = [
        textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) if cell else []
        for cell, width in zip(row, widths, strict=True)
    ]
    for words in zip_longest(*cells, fillvalue=""):
        set_ = (
            word.rjust(width) if column in right else word.ljust(width)
            for column, (word, width) in enumerate(zip(words, widths, strict=True))
        )
        yield "  " + "  ".join(set_).rstrip()
