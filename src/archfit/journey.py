"""The end of the journey: advice as a document, and its shape as a Hugging Face config."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from archfit.data.shards import atomic_folder
from archfit.export.formats import (
    EXPORTED_FILES,
    Export,
    ExportShape,
    as_json,
    export_config,
    write_files,
)
from archfit.spec import Full
from archfit.spec.files import TOKENIZER, TOKENIZER_CONFIG

if TYPE_CHECKING:
    from archfit.advise.advice import Advice
    from archfit.advise.planner import Plan
    from archfit.data.prepared import PreparedData
    from archfit.report.document import Document


def advice_of(advice: Advice, *, command: str) -> Document:
    """What is said about a source; `command` is what was typed."""
    from archfit.data.sources import is_sample
    from archfit.report.advice_document import advice_document
    from archfit.report.page import version_line

    source = advice.source.words
    name = Path(source).name or Path(source).resolve().name
    name = "the English sample" if is_sample(source) else name
    return advice_document(advice, name=name, command=command, version=version_line())


def check_replaceable(out: Path) -> None:
    """Refuse a folder that holds more than `write_config` writes: it would be lost."""
    there = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    if foreign := [name for name in there if name not in EXPORTED_FILES]:
        raise ValueError(
            f"{str(out)!r} holds {foreign[0]}, which would be lost; use another --out, or put it "
            "elsewhere"
        )


def write_config(plan: Plan, data: PreparedData, out: Path) -> tuple[Path, ...]:
    """Write the plan's shape for the data as they are; one that was there is replaced."""
    tokenizer = data.vocabulary().hugging_face()
    shape = ExportShape(
        **asdict(plan.shape),
        kv_heads=plan.shape.heads,
        vocab=data.vocab,
        context=plan.request.context,
        embedding=Full(),
        tied=plan.request.is_tied,
        separator=None if tokenizer is None else tokenizer.separator,
        tokens_per_param=plan.request.tokens_per_param,
        data_tokens=data.train_tokens,
    )
    assert plan.export_format is not None  # advice is for causal networks with full embeddings
    config = export_config(shape, plan.export_format)
    made = with_tokenizer_of(config, data, context=shape.context)
    with atomic_folder(out, overwrite=True) as folder:
        write_files(made, folder)
    return tuple(out / name for name in made.files)


def with_tokenizer_of(made: Export, data: PreparedData, *, context: int) -> Export:
    """The export with the data's tokenizer.json of Hugging Face and the file that says how to load
    it, or a note that there is none."""
    tokenizer = data.vocabulary().hugging_face()
    if tokenizer is None:
        kind = data.description["vocabulary"]
        why = f"the data is encoded as {kind}, which Hugging Face has no tokenizer.json for"
        return replace(made, notes=(*made.notes, f"no tokenizer: {why}"))
    separator = tokenizer.tokenizer.id_to_token(tokenizer.separator)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "bos_token": separator,
        "eos_token": separator,
        "clean_up_tokenization_spaces": False,
    }
    added = {TOKENIZER: tokenizer.as_json(), TOKENIZER_CONFIG: as_json(config)}
    return replace(made, files=made.files | added)
