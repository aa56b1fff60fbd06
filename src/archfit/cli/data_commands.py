"""`archfit data prepare` and `archfit data inspect`: token shards and what they hold."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.cli.options import size_option
from archfit.cli.output import print_json, print_table
from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepare import silent
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import DEFAULT_MAX_BYTES, SAMPLE, DataSettings, guess_kind
from archfit.spec.data_kinds import DATA_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from archfit.data.kinds import Report

app = typer.Typer(
    help="Turn text, sequences, images or series into token shards with honest statistics.",
    no_args_is_help=True,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Source = Annotated[
    str,
    typer.Argument(
        help="File, folder, 'pattern', hf:NAME[:CONFIG][:SPLIT], or the sample archfit ships with."
    ),
]


@app.command()
def prepare(
    out: Annotated[Path, typer.Option(help="Folder to make.")],
    source: Source = SAMPLE,
    kind: Annotated[str, typer.Option(help=f"{', '.join(DATA_KINDS)}; guessed if left out.")] = "",
    vocab: Annotated[
        int | None,
        typer.Option(
            parser=size_option,
            metavar="V",
            help="Tokens, separator included (text: BPE; 257 is plain bytes).",
        ),
    ] = None,
    heldout: Annotated[str, typer.Option(help="Held-out source; else 5 % by content.")] = "",
    tokenizer: Annotated[
        Path | None, typer.Option(help="text: reuse this Hugging Face tokenizer.json.")
    ] = None,
    field: Annotated[
        str, typer.Option(help="text: key of .jsonl or .parquet; images: array of an .npz.")
    ] = "",
    heldout_field: Annotated[str, typer.Option(help="The same in the held-out source.")] = "",
    separator: Annotated[
        str | None,
        typer.Option(help="Line between documents ('' is a blank one); tokens: the id ending one."),
    ] = None,
    errors: Annotated[str, typer.Option(help="Invalid UTF-8: strict or replace.")] = "strict",
    kmer: Annotated[int, typer.Option(help="fasta: letters in a token.")] = 1,
    unusual: Annotated[
        str, typer.Option(help="fasta: letters beyond ACGT or amino acids: keep, map or refuse.")
    ] = "keep",
    levels: Annotated[int | None, typer.Option(help="images: grey levels, a power of two.")] = None,
    clusters: Annotated[int | None, typer.Option(help="images: colours in the palette.")] = None,
    bins: Annotated[int | None, typer.Option(help="series: values to round to.")] = None,
    binning: Annotated[str, typer.Option(help="series: uniform or quantile.")] = "uniform",
    columns: Annotated[str, typer.Option(help="series: columns by name or number, a,b,3.")] = "",
    dtype: Annotated[
        str, typer.Option(help="tokens: type of a .bin, uint16 or uint32.")
    ] = "uint16",
    max_bytes: Annotated[
        int,
        typer.Option(parser=size_option, metavar="N", help="Refuse input that unpacks to more."),
    ] = DEFAULT_MAX_BYTES,
    overwrite: Annotated[bool, typer.Option(help="Replace the data set in --out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a data set: train.bin, heldout.bin (nanoGPT layout), tokenizer.json, data.json."""
    settings = DataSettings(
        kind=kind or guess_kind(source),
        vocab=vocab,
        tokenizer=tokenizer,
        field=field or None,
        heldout_field=heldout_field or None,
        separator=separator,
        errors=errors,
        kmer=kmer,
        unusual=unusual,
        levels=levels,
        clusters=clusters,
        bins=bins,
        binning=binning,
        columns=tuple(name.strip() for name in columns.split(",") if name.strip()),
        dtype=dtype,
        max_bytes=max_bytes,
    )
    with progress() as report:
        outcome = prepare_data(
            source, out, settings, heldout=heldout or None, overwrite=overwrite, report=report
        )
    if outcome.already_there and not as_json:
        typer.echo(f"{out} was already prepared from this source with these settings.")
    _show(outcome.data, as_json=as_json)


@app.command()
def inspect(
    folder: Annotated[Path, typer.Argument(help="A folder made by prepare.")],
    verify: Annotated[bool, typer.Option(help="Read all files and compare their hashes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a prepared data set is and what its tokens say."""
    data = open_prepared(folder)
    if verify:
        data.verify()
    _show(data, as_json=as_json)


def _show(data: PreparedData, *, as_json: bool) -> None:
    if as_json:
        return print_json(data.description)
    try:
        lines = _summary(data.description)
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(
            f"{data.folder / 'data.json'} is damaged ({problem}); prepare it again with --overwrite"
        ) from problem
    print_table(str(data.folder), ("quantity", "value"), lines)
    for warning in _list(data.description["warnings"]):
        typer.echo(f"Note: {warning}")
    return None


def _summary(description: dict[str, object]) -> list[tuple[str, str]]:
    """The lines of the table people read."""
    split, leakage = _dict(description["split"]), _dict(description["leakage"])
    train, heldout = _dict(description["train"]), _dict(description["heldout"])
    return [
        ("kind", f"{description['kind']} as {description['vocabulary']}"),
        ("documents", f"{description['documents']:,}"),
        ("content", f"{description['bytes']:,} bytes"),
        ("tokens", f"{description['tokens']:,} ({description['dtype']})"),
        ("  for training", f"{train['tokens']:,}"),
        ("  held out", f"{heldout['tokens']:,} by {split['rule']}"),
        ("vocabulary", f"{description['vocab']:,}, of which {description['used_vocab']:,} used"),
        ("embedding rank limit", f"{description['embedding_rank_limit']:,}"),
        ("bytes a token", f"{description['bytes_per_token']:.3f}"),
        ("unigram entropy", f"{description['unigram_entropy_bits']:.3f} bits a token"),
        *_rank_lines(_dict(description["cooccurrence"])),
        ("shared 13-grams", _leakage_line(leakage)),
        ("data hash", str(description["data_hash"])),
    ]


def _leakage_line(leakage: dict[str, object]) -> str:
    if leakage["share"] is None:
        return "not measured: the held-out side has no 13 words in a row"
    return f"{leakage['share']:.2%} of {leakage['heldout_ngrams']:,} held-out"


def _rank_lines(ranks: dict[str, object]) -> list[tuple[str, str]]:
    lines = []
    for form in ("plain", "normalised"):
        found = [_dict(one) for one in _list(ranks[form])]
        shown = [
            f"{one['rank']}{'' if one['exact'] else '+'} at {one['energy']:.1%}" for one in found
        ]
        lines.append((f"co-occurrence rank, {form}", ", ".join(shown)))
    return lines


def _dict(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"data.json holds {value!r} where an object belongs; prepare it again")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"data.json holds {value!r} where a list belongs; prepare it again")
    return value


@contextlib.contextmanager
def progress() -> Iterator[Report]:
    """A bar on a terminal, silence elsewhere."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda stage, done, total: bar.update(
            task, description=stage, completed=done, total=total or None
        )
