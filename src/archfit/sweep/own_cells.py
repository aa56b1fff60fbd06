"""The cells of a sweep file: its rows as runs, on each data set and with each seed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from archfit.spec import RunSpec
from archfit.spec.asked import AskedRun
from archfit.sweep.matching import width_beside, width_for
from archfit.sweep.own_file import SweepFile, shown
from archfit.sweep.own_keys import BLOCK_PARAMS, DATA, MATCH, Value
from archfit.sweep.own_tables import Table
from archfit.sweep.sweep import Corpus

MOST_MISS = 0.05  # share by which a matched size may miss the one asked for
# Names in refusals of a spec that are not those of the file.
_ASKED_AS = {
    "inner": ("embedding_inner", "position_inner", "head"),
    "size": ("patch",),
    "encoding": ("patch_encoding",),
    "batch_sequences": ("batch",),
    "warmup_steps": ("warmup",),
    "peak_learning_rate": ("learning_rate",),
    "evaluation_steps": ("evaluate_every",),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cells:
    """Turns rows into runs."""

    file: SweepFile
    corpora: tuple[Corpus, ...]
    seeds: Sequence[int]

    def specs(self, table: Table) -> Iterator[RunSpec]:
        """The runs of a table: each row on each data set with each seed."""
        for row in table.rows():
            for corpus in self._corpora(table, row):
                try:
                    asked = _asked(row, corpus.vocab)
                    yield from (
                        asked.spec(vocab=corpus.vocab, data_hash=corpus.data_hash, seed=seed)
                        for seed in self.seeds
                    )
                except ValueError as problem:
                    raise self._refused(table, row, str(problem)) from problem

    def _corpora(self, table: Table, row: dict[str, Value]) -> Sequence[Corpus]:
        if DATA not in row:
            return self.corpora
        found = [corpus for corpus in self.corpora if corpus.label == row[DATA]]
        if not found:
            labels = ", ".join(corpus.label for corpus in self.corpora)
            raise self._refused(
                table, row, f"data={shown(row[DATA])} is none of the data sets; use one of {labels}"
            )
        return found

    def _refused(self, table: Table, row: dict[str, Value], text: str) -> ValueError:
        """The refusal, in the file's words, at the line of the first key it names."""
        names = re.findall(r"\b([a-z_0-9]+)=", text)
        keys = [key for name in names for key in _ASKED_AS.get(name, (name,)) if key in row]
        if names and names[0] in _ASKED_AS and keys:
            value = text.split("=", 1)[1]
            keys = [key for key in keys if value.startswith(f"{row[key]} ")] or keys
            text = f"{keys[0]}={value}"
        for key in keys:
            if key in table.plain or key in table.lists:
                return self.file.refusal((*table.path, key), text)
        return self.file.refusal(("base", keys[0]) if keys else table.path, text)


def _asked(row: dict[str, Value], vocab: int) -> AskedRun:
    """The run that a row asks for, its width found if it is to match a size."""
    values: dict[str, Any] = {
        key: row[key] for key in row if key not in (DATA, MATCH, BLOCK_PARAMS)
    }
    if MATCH not in row:
        return AskedRun(**values)
    return _matched(AskedRun(**values), int(row[BLOCK_PARAMS]), vocab)


def _matched(asked: AskedRun, block_params: int, vocab: int) -> AskedRun:
    """The run at the width whose blocks come nearest to `block_params` weights."""
    if block_params < 1:
        raise ValueError(f"block_params={block_params} is below 1; use 1 or more")
    shape = replace(asked, width=max(1, asked.heads)).architecture(vocab)
    depth, heads, multiple = shape.depth, shape.heads, shape.feed_forward_multiple
    width = (
        width_for(block_params, depth=depth, heads=heads, multiple=multiple)
        if asked.head_dim is None
        else width_beside(
            block_params, depth=depth, heads=heads, head_dim=asked.head_dim, multiple=multiple
        )
    )
    found = replace(asked, width=width)
    size = found.architecture(vocab).block_params
    miss = size / block_params - 1
    if abs(miss) > MOST_MISS:
        raise ValueError(
            f"block_params={block_params} cannot be met at depth={depth} with heads={heads}: the "
            f"nearest width, {width}, has {size:,} block weights, {abs(miss):.1%} "
            f"{'more' if miss > 0 else 'fewer'} where 5% are allowed; use block_params = {size}, "
            "another depth or other heads"
        )
    return found
