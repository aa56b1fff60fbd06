"""The end of the journey: the shape of an advice as a config, with the tokenizer of its data."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from archfit.data.shards import atomic_folder
from archfit.export import formats
from archfit.spec import Full
from archfit.spec.errors import refusal
from archfit.spec.files import TOKENIZER, TOKENIZER_CONFIG

if TYPE_CHECKING:
    from archfit.advise.planner import Plan
    from archfit.data.prepared import PreparedData


def check_replaceable(out: Path) -> None:
    """Refuse a folder that holds more than `write_config` writes: it would be lost."""
    there = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    if foreign := [name for name in there if name not in formats.EXPORTED_FILES]:
        raise refusal("advise-over", out=repr(str(out)), name=foreign[0])


def write_config(plan: Plan, data: PreparedData, out: Path) -> tuple[Path, ...]:
    """Write the plan's shape for the data as they are; one that was there is replaced."""
    tokenizer = data.vocabulary().hugging_face()
    shape = formats.ExportShape(
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
    config = formats.export_config(shape, plan.export_format)
    made = with_tokenizer_of(config, data, context=shape.context)
    with atomic_folder(out, overwrite=True) as folder:
        formats.write_files(made, folder)
    return tuple(out / name for name in made.files)


def with_tokenizer_of(made: formats.Export, data: PreparedData, *, context: int) -> formats.Export:
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
    added = {TOKENIZER: tokenizer.as_json(), TOKENIZER_CONFIG: formats.as_json(config)}
    return replace(made, files=made.files | added)
