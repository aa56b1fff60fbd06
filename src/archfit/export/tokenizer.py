"""The tokenizer of prepared data, so that Hugging Face's AutoTokenizer finds it in the folder."""

from dataclasses import replace

from archfit.export.format import Export
from archfit.export.gpt2 import as_json

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def with_tokenizer(export: Export, text: str, *, separator: str, context: int) -> Export:
    """The export with a tokenizer.json of Hugging Face, and the file that says how to load it."""
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "bos_token": separator,
        "eos_token": separator,
        "clean_up_tokenization_spaces": False,
    }
    contents = (text, as_json(config))
    files = export.files | dict(zip(TOKENIZER_FILES, contents, strict=True))
    return replace(export, files=files)


def without_tokenizer(export: Export, why: str) -> Export:
    """The export with a note that says why it has no tokenizer."""
    return replace(export, notes=(*export.notes, f"no tokenizer: {why}"))
