"""`archfit data prepare` and `archfit data inspect`: token shards and what they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from archfit.cli.options import with_words
from archfit.cli.output import MANNER, bar, print_json, show
from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import SAMPLE, DataSettings, guess_kind
from archfit.spec.data_kinds import DATA_KINDS


@with_words("data prepare", DataSettings, kinds=DATA_KINDS)
def prepare(
    out: Path,
    source: str = SAMPLE,
    kind: str = "",
    heldout: str = "",
    field: str = "",
    heldout_field: str = "",
    columns: str = "",
    overwrite: bool = False,
    **others: Any,
) -> None:
    """Turn files into tokens: train.bin, heldout.bin (nanoGPT layout), tokenizer and data.json."""
    settings = DataSettings(
        **others,
        kind=kind or guess_kind(source),
        field=field or None,
        heldout_field=heldout_field or None,
        columns=tuple(name.strip() for name in columns.split(",") if name.strip()),
    )
    with bar("reading", of_bytes=True) as report:
        outcome = prepare_data(
            source, out, settings, heldout=heldout or None, overwrite=overwrite, report=report
        )
    there = "It was there already, made from this source with these settings."
    _show(outcome.data, *[there] * outcome.already_there)


@with_words("data inspect")
def inspect(folder: Path, verify: bool = False) -> None:
    """Show what a prepared data set holds."""
    data = open_prepared(folder)
    if verify:
        data.verify()
    _show(data, *["All files are as they were written: their hashes agree."] * verify)


def _show(data: PreparedData, *sentences: str) -> None:
    from archfit.report.sweep_document import data_document

    if MANNER.get().as_json:  # also of a data set whose description is damaged
        return print_json(data.description)
    return show(data_document(data.description, str(data.folder), *sentences))
