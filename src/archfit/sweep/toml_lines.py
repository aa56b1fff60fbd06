"""On which line each key of a TOML text stands, which tomllib does not say.

The text is cut into tokens once, so strings and comments that look like keys are passed over and
the time grows with its length only, whether it is TOML or not.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

KeyPath: TypeAlias = tuple[
    str | int, ...
]  # as in ("grid", 0, "depth"); numbers count tables, items

MOST_KEY_PARTS = 16  # tomllib's time grows with their square; no sweep has more than two
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


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


def lines_of_keys(text: str) -> dict[KeyPath, int]:
    """The line of each table, key and list item, as far as a key stands outside inline tables."""
    places = _Places()
    for statement in _statements(text):
        places.add(statement)
    return places.lines


def line_of(lines: dict[KeyPath, int], path: KeyPath) -> int:
    """The line of `path`, or of the nearest thing around it that has one."""
    known = (path[:length] for length in range(len(path), 0, -1))
    return next((lines[prefix] for prefix in known if prefix in lines), 1)


def overlong_key_line(text: str) -> int:
    """The line of the first key of over `MOST_KEY_PARTS` parts; 0 if there is none."""
    parts, joined = 0, False  # joined: a dot was met, so the next word goes on
    for token in _tokens(text):
        if token.text == "." and token.kind == "mark":
            joined = True
        elif token.kind in ("word", "string"):
            parts, joined = (parts + 1 if joined else 1), False
        elif token.kind != "blank":
            parts, joined = 0, False
        if parts > MOST_KEY_PARTS:
            return token.line
    return 0


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        assert match.lastgroup is not None  # every alternative has a name
        yield _Token(match.lastgroup, match[0], line)
        line += match[0].count("\n")


def _statements(text: str) -> Iterator[list[_Token]]:
    """The tokens of each header and each key with its value; comments are left out."""
    statement: list[_Token] = []
    depth = 0
    for token in _tokens(text):
        depth += _opening(token)
        if token.kind == "end" and depth <= 0:
            if statement:
                yield statement
            statement, depth = [], 0
        elif token.kind not in ("blank", "comment", "end"):
            statement.append(token)
    if statement:
        yield statement


def _opening(token: _Token) -> int:
    """1 for a bracket that opens, -1 for one that closes, 0 for anything else."""
    if token.kind != "mark":
        return 0
    return {"[": 1, "{": 1, "]": -1, "}": -1}.get(token.text, 0)


@dataclass(slots=True)
class _Places:
    """Lines found so far, and the table that keys now belong to."""

    lines: dict[KeyPath, int] = field(default_factory=dict)
    table: KeyPath = ()
    counts: dict[KeyPath, int] = field(default_factory=dict)  # of [[tables]]

    def add(self, statement: list[_Token]) -> None:
        """Note what a header or a key with its value says."""
        first = statement[0]
        if first.text == "[" and first.kind == "mark":
            self._header(statement)
            return
        equals = next((i for i, token in enumerate(statement) if token.text == "="), 0)
        path = self.table + _parts(statement[:equals])
        for length in range(len(self.table) + 1, len(path) + 1):
            self.lines.setdefault(path[:length], first.line)
        for number, line in enumerate(_items(statement[equals + 1 :])):
            self.lines.setdefault((*path, number), line)

    def _header(self, statement: list[_Token]) -> None:
        is_array = statement[1:2] and statement[1].text == "["
        names = _parts([token for token in statement if not _opening(token)])
        path: KeyPath = ()
        for name in names[:-1]:
            path = self._latest((*path, name))
        path = (*path, *names[-1:])
        if is_array:
            self.counts[path] = self.counts.get(path, 0) + 1
        self.table = self._latest(path)
        self.lines.setdefault(path, statement[0].line)
        self.lines.setdefault(self.table, statement[0].line)

    def _latest(self, path: KeyPath) -> KeyPath:
        return (*path, self.counts[path] - 1) if path in self.counts else path


def _parts(tokens: list[_Token]) -> tuple[str, ...]:
    """The names of a dotted key, read by tomllib itself, so that quotes and escapes are right."""
    if len(tokens) >= 2 * MOST_KEY_PARTS:  # with the dots between them
        return ()
    try:
        table: object = tomllib.loads("".join(token.text for token in tokens) + " = 0")
    except ValueError:  # not TOML; whoever parses the text says so
        return ()
    names: list[str] = []
    while isinstance(table, dict):
        ((name, table),) = table.items()
        names.append(name)
    return tuple(names)


def _items(value: list[_Token]) -> Iterator[int]:
    """The line on which each item of a list starts; nothing for a value that is no list."""
    if not value or value[0].text != "[":
        return
    depth, awaited = 0, False
    for token in value:
        is_item = awaited and token.text not in ("]", ",")
        if is_item:
            yield token.line
        opening = _opening(token)
        awaited = depth + max(opening, 0) == 1 and (token.text == "," or depth == 0)
        depth += opening
