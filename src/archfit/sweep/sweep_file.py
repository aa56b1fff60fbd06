"""A sweep that somebody wrote down: a TOML file of grids and lists of runs.

    name = "depth-on-my-data"        # the file's name without ending if left out
    question = "Does depth pay?"     # may be left out
    seeds = 3                        # 0, 1 and 2; or a list; 1 if left out

    [base]                           # what all cells share
    heads = 2

    [[grid]]                         # every combination; a plain value is a list of one
    depth = [3, 6, 12]
    width = [128, 192]

    [[grid]]
    match = "block_params"           # finds the width for each depth and number of heads
    block_params = [1_000_000, "2M"]
    depth = [3, 6, 12]

    [[list]]                         # item by item; a plain value is shared by all
    depth = [6, 12]
    width = [200, 144]

Keys are the options of `archfit train` with `_` for `-`, and mean the same where they are left
out; but where neither a learning rate nor a rule is given, rates are `auto`, since a sweep compares
networks. A grid or list overrides the base. `data` names data sets by their labels; without it a
cell is trained on every one. A cell that is asked for twice is trained once.
"""

import difflib
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_args, get_type_hints

from archfit.spec import RunSpec
from archfit.spec.errors import InvalidValue, brief, check_at_least, refusal
from archfit.spec.run_options import NAMES_OF_FIELD, RunOptions
from archfit.sweep.sweep import Corpus, Sweep, at_size, block_size, used_corpora
from archfit.sweep.toml_file import LONGEST_WORD, KeyPath, TomlFile, read_toml, real, whole, word

Value: TypeAlias = str | int | float
Reader: TypeAlias = Callable[[str, object], Value]

MOST_CELLS = 10_000
MOST_MISS = 0.05  # share by which a matched size may miss the one asked for
BLOCK_PARAMS, DATA, MATCH = "block_params", "data", "match"
TOP_KEYS = ("name", "question", "seeds", "base", "grid", "list")


def read_sweep_file(path: Path, corpora: Sequence[Corpus], precision: str) -> Sweep:
    """The sweep of the file on these data sets; `precision` is that of runs that name none.

    The file may be anybody's: it is read in bounded time and memory, or refused.
    """
    file = read_toml(path)
    _check_keys(file, (), file.tables, TOP_KEYS)
    seeds = _seeds(file)
    tables = _tables(file, {"precision": precision, **_base(file)})
    _check_number_of_cells(file, tables, corpora, seeds)
    runs = (_specs(table, row, corpora, seeds) for table in tables for row in table.rows())
    specs = tuple(dict.fromkeys(itertools.chain.from_iterable(runs)))
    name, question = _text(file, "name", path.stem), _text(file, "question", "")
    data = used_corpora(corpora, specs)
    return Sweep(name=name, scale="own", question=question, data=data, specs=specs)


def _check_keys(
    file: TomlFile, path: KeyPath, content: Mapping[str, object], known: Collection[str]
) -> None:
    """Refuse a key that this place does not have, and say its home or the nearest key."""
    here = f"[{path[0]}]" if path == ("base",) else f"a [[{path[0]}]]" if path else "a sweep file"
    for key in (key for key in content if key not in known):
        nearest = difflib.get_close_matches(key[:LONGEST_WORD], sorted(known), n=1)
        if key in READERS:
            way_out = " but of a run; put it into [base], [[grid]] or [[list]]"
        elif key in (MATCH, BLOCK_PARAMS):
            way_out = "; put it into a [[grid]] or [[list]] that matches sizes"
        elif key in TOP_KEYS:
            way_out = "; put it before the first table"
        elif nearest:
            way_out = f"; the nearest is {nearest[0]}"
        else:
            way_out = f"; use one of {', '.join(sorted(known))}"
        raise file.refusal((*path, key), f"{brief(key)} is no key of {here}{way_out}")


def _value(file: TomlFile, path: KeyPath, value: object) -> Value:
    """The value at a key, or of an item in the list there, checked for its type."""
    key = next(part for part in reversed(path) if isinstance(part, str))
    try:
        return VALUE_READERS[key](key, value)
    except ValueError as problem:
        raise file.refusal(path, problem) from problem


def _values(file: TomlFile, path: KeyPath, value: object) -> tuple[Value, ...]:
    """Those of a list at a key, or the one that stands there."""
    if not isinstance(value, list):
        return (_value(file, path, value),)
    return tuple(_value(file, (*path, at), item) for at, item in enumerate(value))


def _seed(key: str, value: object) -> int:
    """A whole number from 0 on."""
    seed = whole(key, value)
    check_at_least(0, **{key: seed})
    return seed


def _words_or(number: str, *words: str, reader: Reader = whole) -> Reader:
    """What reads these words as they are, anything else as the number that is named."""

    def read(key: str, value: object) -> Value:
        if value in words:
            return str(value)
        try:
            return reader(key, value)
        except ValueError as problem:
            way_out = f"use {', '.join(words)}, or {number}"
            raise InvalidValue(key, value, "is unknown", way_out) from problem

    return read


def _flag(key: str, value: object) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise InvalidValue(key, value, "is neither true nor false", "write one of them")
    return value


def _reader_of(hint: Any) -> Reader:
    """What reads a value of this type, or of the first plain one of several."""
    kinds: dict[type, Reader] = {int: whole, float: real, str: word, bool: _flag}
    return next(kinds[kind] for kind in get_args(hint) or (hint,) if kind in kinds)


READERS: dict[str, Reader] = {  # for each key of a run, by the type that `RunOptions` gives it
    **{name: _reader_of(hint) for name, hint in get_type_hints(RunOptions).items()},
    "head": _words_or("an inner size", "full", "tied"),
    "feed_forward": _words_or("a number of units", "attention"),
    "learning_rate": _words_or("a rate", "auto", reader=real),
    DATA: word,
}
ROW_READERS = READERS | {BLOCK_PARAMS: whole, MATCH: word}
VALUE_READERS = ROW_READERS | {"seeds": _seed}


def _seeds(file: TomlFile) -> Sequence[int]:
    """A number of seeds counts from 0; a list names them."""
    given = file.tables.get("seeds", 1)
    items = [int(item) for item in _values(file, ("seeds",), given)]
    seeds = list(dict.fromkeys(items)) if isinstance(given, list) else range(items[0])
    if not seeds:
        raise file.refusal(("seeds",), f"seeds={brief(given)} gives no runs; use 1 or more")
    return seeds


def _text(file: TomlFile, key: str, default: str) -> str:
    value = file.tables.get(key, default)
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if key not in file.tables or (text and text.isprintable()):
        return text
    problem = InvalidValue(key, value, "is no text", 'write some, such as "depth"')
    raise file.refusal((key,), problem)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Table:
    """A [[grid]] or [[list]]: where it stands, what it says, and all values by key."""

    file: TomlFile
    path: KeyPath
    content: dict[str, object]
    values: dict[str, tuple[Value, ...]]  # with those of [base]

    @property
    def number_of_rows(self) -> int:
        """How many rows there are, without making them."""
        lengths = [len(values) for values in self.values.values()]
        return math.prod(lengths) if self.path[0] == "grid" else max(lengths)

    def rows(self) -> Iterator[dict[str, Value]]:
        """The values of each row, in the order of the file; the lists of a grid are multiplied."""
        if self.path[0] == "grid":
            rows: Iterator[tuple[Value, ...]] = itertools.product(*self.values.values())
        else:  # a plain value is shared by all rows
            shared = zip(*map(itertools.cycle, self.values.values()), strict=False)
            rows = itertools.islice(shared, self.number_of_rows)
        return (dict(zip(self.values, row, strict=True)) for row in rows)


def _base(file: TomlFile) -> dict[str, Value]:
    """What [base] says."""
    content = file.tables.get("base", {})
    if not isinstance(content, dict):
        raise file.refusal(("base",), f"base is {brief(content)}, not a table; write [base]")
    _check_keys(file, ("base",), content, READERS)
    if lists := [key for key, value in content.items() if isinstance(value, list)]:
        problem = f"{lists[0]} is a list, and all cells share [base]; move it to a [[grid]]"
        raise file.refusal(("base", lists[0]), problem)
    return {key: _value(file, ("base", key), value) for key, value in content.items()}


def _tables(file: TomlFile, base: dict[str, Value]) -> list[_Table]:
    """All grids, then all lists, each in the order of the file."""
    tables = []
    for kind in ("grid", "list"):
        contents = file.tables.get(kind, [])
        if not isinstance(contents, list) or not all(isinstance(table, dict) for table in contents):
            found = "one table" if isinstance(contents, dict) else brief(contents)
            problem = f"{kind} is {found}; write [[{kind}]], as often as you like"
            raise file.refusal((kind,), problem)
        tables += [_table(file, (kind, at), table, base) for at, table in enumerate(contents)]
    return tables


def _table(
    file: TomlFile, path: KeyPath, content: dict[str, object], base: dict[str, Value]
) -> _Table:
    if not content:
        empty = f"this [[{path[0]}]] is empty; give it a key such as depth = [3, 6]"
        raise file.refusal(path, empty)
    _check_keys(file, path, content, ROW_READERS)
    own = {key: _values(file, (*path, key), value) for key, value in content.items()}
    for key in (key for key, values in own.items() if not values):
        raise file.refusal((*path, key), f"{key} is an empty list; give at least one value")
    shared = {key: (value,) for key, value in base.items() if key not in own}
    table = _Table(file=file, path=path, content=content, values=own | shared)
    _check_match(table)
    _check_lengths(table)
    return table


def _check_match(table: _Table) -> None:
    """Refuse a table that says only half of what to match, or says the width as well."""
    given = table.content
    if MATCH not in given and BLOCK_PARAMS not in given:
        return
    key, problem = MATCH if MATCH in given else BLOCK_PARAMS, ""
    if given.get(MATCH) != BLOCK_PARAMS:
        found = f"{MATCH}={brief(given[MATCH])}" if isinstance(given.get(MATCH), str) else "this"
        problem = f'{found} says no size to match; write match = "block_params", one for all rows'
    elif BLOCK_PARAMS not in given:
        problem = "match without a size; add one, such as block_params = 1_000_000"
    elif "width" in given:
        key, problem = "width", "width cannot be given where match finds it; leave one out"
    if problem:
        raise table.file.refusal((*table.path, key), problem)


def _check_lengths(table: _Table) -> None:
    """Refuse a [[list]] whose lists are not equally long."""
    lists = {key: len(value) for key, value in table.content.items() if isinstance(value, list)}
    first = next(iter(lists), "")
    for key, found in lists.items():
        if table.path[0] == "list" and found != lists[first]:
            about = {"key": key, "found": found, "first": first, "length": lists[first]}
            raise table.file.refusal((*table.path, key), refusal("own-lengths", **about))


def _check_number_of_cells(
    file: TomlFile, tables: Sequence[_Table], corpora: Sequence[Corpus], seeds: Sequence[int]
) -> None:
    """Refuse too many cells before any is made."""
    if not tables:
        raise ValueError(f"{file.name} has no cells; add a [[grid]] or a [[list]]")
    if not corpora:
        raise ValueError(f"{file.name} has no data to train on; give at least one data set")
    cells = 0
    for table in tables:
        of_row = len(seeds) * (1 if DATA in table.values else len(corpora))
        cells += table.number_of_rows * of_row
        if cells > MOST_CELLS:
            problem = refusal("own-cells", cells=f"{cells:,}", most=f"{MOST_CELLS:,}")
            raise file.refusal(table.path, problem)


def _specs(
    table: _Table, row: dict[str, Value], corpora: Sequence[Corpus], seeds: Sequence[int]
) -> Iterator[RunSpec]:
    """The runs of a row: on each data set with each seed."""
    chosen = [corpus for corpus in corpora if row.get(DATA, corpus.label) == corpus.label]
    try:
        if not chosen:
            way_out = f"use one of {', '.join(corpus.label for corpus in corpora)}"
            raise InvalidValue(DATA, row[DATA], "is none of the data sets", way_out)
        options = _options(row)
        for corpus, seed in itertools.product(chosen, seeds):
            yield options.spec(vocab=corpus.vocab, data_hash=corpus.hash, seed=seed)
    except InvalidValue as problem:
        raise _refused(table, row, problem) from problem


def _refused(table: _Table, row: dict[str, Value], problem: InvalidValue) -> ValueError:
    """The refusal in the file's words, at the line of the first key it names."""
    named = (key for field in problem.fields for key in NAMES_OF_FIELD.get(field, (field,)))
    keys = [key for key in named if key in row]
    if keys and problem.field in NAMES_OF_FIELD:  # three are called `inner`: the value tells which
        keys = [key for key in keys if row[key] == problem.value] or keys
        problem = problem.named({problem.field: keys[0]})
    places: list[KeyPath] = [(*table.path, key) for key in keys if key in table.content]
    places += [("base", key) for key in keys]
    return table.file.refusal([*places, table.path][0], problem)


def _options(row: dict[str, Value]) -> RunOptions:
    """The run that a row asks for, its width found if it is to match a size."""
    values: dict[str, Any] = {k: row[k] for k in row if k not in (DATA, MATCH, BLOCK_PARAMS)}
    if "learning_rate_rule" not in values and values.get("attention", "softmax") == "softmax":
        values.setdefault("learning_rate", "auto")
    options = RunOptions(**values)
    if MATCH not in row:
        return options
    block_params = int(row[BLOCK_PARAMS])
    check_at_least(1, block_params=block_params)
    options = at_size(options, block_params, block_size)
    found = block_size(options)
    miss = found / block_params - 1
    if abs(miss) > MOST_MISS:
        sizes = {"depth": options.depth, "heads": options.heads, "width": options.width}
        missed = f"{abs(miss):.1%} {'more' if miss > 0 else 'fewer'}"
        about = {"weights": f"{found:,}", "missed": missed, "found": found}
        raise refusal("own-size", block_params, **sizes, **about)
    return options
