"""JSON that anybody may have written: one object, or one sentence that says why not."""

import json
import re
from pathlib import Path

from archfit.spec.codec import unique_keys
from archfit.spec.errors import brief
from archfit.spec.files import read_bounded

MOST_PARTS = 1_000_000  # brackets and commas; Python's objects for so many take under 300 MB
HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")  # two of them make one, an emoji for one
LONGEST_INTEGER = 20  # digits; 2^64 has as many


def read_object(path: Path, *, most_bytes: int) -> dict[str, object]:
    """The JSON object that a file of at most `most_bytes` holds."""
    try:
        content = read_bounded(path, most_bytes)
    except ValueError as problem:
        raise ValueError(f"{path} cannot be read: {problem}") from problem
    return parse_object(content, where=str(path))


def parse_object(content: bytes, *, where: str, most_parts: int = MOST_PARTS) -> dict[str, object]:
    """The JSON object in `content`; NaN and infinities, which some programs write, are let in."""
    parts = sum(content.count(mark) for mark in (b"{", b"[", b","))
    if parts > most_parts:
        raise ValueError(
            f"{where} has {parts:,} brackets and commas, over the limit of {most_parts:,} that "
            "keeps it from filling the memory; split the model into shards"
        )
    document = _parsed(content, where)
    if HALF_CHARACTER.search(content):
        _check_characters(document, where)
    if not isinstance(document, dict):
        raise ValueError(
            f"{where} holds a JSON {type(document).__name__}, not an object; "
            "give a file that starts with {"
        )
    return document


def _parsed(content: bytes, where: str) -> object:
    try:
        text = content.decode()
        return json.loads(text, object_pairs_hook=unique_keys, parse_int=_short_integer)
    except UnicodeDecodeError as problem:
        raise ValueError(f"{where} is not JSON: it is not UTF-8 text; write it again") from problem
    except json.JSONDecodeError as problem:
        raise ValueError(f"{where} is not JSON ({problem}); write it again") from problem
    except RecursionError:
        raise ValueError(f"{where} is nested too deeply to be of a model; write it again") from None
    except ValueError as problem:  # a key that stands twice, or a number that is too long
        raise ValueError(f"{where} cannot be used: {problem}") from problem


def _check_characters(document: object, where: str) -> None:
    """Refuse halves of characters without the other half, which no terminal or file can take."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as problem:
        half = brief(problem.object[problem.start])
        raise ValueError(f"{where} holds half a character ({half}); write it again") from problem


def _short_integer(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(
            f"it holds a whole number of {len(digits):,} digits, and no size of a model has over "
            f"{LONGEST_INTEGER}; correct it"
        )
    return int(digits)
