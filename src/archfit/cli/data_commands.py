"""`archfit data prepare` and `archfit data inspect`: token shards and what they hold."""

from __future__ import annotations

from pathlib import Path

import typer

from archfit.cli.options import chosen, with_words
from archfit.cli.output import bar, print_json, show
from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import SAMPLE, DataSettings, guess_kind
from archfit.spec.data_kinds import DATA_KINDS

app = typer.Typer(
    help="Turn text, sequences, images or series into token shards with honest statistics.",
    no_args_is_help=True,
)


@app.command()
@with_words("data prepare", fields_of=DataSettings, kinds=DATA_KINDS)
def prepare(
    invocation: typer.Context,
    out: Path,
    source: str = SAMPLE,
    kind: str = "",
    heldout: str = "",
    field: str = "",
    heldout_field: str = "",
    columns: str = "",
    overwrite: bool = False,
    as_json: bool = False,
    **_fields: object,
) -> None:
    """Make a data set: train.bin, heldout.bin (nanoGPT layout), tokenizer.json, data.json."""
    settings = chosen(
        DataSettings,
        invocation,
        kind=kind or guess_kind(source),
        field=field or None,
        heldout_field=heldout_field or None,
        columns=tuple(name.strip() for name in columns.split(",") if name.strip()),
    )
    with bar("reading", of_bytes=True) as report:
        outcome = prepare_data(
            source, out, settings, heldout=heldout or None, overwrite=overwrite, report=report
        )
    if outcome.already_there and not as_json:
        typer.echo(f"{out} was already prepared from this source with these settings.")
    _show(outcome.data, as_json=as_json)


@app.command()
@with_words("data inspect")
def inspect(folder: Path, verify: bool = False, as_json: bool = False) -> None:
    """Show what a prepared data set is and what its tokens say."""
    data = open_prepared(folder)
    if verify:
        data.verify()
    _show(data, as_json=as_json)


def _show(data: PreparedData, *, as_json: bool) -> None:
    from archfit.report.sweep_document import data_document

    if as_json:  # also of a data set whose description is damaged
        return print_json(data.description)
    return show(data_document(data.description, str(data.folder)), as_json=False)
