"""Streams that end early, are closed or lack letters, and text that would steer a terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from archfit.cli.shared import say
from archfit.report.document import Command, Document, Section, Table
from archfit.report.terminal import text_of, visible
from tests_said import archfit

PROGRAM = f"{sys.executable} -m archfit"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\u202eevil\u2066\u200f\x9b31m\udcff"
STEERING = {*map(chr, (*range(32), *range(127, 160))), *"\u202e\u2066\u200f\u061c\u2028"} - {"\n"}


def shell(line: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The line run by bash; `archfit` in it is this one."""
    return subprocess.run(
        ["bash", "-c", line.replace("archfit", PROGRAM)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    "words",
    [
        "plan --params 10M --why",
        pytest.param("audit --all --why", marks=pytest.mark.slow),
        pytest.param("audit T5-11B", marks=pytest.mark.slow),
        pytest.param("audit --all --json", marks=pytest.mark.slow),
        "theory --why",
        "bounds --depth 12 --width 768 --heads 12",
        pytest.param("fit --evidence --why", marks=pytest.mark.slow),
        "sweep levine-depth --dry-run --why",
        "plan --help",
        "--help",
        "--version",
    ],
)
def test_a_reader_that_leaves_is_no_failure(words: str, tmp_path: Path) -> None:
    """It has left before the first letter comes, which is when every write fails."""
    done = shell(f"archfit {words} | true; echo ${{PIPESTATUS[0]}}", tmp_path)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_finding_still_counts_when_nobody_reads_it(tmp_path: Path) -> None:
    line = "archfit audit T5-11B --fail-on any --why 2>/dev/null | true; echo ${PIPESTATUS[0]}"
    assert shell(line, tmp_path).stdout == "1\n"


@pytest.mark.slow
def test_work_goes_on_where_standard_error_is_closed(tmp_path: Path) -> None:
    """A file that were opened as number 2 would be written to by all who complain."""
    options = "--depth 1 --width 8 --heads 2 --context 12 --steps 4 --batch 4 --device cpu"
    for line in (
        "archfit data prepare --out data 2>&-",
        f"archfit train --data data --out runs {options} 2>&-",
        "archfit fit runs 2>&- >&- <&-; test $? -eq 2",  # one run says nothing, and nobody hears
        "archfit data inspect data --verify >&- 2>&-",
    ):
        done = shell(line, tmp_path)
        assert done.returncode == 0, (line, done.stdout)
    assert len([*tmp_path.glob("runs/*/record.json")]) == 1


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252"])
@pytest.mark.parametrize(
    "words",
    [
        "plan --params 10M --why",
        pytest.param("audit --all --why", marks=pytest.mark.slow),
        pytest.param("backtest --grid gadre", marks=pytest.mark.slow),
        "plan --help",
    ],
)
def test_an_encoding_without_dashes_fails_nobody(words: str, encoding: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "archfit", *words.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding)


def test_json_is_whole_in_every_encoding(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "archfit", "audit", "--all", "--json"]
    documents = []
    for encoding in ("utf-8", "ascii"):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(line, env=environment, capture_output=True, check=True, cwd=tmp_path)
        documents.append(json.loads(done.stdout))
    assert documents[0] == documents[1]


# ---- text that others wrote


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_refusal_is_folded_for_a_person_and_one_line_for_programs(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    sentence = "archfit: --vocab 3 is " + "far " * 40 + "below 257; use 257 or more"
    say(sentence)
    lines = capsys.readouterr().err.splitlines()
    assert " ".join(lines) == sentence
    assert (len(lines) > 1 and max(map(len, lines)) <= 80) == is_terminal


def test_what_would_steer_a_terminal_is_shown_as_escapes() -> None:
    assert visible("plain text …") == "plain text …"
    assert visible("a\x1b[2Jb\u202ec\n\udcff") == r"a\x1b[2Jb\u202ec\n\udcff"


@pytest.mark.parametrize("why", [False, True])
def test_no_part_of_a_document_steers_a_terminal(why: bool) -> None:
    table = Table(title=HOSTILE, columns=(HOSTILE, "b"), rows=((HOSTILE, HOSTILE),))
    told = Section.of(HOSTILE, Command(HOSTILE), f"Note: {HOSTILE}", table, title=HOSTILE)
    text = text_of(Document(title="t", headline=HOSTILE, sections=(told,), data={}), why=why)
    assert not STEERING & set(text)
    text.encode()


def test_names_of_files_columns_and_data_steer_no_terminal(tmp_path: Path) -> None:
    bad = "e\x1b[31mvil\u202e"
    (tmp_path / f"{bad}.txt").write_text("some words of text\n" * 400)
    (tmp_path / f"{bad}.csv").write_text(f"{bad},b\n" + "1.0,2.0\n" * 400)
    folder = tmp_path / bad
    commands = [
        ("data", "prepare", tmp_path / f"{bad}.txt", "--out", folder),
        ("data", "prepare", tmp_path / f"{bad}.csv", "--columns", "c", "--out", tmp_path / "x"),
        ("data", "inspect", folder),
        ("data", "inspect", folder, "--why"),
        ("data", "inspect", folder, "--json"),
        ("data", "inspect", tmp_path / f"{bad}.txt"),
        ("plan", "--params", "1M", "--data", folder, "--why"),
        ("audit", tmp_path / f"{bad}.txt"),
        ("fit", folder),
        ("theory", bad),
        (bad,),
        ("plan", f"--{bad}"),
    ]
    for words in commands:
        done = archfit(*words)
        assert not STEERING & set(done.stdout + done.stderr), words
        assert done.returncode in (0, 2)
    description = json.loads((folder / "data.json").read_text())
    description |= {"vocabulary": HOSTILE, "warnings": [HOSTILE]}
    (folder / "data.json").write_text(json.dumps(description))
    for words in [("data", "inspect", folder, flag) for flag in ("--why", "--quiet", "--json")]:
        done = archfit(*words)
        assert not STEERING & set(done.stdout + done.stderr), words
