"""`archfit export`: an architecture, or a trained run, as other tools read it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from archfit.cli.options import (
    DEPTH,
    HEAD_DIM,
    HEADS,
    SHAPE,
    WIDTH,
    AsJson,
    chosen,
    flag,
    size,
    word,
)
from archfit.cli.output import show
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.shards import atomic_folder
from archfit.export import (
    FORMATS,
    Export,
    ExportShape,
    TrainedRun,
    check_weights,
    export_config,
    export_run,
    is_export,
    open_run,
    write_files,
    write_weights,
)
from archfit.journey import tokenizer_of, with_tokenizer_of
from archfit.report.document import Document, Section
from archfit.spec import Factorised, Full, to_json
from archfit.spec.architecture import head_dim_of

GPT2_VOCAB, GPT2_CONTEXT = 50257, 1024
WEIGHTS_FORMAT, WEIGHTS = "hf-gpt2", "model.safetensors"
# What exports write: a folder that holds nothing else may be replaced.
EXPORTED_FILES = {
    "config.json", "model_config.yaml", "base_train.sh", "gpt_config.json", "model.yml",
    "model_args.sh", "tokenizer.json", "tokenizer_config.json", WEIGHTS,
}  # fmt: skip
KV_HEADS = size("Key-value heads; as many as heads if left out.", "H", SHAPE)
HIDDEN = size("Hidden units; 4 width if left out, 8/3 width where they are gated.", "N", SHAPE)
VOCAB = size(f"Tokens; those of --data, or {GPT2_VOCAB}, if left out.", "V", SHAPE)
POSITIONS = size(f"Positions; {GPT2_CONTEXT} if left out.", "N", SHAPE)
RANK = size("Factorise the embedding to this rank; full if left out.", "R", SHAPE)


def export(
    invocation: typer.Context,
    out: Annotated[Path, word("Folder to make.")],
    format_name: Annotated[
        str, typer.Option("--format", metavar="FMT", help=f"{', '.join(FORMATS)}.")
    ] = WEIGHTS_FORMAT,
    depth: Annotated[int | None, DEPTH] = None,
    width: Annotated[int | None, WIDTH] = None,
    heads: Annotated[int | None, HEADS] = None,
    head_dim: Annotated[int | None, HEAD_DIM] = None,
    kv_heads: Annotated[int | None, KV_HEADS] = None,
    feed_forward: Annotated[int | None, HIDDEN] = None,
    vocab: Annotated[int | None, VOCAB] = None,
    context: Annotated[int | None, POSITIONS] = None,
    rank: Annotated[int | None, RANK] = None,
    tied: Annotated[bool, flag("--tied", "Use the embedding as head.", SHAPE)] = False,
    run: Annotated[Path | None, word("Trained run instead of a shape: its weights too.")] = None,
    data: Annotated[
        Path | None, word("Prepared data whose tokenizer goes into the folder.")
    ] = None,
    overwrite: Annotated[bool, word("Replace the export in --out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the files by which another tool builds this network, or loads a trained one."""
    prepared = open_prepared(data) if data is not None else None
    tokenizer = tokenizer_of(prepared) if prepared is not None else None
    separator = None if tokenizer is None else tokenizer.separator
    options = chosen(ShapeOptions, invocation)
    _check_out(out, overwrite=overwrite)
    trained = None
    if run is not None:
        _check_run_options(options, format_name)
        trained = open_run(run)
        _check_data_of(trained, prepared)
        made = export_run(trained, separator=separator)
        check_weights(trained)
        positions = trained.spec.architecture.context
    else:
        shape = options.shape(prepared, separator)
        made, positions = export_config(shape, format_name), shape.context
    if prepared is not None:
        made = with_tokenizer_of(made, prepared, context=positions)
    with atomic_folder(out, overwrite=overwrite) as folder:
        write_files(made, folder)
        if trained is not None:
            write_weights(trained, folder)
    files = [*made.files, *([WEIGHTS] if trained is not None else [])]
    show(_document(made, [str(out / name) for name in files]), as_json=as_json)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShapeOptions:
    """The options that name a shape, as they were given."""

    depth: int | None
    width: int | None
    heads: int | None
    head_dim: int | None
    kv_heads: int | None
    feed_forward: int | None
    vocab: int | None
    context: int | None
    rank: int | None
    tied: bool

    def given(self) -> list[str]:
        """The names of those that were given."""
        names = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        return [f"--{name.replace('_', '-')}" for name in names if name != "tied" or self.tied]

    def shape(self, data: PreparedData | None, separator: int | None) -> ExportShape:
        """The architecture that they name, for the data's vocabulary where it is not given."""
        if self.depth is None or self.width is None or self.heads is None:
            raise ValueError("a shape needs --depth, --width and --heads; or give --run DIR")
        head_dim = head_dim_of(self.width, self.heads) if self.head_dim is None else self.head_dim
        return ExportShape(
            depth=self.depth,
            width=self.width,
            heads=self.heads,
            head_dim=head_dim,
            kv_heads=self.heads if self.kv_heads is None else self.kv_heads,
            feed_forward="usual" if self.feed_forward is None else self.feed_forward,
            vocab=self._vocab(data),
            context=GPT2_CONTEXT if self.context is None else self.context,
            embedding=Full() if self.rank is None else Factorised(inner=self.rank),
            tied=self.tied,
            separator=separator,
        )

    def _vocab(self, data: PreparedData | None) -> int:
        least = GPT2_VOCAB if data is None else data.vocab
        if data is not None and self.vocab is not None and self.vocab < data.vocab:
            raise ValueError(
                f"--vocab {self.vocab} is below the {data.vocab} tokens of {str(data.folder)!r}; "
                f"use {data.vocab} or more, or leave it out"
            )
        return least if self.vocab is None else self.vocab


def _check_run_options(options: ShapeOptions, format_name: str) -> None:
    if given := options.given():
        raise ValueError(f"{given[0]} does not go with --run, which has a shape; leave it out")
    if format_name != WEIGHTS_FORMAT:
        raise ValueError(
            f"--format {format_name} does not go with --run: trained weights are those of GPT-2's "
            f"kind of network; use --format {WEIGHTS_FORMAT}"
        )


def _check_data_of(trained: TrainedRun, data: PreparedData | None) -> None:
    """Refuse a tokenizer of other data than the run was trained on."""
    if data is not None and data.data_hash != trained.spec.data_hash:
        raise ValueError(
            f"the run was trained on data {trained.spec.data_hash[:16]}, and {str(data.folder)!r} "
            f"is {data.data_hash[:16]}; give the data it was trained on"
        )


def _check_out(out: Path, *, overwrite: bool) -> None:
    """Refuse a target that holds anything; with --overwrite, anything but an export."""
    if not out.exists():
        return
    if not out.is_dir():
        raise ValueError(f"{str(out)!r} is a file, and an export is a folder; choose another --out")
    there = sorted(path.name for path in out.iterdir())
    if there and not overwrite:
        raise ValueError(
            f"{str(out)!r} already holds {there[0]}; use --overwrite or choose another --out"
        )
    if foreign := [name for name in there if not _is_exported(out / name)]:
        raise ValueError(
            f"{str(out)!r} holds {foreign[0]}, which is of no export and would be lost; "
            "choose another --out"
        )


def _is_exported(path: Path) -> bool:
    """Whether it is a file of an export; weights may be those of somebody's model."""
    is_file = path.is_file() and not path.is_symlink() and path.name in EXPORTED_FILES
    return is_file and (path.name != WEIGHTS or is_export(path))


def _document(made: Export, files: list[str]) -> Document:
    params = made.params
    parts = f"{params.blocks:,} in blocks, {params.embedding:,} in tables"
    notes = tuple(f"Note: {note}." for note in made.notes)
    return Document(
        title=made.format,
        headline=f"{made.format}: {params.total:,} parameters ({parts})",
        sections=(Section(sentences=tuple(files)), Section(sentences=notes)),
        data={
            "format": made.format,
            "files": files,
            "params": to_json(params),
            "notes": list(made.notes),
        },
    )
