"""How many rows the embedding table of a tokenizer needs, without loading the tokenizer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from archfit.data.vocabulary import FORMAT
from archfit.data.vocabulary_choice import check_tokenizer_file
from archfit.data.vocabulary_files import read_vocabulary

if TYPE_CHECKING:
    from pathlib import Path


def tokenizer_rows(path: Path) -> int:
    """Rows of the table for a Hugging Face tokenizer.json of any model, or one of ours."""
    check_tokenizer_file(path)
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"{path.name} is not a tokenizer.json: {problem}") from problem
    if isinstance(document, dict) and document.get("format") == FORMAT:
        return read_vocabulary(text, path.name).size
    rows = max([*_model_ids(document), *_added_ids(document)], default=-1) + 1
    if rows < 2:
        raise ValueError(
            f"{path.name} is not a tokenizer.json: it has no model.vocab; save the tokenizer by "
            "save_pretrained of Hugging Face's fast tokenizers"
        )
    return rows


def _model_ids(document: object) -> list[int]:
    """Ids of the model: a mapping to ids (BPE, WordPiece, WordLevel), or a list (Unigram)."""
    model = document.get("model") if isinstance(document, dict) else None
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocab, list):
        return [len(vocab) - 1]
    if isinstance(vocab, dict):
        return [id_ for id_ in vocab.values() if type(id_) is int]
    return []


def _added_ids(document: object) -> list[int]:
    added = document.get("added_tokens") if isinstance(document, dict) else None
    found = (
        [token.get("id") for token in added or () if isinstance(token, dict)]
        if isinstance(added, list)
        else []
    )
    return [id_ for id_ in found if type(id_) is int]
