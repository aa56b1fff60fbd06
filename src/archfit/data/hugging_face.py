"""`hf:NAME[:CONFIG][:SPLIT]`: documents from a Hugging Face data set in a folder or local cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from archfit.data.sources import HUGGING_FACE
from archfit.data.text import DEFAULT_FIELD, ROWS_AT_ONCE, column_documents
from archfit.data.unpack import InputFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datasets import Dataset

    from archfit.data.settings import Settings
    from archfit.data.unpack import Ledger

DEFAULT_SPLIT = "train"
_SPLITS = ("train", "test", "validation", "valid", "dev", "heldout")


def dataset_documents(source: str, settings: Settings, ledger: Ledger) -> Iterator[bytes]:
    """The text field of each row; the ledger gets a hash over all of them."""
    dataset, name = _load(source)
    field = settings.field or DEFAULT_FIELD
    if field not in dataset.column_names:
        names = ", ".join(map(repr, dataset.column_names))
        raise ValueError(f"{name} has no column {field!r} but {names}; choose one by --field")
    digest, size = hashlib.sha256(), 0
    for rows in dataset.select_columns([field]).iter(batch_size=ROWS_AT_ONCE):
        for document in column_documents(rows[field], name, settings, ledger):
            digest.update(len(document).to_bytes(8, "little") + document)
            size += len(document)
            ledger.advance(len(document))
            yield document
    ledger.add(InputFile(name, size, digest.hexdigest()))


def _load(source: str) -> tuple[Dataset, str]:
    """The rows that `source` names and a name for them without the folders above."""
    try:
        # Offline unless the user says otherwise; the library reads this when first imported.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        import datasets
    except ImportError as problem:
        raise ValueError(
            f"{source} needs the datasets package; run pip install 'archfit[data]'"
        ) from problem
    name, config, split = _parts(source)
    try:
        if Path(name, "dataset_info.json").exists() or Path(name, "dataset_dict.json").exists():
            rows = datasets.load_from_disk(name)
        else:
            rows = datasets.load_dataset(name, config)
    except Exception as problem:  # whatever a builder, a cache or a damaged file may raise
        raise ValueError(
            f"data set {name!r} cannot be loaded offline ({problem}); give a folder written by "
            "save_to_disk, a folder of data files, or a data set that is in the local cache"
        ) from problem
    if isinstance(rows, datasets.DatasetDict):
        if split not in rows:
            raise ValueError(
                f"{source} has no split {split!r} but {', '.join(rows)}; name one of them"
            )
        rows = rows[split]
    return rows, ":".join((HUGGING_FACE + Path(name).name, *filter(None, (config, split))))


def _parts(source: str) -> tuple[str, str | None, str]:
    """Name, configuration and split; one word after the name is a split if it looks like one."""
    name, *rest = source.removeprefix(HUGGING_FACE).split(":")
    if not name or len(rest) > 2:
        raise ValueError(f"{source!r} is not hf:NAME[:CONFIG][:SPLIT]")
    if len(rest) == 1:
        return (name, None, rest[0]) if rest[0] in _SPLITS else (name, rest[0], DEFAULT_SPLIT)
    config, split = rest or (None, DEFAULT_SPLIT)
    return name, config or None, split or DEFAULT_SPLIT
