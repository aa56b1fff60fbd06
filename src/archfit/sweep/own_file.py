"""A sweep file as it stands on disk: its tables, and refusals that name the file and the line."""

import datetime
import tomllib
from dataclasses import dataclass
from pathlib import Path

from archfit.spec import open_regular
from archfit.sweep.toml_lines import (
    MOST_KEY_PARTS,
    KeyPath,
    line_of,
    lines_of_keys,
    overlong_key_line,
)

LARGEST_FILE = 10**6  # bytes
_SHOWN = 60  # characters of a value


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepFile:
    """The tables of a TOML file and the lines of its keys."""

    name: str
    stem: str
    tables: dict[str, object]
    lines: dict[KeyPath, int]

    def refusal(self, path: KeyPath, text: str) -> ValueError:
        """The error that `text` explains, at the line of `path`."""
        return ValueError(f"{self.name} line {line_of(self.lines, path)}: {text}")


def read_sweep_file(path: Path) -> SweepFile:
    """The file, which may be anybody's: read in bounded time and memory, or refused."""
    try:
        text = _text(path)
    except ValueError as problem:
        raise ValueError(f"{path.name} is no sweep file: {problem}") from problem
    if line := overlong_key_line(text):
        raise ValueError(
            f"{path.name} line {line}: a key of over {MOST_KEY_PARTS} parts joined by dots means "
            "nothing in a sweep file; write a key such as depth"
        )
    return SweepFile(
        name=path.name, stem=path.stem, tables=_parsed(text, path.name), lines=lines_of_keys(text)
    )


def _text(path: Path) -> str:
    with open_regular(path) as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"it has over {LARGEST_FILE:,} bytes; write grids in place of cells")
    try:
        return content.decode().replace("\r\n", "\n")  # as tomllib does it
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise ValueError(
            f"line {line} is not UTF-8 (byte 0x{content[problem.start]:02x}); write it as text"
        ) from problem


def _parsed(text: str, name: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ValueError(f"{name} is not TOML: {problem}; correct that place") from problem
    except RecursionError as problem:
        raise ValueError(
            f"{name} is nested too deeply; a sweep file has lists in tables and nothing deeper"
        ) from problem
    except ValueError as problem:  # Python refuses to read numbers of thousands of digits
        raise ValueError(
            f"{name} holds a number of thousands of digits; write one up to 10^12"
        ) from problem


def shown(value: object) -> str:
    """A value as the file writes it, shortened; a list or a table by its kind alone."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    if isinstance(value, int) and value.bit_length() > 200:  # Python refuses to write it out
        return "a number of over 60 digits"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
