"""`archfit data prepare` and `archfit data inspect`: token shards and what they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archfit.cli.options import AsJson, chosen, size, word
from archfit.cli.output import bar, print_json, show
from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import DEFAULT_MAX_BYTES, SAMPLE, DataSettings, guess_kind
from archfit.spec.data_kinds import DATA_KINDS

app = typer.Typer(
    help="Turn text, sequences, images or series into token shards with honest statistics.",
    no_args_is_help=True,
)

SOURCE = typer.Argument(
    help="File, folder, 'pattern', hf:NAME[:CONFIG][:SPLIT], or the sample archfit ships with."
)
VOCAB = size("Tokens, separator included (text: BPE; 257 is plain bytes).", "V")
SEPARATOR = word("Line between documents ('' is a blank one); tokens: the id ending one.")
UNUSUAL = word("fasta: letters beyond ACGT or amino acids: keep, map or refuse.")


@app.command()
def prepare(
    invocation: typer.Context,
    out: Annotated[Path, word("Folder to make.")],
    source: Annotated[str, SOURCE] = SAMPLE,
    kind: Annotated[str, word(f"{', '.join(DATA_KINDS)}; guessed if left out.")] = "",
    vocab: Annotated[int | None, VOCAB] = None,
    heldout: Annotated[str, word("Held-out source; else 5 % by content.")] = "",
    tokenizer: Annotated[Path | None, word("text: reuse this Hugging Face tokenizer.json.")] = None,
    field: Annotated[str, word("text: key of .jsonl or .parquet; images: array of an .npz.")] = "",
    heldout_field: Annotated[str, word("The same in the held-out source.")] = "",
    separator: Annotated[str | None, SEPARATOR] = None,
    errors: Annotated[str, word("Invalid UTF-8: strict or replace.")] = "strict",
    kmer: Annotated[int, word("fasta: letters in a token.")] = 1,
    unusual: Annotated[str, UNUSUAL] = "keep",
    levels: Annotated[int | None, word("images: grey levels, a power of two.")] = None,
    clusters: Annotated[int | None, word("images: colours in the palette.")] = None,
    bins: Annotated[int | None, word("series: values to round to.")] = None,
    binning: Annotated[str, word("series: uniform or quantile.")] = "uniform",
    columns: Annotated[str, word("series: columns by name or number, a,b,3.")] = "",
    dtype: Annotated[str, word("tokens: type of a .bin, uint16 or uint32.")] = "uint16",
    max_bytes: Annotated[int, size("Refuse input that unpacks to more.")] = DEFAULT_MAX_BYTES,
    overwrite: Annotated[bool, word("Replace the data set in --out.")] = False,
    as_json: AsJson = False,
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
def inspect(
    folder: Annotated[Path, typer.Argument(help="A folder made by prepare.")],
    verify: Annotated[bool, word("Read all files and compare their hashes.")] = False,
    as_json: AsJson = False,
) -> None:
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
