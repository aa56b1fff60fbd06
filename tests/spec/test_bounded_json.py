"""JSON that anybody may have written, read with limits."""

import json
import os
from pathlib import Path

import pytest

from archfit.spec.codec import LONGEST_INTEGER, MOST_PARTS, parse_object
from archfit.spec.files import read_object

MOST_BYTES = 2_000


def read(folder: Path, content: bytes) -> dict[str, object]:
    """What a file of this content holds."""
    (folder / "config.json").write_bytes(content)
    return read_object(folder / "config.json", most_bytes=MOST_BYTES)


def test_an_object_is_read_as_json_does(tmp_path: Path) -> None:
    text = '{"n_embd": 768, "eps": 1e-5, "limit": [0.0, Infinity], "names": {"a": null}}'
    assert read(tmp_path, text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is not JSON"),
        (b"\x80\x02", "is not JSON: it is not UTF-8 text"),
        (b"[1]", "holds a JSON list, not an object"),
        (b'{"hidden_size": 1, "hidden_size": 2}', "'hidden_size' stands twice; keep one"),
        (b" " * (MOST_BYTES + 1), "has over 2,000 bytes"),
        (b'{"a": "\\ud83d"}', r"holds half a character \('\\ud83d'\); write it again"),
    ],
)
def test_a_file_that_is_no_object_is_one_sentence(
    content: bytes, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=sentence) as problem:
        read(tmp_path, content)
    assert str(problem.value).startswith(str(tmp_path / "config.json"))


def test_what_would_fill_the_memory_is_refused_and_what_just_does_not_is_read(
    tmp_path: Path,
) -> None:
    assert read(tmp_path, b"{}".ljust(MOST_BYTES)) == {}
    digits = b"9" * LONGEST_INTEGER
    assert parse_object(b'{"a": %b}' % digits, where="it") == {"a": int(digits)}
    with pytest.raises(ValueError, match="a whole number of 21 digits"):
        parse_object(b'{"a": 9%b}' % digits, where="it")
    parts = b'{"a": [%b0]}'
    assert parse_object(parts % (b"0," * (MOST_PARTS - 2)), where="it")
    with pytest.raises(ValueError, match="has 1,000,001 brackets and commas"):
        parse_object(parts % (b"0," * (MOST_PARTS - 1)), where="it")
    with pytest.raises(ValueError, match="it is nested too deeply"):
        parse_object(b'{"a":' * 100_000, where="it")


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ValueError, match="cannot be read: it is a pipe or a device"):
        read_object(tmp_path / "config.json", most_bytes=MOST_BYTES)
