"""Small faults that can be planted into source code: one text edit each, found by syntax.

Left alone: docstrings, annotations, decorators, imports, f-strings, asserts, whatever is raised,
and the text of any string.
"""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ORDER = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<")}
EQUALITY = {"==": ("!=",), "!=": ("==",), "is not": ("is",), "not in": ("in",)}
COMPARISONS = ORDER | EQUALITY | {"is": ("is not",), "in": ("not in",)}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*"}
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Add: "+",
    ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "type_params", "pattern"}
SKIPPED_KEYWORDS = {"strict", "help"}
SKIPPED_NODES = (ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Assert)
SKIPPED_TARGETS = {"__slots__", "__all__"}
SKIPPED_CALLS = re.compile(r"(Error|Warning|InvalidValue|warn|log|logger|debug|info|cast|TypeVar)$")
ORDER_IS_NO_MATTER = {"isinstance", "issubclass", "getattr", "hasattr", "setattr", "zip", "print"}

Edit = tuple[str, int, int, str]  # operator, start, end, new text


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One fault: the bytes from `start` to `end` of `file` become `replacement`."""

    room: str
    file: str  # below the package
    function: str  # qualified name; empty at the top of the module
    line: int
    operator: str
    start: int
    end: int
    replacement: str
    original: str  # the lines it touches, stripped
    mutated: str
    ordinal: int  # among equal faults of the function
    probe_line: int | None  # before it, a call can tell that it runs; None: whoever imports it

    @property
    def key(self) -> str:
        """The same as long as the statement is; its file and line may change."""
        parts = (self.room, self.function, self.original, self.mutated, str(self.ordinal))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def planted(self, source: bytes) -> bytes:
        """The file with the fault."""
        return source[: self.start] + self.replacement.encode() + source[self.end :]


def mutants_of(package: Path, room: str) -> list[Mutant]:
    """All that the operators find in a room."""
    found: list[Mutant] = []
    for path in sorted((package / room).rglob("*.py")):
        found += _Finder(path.read_bytes(), room, str(path.relative_to(package))).found()
    return found


def sample(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """`count` of them, at most one a line; other code that comes or goes hardly changes which."""
    ranked = sorted(mutants, key=lambda mutant: _rank(seed, mutant.key))
    chosen: dict[tuple[str, int], Mutant] = {}
    for mutant in ranked:
        if len(chosen) < count and mutant.key not in {other.key for other in chosen.values()}:
            chosen.setdefault((mutant.file, mutant.line), mutant)
    return list(chosen.values())


def _rank(seed: int, key: str) -> str:
    return hashlib.sha256(f"{seed} {key}".encode()).hexdigest()


class _Finder:
    """Walks through one file."""

    def __init__(self, source: bytes, room: str, file: str) -> None:
        self.source, self.room, self.file = source, room, file
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.seen: Counter[tuple[str, str, str]] = Counter()

    def found(self) -> list[Mutant]:
        """All faults, in the order of the text."""
        return list(self._walk(ast.parse(self.source), "", None))

    def _walk(self, node: ast.AST, function: str, probe_line: int | None) -> Iterator[Mutant]:
        if probe_line is not None and isinstance(node, ast.stmt):
            probe_line = self._probe_line(node, probe_line)
        for operator, start, end, replacement in self._edits(node):
            yield self._mutant(operator, (start, end), replacement, function, probe_line)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        for field, child in _children(node):
            runs_later = isinstance(node, ast.FunctionDef) and field == "body"
            line = child.lineno if runs_later and isinstance(child, ast.stmt) else probe_line
            yield from self._walk(child, function, line)

    def _probe_line(self, node: ast.stmt, outer: int) -> int:
        """Of the statement, or of the one around it if nothing can stand before it (`elif`)."""
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(item.lineno for item in decorators)])
        before = self.source[self.starts[first - 1] : self._at(node.lineno, node.col_offset)]
        alone = bool(decorators) or not before.strip()
        return first if alone and not self._text(node).startswith("elif") else outer

    def _mutant(
        self, operator: str, where: tuple[int, int], new: str, function: str, probe_line: int | None
    ) -> Mutant:
        start, end = where
        first = self.source.rfind(b"\n", 0, start) + 1
        last = self.source.find(b"\n", end)
        original = self.source[first:last].decode()
        mutated = self.source[first:start].decode() + new + self.source[end:last].decode()
        texts = (function, original.strip(), mutated.strip())
        self.seen[texts] += 1
        return Mutant(
            room=self.room,
            file=self.file,
            function=function,
            line=self.source.count(b"\n", 0, start) + 1,
            operator=operator,
            start=start,
            end=end,
            replacement=new,
            original=texts[1],
            mutated=texts[2],
            ordinal=self.seen[texts],
            probe_line=probe_line,
        )

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _span(self, node: ast.AST) -> tuple[int, int]:
        place = node
        assert isinstance(place, (ast.expr, ast.stmt))
        assert place.end_lineno is not None
        assert place.end_col_offset is not None
        return (
            self._at(place.lineno, place.col_offset),
            self._at(place.end_lineno, place.end_col_offset),
        )

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _edits(self, node: ast.AST) -> Iterator[Edit]:
        """Every fault that this node itself can have."""
        if isinstance(node, ast.stmt):
            yield from self._stated(node)
        elif isinstance(node, ast.expr):
            yield from self._expressed(node)
        test = getattr(node, "test", None)
        if isinstance(test, ast.Name | ast.Call | ast.Attribute | ast.BoolOp):
            yield ("not", *self._span(test), f"(not ({self._text(test)}))")

    def _expressed(self, node: ast.expr) -> Iterator[Edit]:
        if isinstance(node, ast.Compare):
            yield from self._compared(node)
        elif isinstance(node, ast.BinOp):
            yield from self._calculated(node)
        elif isinstance(node, ast.BoolOp):
            new = "or" if isinstance(node.op, ast.And) else "and"
            yield from self._between(node.values[0], node.values[1], ("and", "or"), new, "and-or")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield ("not", *self._span(node), f"({self._text(node.operand)})")
        elif isinstance(node, ast.Constant):
            yield from self._counted(node)
        elif isinstance(node, ast.Call):
            yield from self._called(node)

    def _between(
        self, left: ast.AST, right: ast.AST, old: tuple[str, ...], new: str, operator: str
    ) -> Iterator[Edit]:
        """Another sign between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        gap = self.source[start:end].decode()
        sign = next((sign for sign in old if sign in gap), None)
        if sign is not None and "#" not in gap:
            yield (operator, start, end, gap.replace(sign, new, 1))

    def _compared(self, node: ast.Compare) -> Iterator[Edit]:
        sign = SYMBOLS[type(node.ops[0])]
        for new in COMPARISONS[sign]:
            yield from self._between(node.left, node.comparators[0], (sign,), new, "comparison")

    def _calculated(self, node: ast.BinOp) -> Iterator[Edit]:
        sign = SYMBOLS.get(type(node.op))
        if sign is not None and not any(map(_is_text, (node.left, node.right))):
            yield from self._between(node.left, node.right, (sign,), ARITHMETIC[sign], "arithmetic")

    def _counted(self, node: ast.Constant) -> Iterator[Edit]:
        start, end = self._span(node)
        if isinstance(node.value, bool):
            yield ("constant", start, end, str(not node.value))
        elif isinstance(node.value, (int, float)):
            old = self._text(node)
            small = isinstance(node.value, int) and abs(node.value) <= 2
            news = [f"({old} + 1)"] if small else [f"(2 * {old})"]
            if isinstance(node.value, int) and not small:
                news += [f"({old} + 1)", f"({old} - 1)"]
            for new in news if node.value else ["1"]:
                yield ("constant", start, end, new)

    def _called(self, node: ast.Call) -> Iterator[Edit]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("min", "max"):
            yield ("min-max", *self._span(node.func), "max" if name == "min" else "min")
        elif name not in ORDER_IS_NO_MATTER and len(node.args) >= 2:
            first, second = node.args[:2]
            texts = self._text(first), self._text(second)
            if texts[0] != texts[1] and not any(
                isinstance(argument, (ast.Starred, ast.Constant, ast.GeneratorExp))
                for argument in (first, second)
            ):
                start, end = self._span(first)[0], self._span(second)[1]
                gap = self.source[self._span(first)[1] : self._span(second)[0]].decode()
                yield ("arguments", start, end, f"{texts[1]}{gap}{texts[0]}")

    def _stated(self, node: ast.stmt) -> Iterator[Edit]:
        start, end = self._span(node)
        if isinstance(node, ast.Return):
            if node.value is not None and not _is_none(node.value):
                yield ("return", start, end, "return None")
        elif isinstance(node, ast.Break | ast.Continue):
            yield ("loop", start, end, "continue" if isinstance(node, ast.Break) else "break")
        elif isinstance(node, ast.AugAssign | ast.Raise | ast.Delete) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            yield ("removed", start, end, "pass")


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Parts that may have faults, with the name of their field."""
    for field, value in ast.iter_fields(node):
        if field not in SKIPPED_FIELDS and not isinstance(node, ast.Raise):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_left_alone(child):
                    yield field, child


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, SKIPPED_NODES):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in SKIPPED_KEYWORDS
    if isinstance(node, ast.Assign):
        return any(isinstance(at, ast.Name) and at.id in SKIPPED_TARGETS for at in node.targets)
    if isinstance(node, ast.If):
        return ast.unparse(node.test).startswith(("TYPE_CHECKING", "__name__"))
    if isinstance(node, ast.Call):
        return SKIPPED_CALLS.search(ast.unparse(node.func)) is not None
    return isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Literal", "Annotated")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
