"""A document on a terminal: twelve lines, whole words, commands that can be copied, colours."""

import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Iterable

import pytest

from archfit.report.document import NEXT, Command, Document, Section, Table, counted
from archfit.report.terminal import COLUMNS, LINES, MORE, PLAIN, RED, YELLOW, text_of

LONG = Command("archfit export " + "--option 'a value' " * 10 + "--out model")


def document(*sections: Section, headline: str = "Yes.", status: str = "") -> Document:
    return Document(title="t", headline=headline, sections=sections, data={}, status=status)


def sentences(count: int, words: str = "is a sentence") -> list[str]:
    return [f"{number} {words}" for number in range(count)]


def test_commands_are_folded_so_that_a_shell_reads_them_as_one() -> None:
    lines = text_of(document(Section.of(LONG, title="Do"))).splitlines()
    assert lines[:2] == ["Yes.", "Do"]
    assert max(map(len, lines)) <= COLUMNS
    assert len(lines) > 4
    typed = "\n".join(lines[2:]).replace("archfit", "printf '%s\n'", 1)
    read = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True)
    assert read.stdout.splitlines() == shlex.split(LONG)[1:]


def test_words_stay_whole_and_lines_short() -> None:
    words = " ".join(["--minutes-to-measure", "arXiv:2006.12467"] * 9)
    longest = "x" * 120
    section = Section.of(f"A sentence: {words}.", longest, title="Why")
    lines = text_of(document(section, headline=f"Yes: {words}")).splitlines()
    assert [line for line in lines if len(line) > COLUMNS] == [f"  {longest}"]
    said = " ".join(" ".join(lines).split())
    assert said == f"Yes: {words} Why A sentence: {words}. {longest}"
    assert lines[1].startswith("  ")  # what goes on of a headline stands further in
    assert lines[lines.index("Why") + 2].startswith("    ")


@pytest.mark.parametrize("count", [0, 5, 8, 9, 10, 40])
def test_an_answer_has_twelve_lines_and_always_what_is_next(count: int) -> None:
    told = document(Section.of(*sentences(count)), Section.of(Command("do it"), title=NEXT))
    lines = text_of(told, why=False).splitlines()
    assert len(lines) <= LINES
    shown = [line.strip() for line in lines if line.endswith("is a sentence")]
    assert shown == sentences(count)[: len(shown)]
    assert "    do it" in lines
    assert (lines[-1] == MORE) == (len(shown) < count)
    assert len(lines) == min(count + 3, LINES)  # no line is given away


def test_long_sentences_and_tables_are_shown_whole_or_not_at_all() -> None:
    rows = tuple((f"row {number}", "value") for number in range(20))
    table = Table(title="Table", columns=("a", "b"), rows=rows)
    told = document(
        Section.of("word " * 300, title="Long"),
        Section.of(table),
        Section.of("enough", title="Short"),
    )
    assert text_of(told, why=False).splitlines() == ["Yes.", "Short", "  enough", MORE]
    assert "row 19" in text_of(told, why=True)
    assert text_of(told, quiet=True) == "Yes."


def test_much_that_is_next_leaves_room_for_how_sure_it_is() -> None:
    told = document(Section.of(*sentences(3)), Section.of(*[LONG] * 9, title=NEXT))
    lines = text_of(told, why=False).splitlines()
    assert len(lines) <= LINES
    assert lines[1:4] == [f"  {sentence}" for sentence in sentences(3)]


def table_lines(columns: Iterable[str], *rows: tuple[str, ...]) -> list[str]:
    table = Table(title="", columns=tuple(columns), rows=rows)
    return text_of(document(Section.of(table))).splitlines()[1:]


def test_tables_wrap_between_words_and_set_numbers_to_the_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = table_lines(("name", "count", "about"), ("a-long-name", "1,000", "many words " * 20))
    assert lines[0].split() == ["name", "count", "about"]
    assert lines[2].startswith("  a-long-name  1,000  many words")
    assert max(map(len, lines)) <= COLUMNS
    assert {word for line in lines[2:] for word in line.split()} == {
        "a-long-name", "1,000", "many", "words",
    }  # fmt: skip


def test_a_table_with_more_columns_than_there_is_room_for_is_told_row_by_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = table_lines([f"column-{n:02}" for n in range(12)], tuple(map(str, range(12))))
    assert max(map(len, lines)) <= COLUMNS
    assert " ".join(" ".join(lines).split()).startswith("column-00 0; column-01 1; column-02 2")


def test_one_and_several() -> None:
    assert counted(1, "layer") == "1 layer"
    assert counted(2000, "layer") == "2,000 layers"
    assert counted(0, "family", "families") == "0 families"


CODE = """
from archfit.report.document import Document, Section
from archfit.report.terminal import text_of
part = Section.of("Found", "Note: beware.", status="medium")
print(text_of(Document(title="t", headline="Bad.", sections=(part,), data={}, status="high")))
"""


@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_severity_has_a_colour_on_a_terminal_that_wants_it(
    environment: dict[str, str], is_coloured: bool
) -> None:
    ours, theirs = pty.openpty()
    usual = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
    environment = {**usual, "TERM": "xterm", **environment}
    subprocess.run([sys.executable, "-c", CODE], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    text = os.read(ours, 10_000).decode()
    os.close(ours)
    assert (RED in text and YELLOW in text and PLAIN in text) == is_coloured
    assert ("\x1b" in text) == is_coloured
    piped = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True)
    assert b"\x1b" not in piped.stdout
