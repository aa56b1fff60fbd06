"""`archfit export`: an architecture, or a trained run, as other tools read it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from archfit.advise.budgets import check_tokens_per_param
from archfit.cli.shared import show, with_words
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.shards import atomic_folder
from archfit.export import formats, trained
from archfit.journey import with_tokenizer_of
from archfit.report.document import NEXT, Command, Document, Section, json_of
from archfit.spec.architecture import head_dim_of
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.parts import table_of
from archfit.spec.rates import CHINCHILLA_TOKENS

GPT2_VOCAB, GPT2_CONTEXT = 50257, 1024
USUAL_FORMAT, WEIGHTS, TRAIN = "hf-gpt2", "model.safetensors", "train.py"


@with_words("export", formats=formats.FORMATS)
def export(
    out: Path,
    format_name: str | None = None,
    tied: bool = False,
    tokens_per_param: float | None = None,
    run: Path | None = None,
    data: Path | None = None,
    overwrite: bool = False,
    **shape: int | None,
) -> None:
    """Write a shape, or a trained run, as the files that another tool reads."""
    prepared = open_prepared(data) if data is not None else None
    tokenizer = prepared.vocabulary().hugging_face() if prepared is not None else None
    separator = None if tokenizer is None else tokenizer.separator
    sizes = {name: size for name, size in shape.items() if size is not None}
    _check_out(out, overwrite=overwrite)
    opened = None
    if run is not None:
        others = {"tied": tied, "tokens_per_param": tokens_per_param}  # that a run has, too
        given = [*sizes, *(name for name, one in others.items() if one not in (None, False))]
        opened = _open_run(run, given, format_name, prepared)
        made = trained.export_run(opened, separator=separator)
        with trained.open_tensors(opened):  # refused before there is a folder
            pass
        positions = opened.spec.architecture.context
    else:
        each = CHINCHILLA_TOKENS if tokens_per_param is None else tokens_per_param
        check_tokens_per_param(each)
        wanted = _shape(sizes, tied=tied, data=prepared, separator=separator)
        wanted = replace(wanted, tokens_per_param=each)
        made = formats.export_config(wanted, format_name or USUAL_FORMAT)
        positions = wanted.context
    if prepared is not None:
        made = with_tokenizer_of(made, prepared, context=positions)
    with atomic_folder(out, overwrite=overwrite) as folder:
        formats.write_files(made, folder)
        if opened is not None:
            trained.write_weights(opened, folder)
    files = [*made.files, *([WEIGHTS] if opened is not None else [])]
    show(_document(made, out, files, data))


def _shape(
    sizes: dict[str, int], *, tied: bool, data: PreparedData | None, separator: int | None
) -> formats.ExportShape:
    """The architecture of the sizes given; the vocabulary is the data's where it is not given."""
    refuse_if(not {"depth", "width", "heads"} <= sizes.keys(), "export-nothing")
    least = GPT2_VOCAB if data is None else data.vocab
    if data is not None and sizes.get("vocab", least) < least:
        given = {"vocab": sizes["vocab"], "least": least}
        raise refusal("export-vocab", **given, folder=repr(str(data.folder)))
    usual: dict[str, Any] = {"kv_heads": sizes["heads"], "vocab": least, "context": GPT2_CONTEXT}
    if "head_dim" not in sizes:
        usual["head_dim"] = head_dim_of(sizes["width"], sizes["heads"])
    embedding = table_of(sizes.pop("rank", None))
    tokens = data.train_tokens if data is not None else None
    wanted: dict[str, Any] = usual | sizes | {"separator": separator, "data_tokens": tokens}
    return formats.ExportShape(**wanted, embedding=embedding, tied=tied)


def _open_run(
    run: Path, given: list[str], format_name: str | None, data: PreparedData | None
) -> trained.TrainedRun:
    """The run, unless a shape, another format or a tokenizer of other data is asked for, too."""
    if given:
        raise refusal("export-run-and", option=given[0].replace("_", "-"))
    opened = trained.open_run(run)
    if format_name not in (None, opened.format.name):
        raise refusal("export-format", given=format_name, format=opened.format.name)
    if data is not None and data.data_hash != opened.spec.data_hash:
        hashes = {"trained": opened.spec.data_hash[:16], "given": data.data_hash[:16]}
        raise refusal("export-data", folder=repr(str(data.folder)), **hashes)
    return opened


def _check_out(out: Path, *, overwrite: bool) -> None:
    """Refuse a target that holds anything; with --overwrite, anything but an export."""
    if not out.exists():
        return
    refuse_if(not out.is_dir(), "export-file", out=repr(str(out)))
    there = sorted(path.name for path in out.iterdir())
    if there and not overwrite:
        raise refusal("export-there", out=repr(str(out)), name=there[0])
    if foreign := [name for name in there if not _is_exported(out / name)]:
        raise refusal("export-over", out=repr(str(out)), name=foreign[0])


def _is_exported(path: Path) -> bool:
    """Whether it is a file of an export; weights may be those of somebody's model."""
    is_named = path.name in {*formats.EXPORTED_FILES, WEIGHTS}
    is_file = is_named and path.is_file() and not path.is_symlink()
    return is_file and (path.name != WEIGHTS or trained.is_export(path))


def _document(made: formats.Export, out: Path, names: list[str], data: Path | None) -> Document:
    params, files = made.params, [str(out / name) for name in names]
    parts = f"{params.blocks:,} in blocks, {params.embedding:,} in embeddings"
    is_untied = TRAIN in names and '"tie_word_embeddings": false' in made.files["config.json"]
    untied = ["The output layer has a matrix of its own: it is not tied to the embedding."]
    made_by = ["DATA is a folder that archfit data prepare made."]
    train = shlex.join(["python", str(out / TRAIN), "DATA" if data is None else str(data)])
    return Document(
        title=made.format,
        headline=f"{made.format}: {params.total:,} parameters ({parts})",
        sections=(
            Section.of(*files, *untied * is_untied, *(f"Note: {note}." for note in made.notes)),
            Section.of(*[Command(train), *made_by * (data is None)] * (TRAIN in names), title=NEXT),
        ),
        data=json_of("export", made, files=files),
    )
