"""The tables of a sweep file: what all cells share, grids and lists, each value checked."""

import itertools
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from archfit.sweep.own_file import SweepFile, shown
from archfit.sweep.own_keys import (
    BLOCK_PARAMS,
    DATA,
    MATCH,
    READERS,
    ROW_READERS,
    Value,
    read_value,
    unknown_key,
)
from archfit.sweep.toml_lines import KeyPath


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A [[grid]] or [[list]]: where it stands, and its values by key."""

    path: KeyPath
    base: dict[str, Value]
    plain: dict[str, Value]
    lists: dict[str, tuple[Value, ...]]

    @property
    def is_grid(self) -> bool:
        """Whether its lists are multiplied; otherwise they go together."""
        return self.path[0] == "grid"

    @property
    def names_data(self) -> bool:
        """Whether each row says which data set it is trained on."""
        return any(DATA in values for values in (self.base, self.plain, self.lists))

    @property
    def number_of_rows(self) -> int:
        """How many rows there are, without making them."""
        lengths = [len(values) for values in self.lists.values()]
        return math.prod(lengths) if self.is_grid else max(lengths, default=1)

    def rows(self) -> Iterator[dict[str, Value]]:
        """The values of each row, in the order in which the file has them."""
        if not self.lists:
            yield self.base | self.plain
            return
        join = itertools.product if self.is_grid else zip
        for values in join(*self.lists.values()):
            yield self.base | self.plain | dict(zip(self.lists, values, strict=True))


def shared_values(file: SweepFile, precision: str) -> dict[str, Value]:
    """What [base] says, and the precision if it names none."""
    content = file.tables.get("base", {})
    if not isinstance(content, dict):
        raise file.refusal(("base",), f"base is {_kind(content)}, not a table; write [base]")
    check_keys(file, ("base",), content, READERS)
    for key, value in content.items():
        if isinstance(value, list):
            raise file.refusal(
                ("base", key), f"{key} is a list, and all cells share [base]; move it to a [[grid]]"
            )
    values = {key: _value(file, ("base", key), key, one) for key, one in content.items()}
    return {"precision": precision} | values


def read_tables(file: SweepFile, base: dict[str, Value]) -> list[Table]:
    """All grids, then all lists, each in the order of the file."""
    return [
        _table(file, (kind, number), content, base)
        for kind in ("grid", "list")
        for number, content in enumerate(_contents(file, kind))
    ]


def _contents(file: SweepFile, kind: str) -> list[dict[str, object]]:
    content = file.tables.get(kind, [])
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        what = "one table" if isinstance(content, dict) else _kind(content)
        raise file.refusal((kind,), f"{kind} is {what}; write [[{kind}]], as often as you like")
    return content


def _table(
    file: SweepFile, path: KeyPath, content: dict[str, object], base: dict[str, Value]
) -> Table:
    kind = path[0]
    if not content:
        raise file.refusal(path, f"this [[{kind}]] is empty; give it a key such as depth = [3, 6]")
    check_keys(file, path, content, ROW_READERS)
    plain: dict[str, Value] = {}
    lists: dict[str, tuple[Value, ...]] = {}
    for key, value in content.items():
        if not isinstance(value, list):
            plain[key] = _value(file, (*path, key), key, value)
            continue
        if not value:
            raise file.refusal((*path, key), f"{key} is an empty list; give at least one value")
        lists[key] = tuple(
            _value(file, (*path, key, number), key, one) for number, one in enumerate(value)
        )
    table = Table(path=path, base=base, plain=plain, lists=lists)
    _check_match(file, table)
    _check_lengths(file, table)
    return table


def check_keys(
    file: SweepFile, path: KeyPath, content: dict[str, object], known: Collection[str]
) -> None:
    """Refuse a key that this place does not have."""
    where = f"[{path[0]}]" if path == ("base",) else f"a [[{path[0]}]]" if path else "a sweep file"
    for key in content:
        if key not in known:
            raise file.refusal((*path, key), unknown_key(key, known, where))


def _value(file: SweepFile, path: KeyPath, key: str, value: object) -> Value:
    try:
        return read_value(key, value)
    except ValueError as problem:
        raise file.refusal(path, str(problem)) from problem


def _check_match(file: SweepFile, table: Table) -> None:
    """Refuse a table that says only half of what to match, or says the width as well."""
    given = {**table.plain, **table.lists}
    if MATCH not in given and BLOCK_PARAMS not in given:
        return
    if given.get(MATCH) != BLOCK_PARAMS:
        found = f"{MATCH}={shown(table.plain[MATCH])}" if MATCH in table.plain else "this"
        raise file.refusal(
            (*table.path, MATCH if MATCH in given else BLOCK_PARAMS),
            f'{found} says no size to match; write match = "block_params", one for all rows',
        )
    if BLOCK_PARAMS not in given:
        raise file.refusal(
            (*table.path, MATCH), "match without a size; add one, such as block_params = 1_000_000"
        )
    if "width" in given:
        raise file.refusal(
            (*table.path, "width"), "width cannot be given where match finds it; leave one out"
        )


def _check_lengths(file: SweepFile, table: Table) -> None:
    lengths = {key: len(values) for key, values in table.lists.items()}
    if table.is_grid or len(set(lengths.values())) <= 1:
        return
    (first, expected), *others = lengths.items()
    key, found = next(other for other in others if other[1] != expected)
    raise file.refusal(
        (*table.path, key),
        f"{key} has {found} values and {first} {expected}, but the lists of a [[list]] go together "
        "item by item; make them equally long, or use a [[grid]]",
    )


def _kind(value: object) -> str:
    return shown(value) if isinstance(value, list | dict) else f"the value {shown(value)}"
