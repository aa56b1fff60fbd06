"""Any tokenizer.json: read back as a vocabulary, or only asked how many rows its table needs."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from archfit.data.bpe import read_bpe
from archfit.data.kinds import HANDLERS
from archfit.data.streams import refused
from archfit.data.vocabulary import FORMAT, FORMAT_VERSION, Vocabulary
from archfit.spec.files import LARGEST_TOKENIZER


def read_vocabulary(text: str, name: str) -> Vocabulary:
    """The vocabulary that a tokenizer.json describes: Hugging Face's for BPE, our own otherwise."""
    with refused(ValueError, f"{name} is not JSON", "prepare the data again"):
        document = json.loads(text)
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        return read_bpe(text, name)
    version = document.pop("version", None)
    if version != FORMAT_VERSION:
        raise ValueError(f"{name} has version {version}, not {FORMAT_VERSION}; prepare again")
    with refused((KeyError, TypeError), f"{name} is incomplete", "prepare the data again"):
        wanted = document.pop("vocabulary")
        known = {each.name: each for kind in HANDLERS.values() for each in kind.vocabularies}
        if wanted not in known:
            raise KeyError(f"unknown vocabulary {wanted!r}")
        fields = {key: _as_tuples(value) for key, value in document.items()}
        vocabulary: Vocabulary = known[wanted](**fields)
    return vocabulary


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def check_tokenizer_file(path: Path) -> None:
    """Refuse what is not a file of reasonable size."""
    name, found = path.name, path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"--tokenizer {name} is not a regular file; give a tokenizer.json")
    if found.st_size > LARGEST_TOKENIZER:
        rule = f"has {found.st_size} bytes, more than {LARGEST_TOKENIZER}"
        raise ValueError(f"--tokenizer {name} {rule}; give a smaller tokenizer.json")


def tokenizer_rows(path: Path) -> int:
    """Rows of the table for a Hugging Face tokenizer.json of any model, or one of ours."""
    check_tokenizer_file(path)
    what = f"{path.name} is not a tokenizer.json"
    with refused((ValueError, RecursionError), what, "give another file"):
        text = path.read_text(encoding="utf-8")
        found = json.loads(text)
    document = found if isinstance(found, dict) else {}
    if document.get("format") == FORMAT:
        return read_vocabulary(text, path.name).size
    rows = max(_ids(document), default=-1) + 1
    if rows < 2:
        way_out = "save the tokenizer by save_pretrained of Hugging Face's fast tokenizers"
        raise ValueError(f"{what}: it has no model.vocab; {way_out}")
    return rows


def _ids(document: dict[str, Any]) -> list[int]:
    """Ids of the model, which has a mapping or (Unigram) a list of them, and of added tokens."""
    model, added = document.get("model"), document.get("added_tokens")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    ids = [*vocab.values()] if isinstance(vocab, dict) else []
    ids += [len(vocab) - 1] if isinstance(vocab, list) else []
    tokens = added if isinstance(added, list) else ()
    ids += [token.get("id") for token in tokens if isinstance(token, dict)]
    return [number for number in ids if type(number) is int]
