"""A TOML file that anybody may have written: its tables, and the line of each key.

tomllib says no lines. The text is cut into tokens once, so strings and comments that look like keys
are passed over and the time grows with its length only, whether it is TOML or not.
"""

import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from archfit.spec.errors import MOST, InvalidValue, check_at_least, refusal
from archfit.spec.files import LARGEST_SWEEP_FILE, read_bounded
from archfit.spec.sizes import parse_size

KeyPath: TypeAlias = tuple[str | int, ...]  # ("grid", 0, "depth"); numbers count tables and items

LONGEST_WORD = 200  # characters of a label or a choice
MOST_KEY_PARTS = 16  # tomllib's time grows with their square; no sweep has more than two
_OPENING = {"[": 1, "{": 1, "]": -1, "}": -1}
_TOKEN = re.compile(
    r"""
    (?P<string> \"\"\" (?:\\.|[^\\])*? (?:\"\"\"\"{0,2}|\Z)
              | ''' .*? (?:''''{0,2}|\Z)
              | " (?:[^"\\\n]|\\.)*+ "?
              | ' [^'\n]*+ '? )
  | (?P<comment> \#[^\n]*+ )
  | (?P<end> \n )
  | (?P<blank> [ \t\r]++ )
  | (?P<word> [^\s\[\]{}=,."'\#]++ )
  | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TomlFile:
    """The tables of a TOML file and the lines of its keys."""

    name: str
    tables: dict[str, object]
    lines: dict[KeyPath, int]

    def refusal(self, path: KeyPath, problem: object) -> ValueError:
        """The error that a sentence explains, at the line of `path` or of the nearest around it."""
        known = (path[:length] for length in range(len(path), 0, -1))
        line = next((self.lines[prefix] for prefix in known if prefix in self.lines), 1)
        return ValueError(f"{self.name} line {line}: {problem}")


def read_toml(path: Path) -> TomlFile:
    """The file, read in bounded time and memory; a sentence says why it is none."""
    name, text = path.name, _text(path)
    if overlong := overlong_key_line(text):
        raise refusal("toml-key", name=name, line=overlong, most=MOST_KEY_PARTS)
    try:
        return TomlFile(name=name, tables=tomllib.loads(text), lines=lines_of_keys(text))
    except tomllib.TOMLDecodeError as problem:
        raise ValueError(f"{name} is not TOML: {problem}; correct that place") from problem
    except RecursionError as problem:
        raise refusal("toml-nested", name=name) from problem
    except ValueError as problem:  # Python refuses to read numbers of thousands of digits
        raise refusal("toml-number", name=name) from problem


def _text(path: Path) -> str:
    try:
        content = read_bounded(path, LARGEST_SWEEP_FILE, "; write grids in place of cells")
        return content.decode().replace("\r\n", "\n")  # as tomllib does it
    except UnicodeDecodeError as problem:
        line, byte = problem.object[: problem.start].count(b"\n") + 1, problem.object[problem.start]
        what = f"line {line} is not UTF-8 (byte 0x{byte:02x}); write it as text"
        raise ValueError(f"{path.name} is no sweep file: {what}") from problem
    except ValueError as problem:
        raise ValueError(f"{path.name} is no sweep file: {problem}") from problem


def whole(key: str, value: object) -> int:
    """A whole number: written as one, or as the command line takes it ("2M")."""
    number = value
    try:
        if isinstance(value, str) and len(value) <= LONGEST_WORD:
            number = parse_size(value)
    except ValueError as problem:
        raise ValueError(f"{key}={problem}") from problem
    if isinstance(value, float) and value.is_integer():
        number = int(value)  # 2e6
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidValue(key, value, "is not a whole number", 'write one, such as 12 or "2M"')
    check_at_least(-MOST, **{key: number})
    return number


def real(key: str, value: object) -> float:
    """A finite number; 0 and 0.0 are the same run, so that it is always a float."""
    way_out = "write one, such as 0.001"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue(key, value, "is not a number", way_out)
    if not abs(value) <= MOST:  # NaN is in no range
        raise InvalidValue(key, value, "is not a number up to 10^12", way_out)
    return float(value)


def word(key: str, value: object) -> str:
    """A short text."""
    if not isinstance(value, str) or not value.isprintable() or not value.strip():
        way_out = 'write one in quotes, such as "softmax"'
        raise InvalidValue(key, value, "is not a word", way_out)
    if len(value) > LONGEST_WORD:
        raise InvalidValue(key, value, f"is over {LONGEST_WORD} characters", "write a short word")
    return value


def overlong_key_line(text: str) -> int:
    """The line of the first key of over `MOST_KEY_PARTS` parts; 0 if there is none."""
    dots = 0
    for token in _tokens(text):
        if token.text == ".":
            dots += 1
        elif token.kind not in ("word", "string", "blank"):
            dots = 0
        if dots >= MOST_KEY_PARTS:
            return token.line
    return 0


def lines_of_keys(text: str) -> dict[KeyPath, int]:
    """The line of each table, key and list item, as far as a key stands outside inline tables."""
    lines: dict[KeyPath, int] = {}
    counts: Counter[KeyPath] = Counter()  # of [[tables]]
    table: KeyPath = ()  # that keys now belong to
    for statement in _statements(text):
        words = [token.text for token in statement]
        path = table
        if words[0] == "[":  # a header; the last of its names is the next one of [[these]], say
            table = ()
            names = _parts([word for word in words if word not in _OPENING])
            for at, name in enumerate(names, start=1):
                path = (*table, name)
                counts[path] += words[:2] == ["[", "["] and at == len(names)
                table = (*path, counts[path] - 1) if counts[path] else path
            lines.setdefault(path, statement[0].line)
            lines.setdefault(table, statement[0].line)
            continue
        equals = words.index("=") if "=" in words else 0
        for name in _parts(words[:equals]):
            path = (*path, name)
            lines.setdefault(path, statement[0].line)
        for number, line in enumerate(_item_lines(statement[equals + 1 :])):
            lines.setdefault((*path, number), line)
    return lines


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        yield _Token(str(match.lastgroup), match[0], line)
        line += match[0].count("\n")


def _statements(text: str) -> Iterator[list[_Token]]:
    """Headers, and keys with their values; comments are left out."""
    statement: list[_Token] = []
    depth = 0
    for token in _tokens(text + "\n"):
        depth += _OPENING.get(token.text, 0)
        if token.kind not in ("blank", "comment", "end"):
            statement.append(token)
        elif statement and token.kind == "end" and depth <= 0:
            yield statement
            statement, depth = [], 0


def _parts(words: list[str]) -> tuple[str, ...]:
    """The names of a dotted key, read by tomllib itself, so that quotes and escapes are right."""
    if len(words) >= 2 * MOST_KEY_PARTS:  # with the dots between them
        return ()
    try:
        table: object = tomllib.loads("".join(words) + " = 0")
    except ValueError:  # not TOML; whoever parses the text says so
        return ()
    names: list[str] = []
    while isinstance(table, dict):
        ((name, table),) = table.items()
        names.append(name)
    return tuple(names)


def _item_lines(value: list[_Token]) -> Iterator[int]:
    """The line on which each item of a list starts; nothing for a value that is no list."""
    if not value or value[0].text != "[":
        return
    depth = 0
    for before, token in itertools.pairwise(value):
        depth += _OPENING.get(before.text, 0)
        if depth == 1 and before.text in ("[", ",") and token.text not in ("]", ","):
            yield token.line
