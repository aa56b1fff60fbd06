from typing import cast

import pytest

from archfit.data.settings import Settings


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kind": "txt"}, "--kind 'txt' is not one of text, bytes"),
        ({"kind": "text", "vocab": 100}, r"--vocab 100 is smaller than the alphabet.*use 257"),
        ({"kind": "bytes", "vocab": 256}, r"--vocab 256 is smaller than the alphabet"),
        ({"kind": "text", "kmer": 3}, "--kmer means nothing for --kind text; it belongs to fasta"),
        ({"kind": "fasta", "kmer": 0}, r"--kmer 0 is not in 1\.\.24 letters"),
        ({"kind": "images", "levels": 10}, "--levels 10 is not a power of two"),
        ({"kind": "images", "levels": 16, "clusters": 16}, "choose one"),
        ({"kind": "images", "clusters": 1}, r"--clusters 1 is not in 2\.\.65535"),
        ({"kind": "series", "bins": 1}, "one bin carries no information"),
        ({"kind": "tokens", "separator": "x"}, "'x' is not a token id"),
        ({"kind": "text", "max_bytes": 0}, "--max-bytes 0 allows no input"),
        ({"kind": "abc", "vocab": 1}, r"--vocab 1 is not in 2\.\."),
        ({"kind": "text", "errors": "ignore"}, "--errors 'ignore' is not one of strict, replace"),
    ],
)
def test_settings_that_make_no_sense_cannot_exist(
    options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Settings(**cast("dict[str, str]", options))  # type: ignore[arg-type]  # wrong on purpose


def test_the_limit_on_bytes_does_not_decide_the_tokens() -> None:
    limited = Settings(kind="text", max_bytes=5)
    assert limited.as_json() == Settings(kind="text").as_json()
