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
out. A grid or list overrides the base. `data` names data sets by their labels; without it a cell
is trained on every one. A cell that is asked for twice is trained once.
"""

from collections.abc import Sequence
from pathlib import Path

from archfit.sweep.own_cells import Cells
from archfit.sweep.own_file import SweepFile, read_sweep_file, shown
from archfit.sweep.own_keys import TOP, whole
from archfit.sweep.own_tables import Table, check_keys, read_tables, shared_values
from archfit.sweep.sweep import Corpus, Sweep
from archfit.sweep.toml_lines import KeyPath

MOST_CELLS = 10_000


def own_sweep(path: Path, corpora: Sequence[Corpus], precision: str) -> Sweep:
    """The sweep of the file on these data sets; `precision` is that of runs that name none."""
    file = read_sweep_file(path)
    check_keys(file, (), file.tables, TOP)
    seeds = _seeds(file)
    tables = read_tables(file, shared_values(file, precision))
    _check_number_of_cells(file, tables, corpora, seeds)
    cells = Cells(file=file, corpora=tuple(corpora), seeds=seeds)
    specs = tuple(dict.fromkeys(spec for table in tables for spec in cells.specs(table)))
    used = {spec.data_hash for spec in specs}
    return Sweep(
        name=_text(file, "name", file.stem),
        question=_text(file, "question", ""),
        corpora=tuple(corpus for corpus in corpora if corpus.data_hash in used),
        specs=specs,
    )


def _seeds(file: SweepFile) -> Sequence[int]:
    given = file.tables.get("seeds", 1)
    if isinstance(given, list):
        seeds = [_seed(file, ("seeds", number), one) for number, one in enumerate(given)]
        if not seeds:
            raise file.refusal(("seeds",), "seeds is an empty list; give at least one seed")
        return list(dict.fromkeys(seeds))
    count = _seed(file, ("seeds",), given)
    if not count:
        raise file.refusal(("seeds",), "seeds=0 gives no runs; use 1 or more")
    return range(count)


def _seed(file: SweepFile, path: KeyPath, value: object) -> int:
    try:
        seed = whole(value)
    except ValueError as problem:
        raise file.refusal(path, f"seeds={problem}") from problem
    if seed < 0:
        raise file.refusal(path, f"seeds={seed} is below 0; use 0 or more")
    return seed


def _text(file: SweepFile, key: str, default: str) -> str:
    value = file.tables.get(key, default)
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if key not in file.tables or (text and text.isprintable()):
        return text
    raise file.refusal((key,), f'{key}={shown(value)} is no text; write some, such as "depth"')


def _check_number_of_cells(
    file: SweepFile, tables: list[Table], corpora: Sequence[Corpus], seeds: Sequence[int]
) -> None:
    """Refuse too many cells before any is made."""
    if not tables:
        raise ValueError(f"{file.name} has no cells; add a [[grid]] or a [[list]]")
    if not corpora:
        raise ValueError(f"{file.name} has no data to train on; give at least one data set")
    cells = 0
    for table in tables:
        cells += table.number_of_rows * len(seeds) * (1 if table.names_data else len(corpora))
        if cells > MOST_CELLS:
            raise file.refusal(
                table.path,
                f"up to here the sweep has {cells:,} cells (seeds and data sets counted), more "
                f"than {MOST_CELLS:,}; use shorter lists, fewer seeds or several files",
            )
