"""Rows of the table that a tokenizer needs, against the tokenizers library."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models
from tokenizers.trainers import (
    BpeTrainer,
    Trainer,
    UnigramTrainer,
    WordLevelTrainer,
    WordPieceTrainer,
)

from archfit.data.kinds import tokenizer_rows
from archfit.data.prepare import prepare
from archfit.data.prepared import open_prepared
from archfit.data.sources import DataSettings
from archfit.spec.data_kinds import SAMPLE

TEXT = ["the depth of a network and the width of a network", "which shape fits my data"] * 5


@pytest.mark.parametrize(
    ("model", "trainer"),
    [
        (models.BPE(), BpeTrainer(vocab_size=60)),
        (models.WordPiece(unk_token="[UNK]"), WordPieceTrainer(vocab_size=60)),
        (models.WordLevel(unk_token="[UNK]"), WordLevelTrainer(vocab_size=10)),
        (models.Unigram(), UnigramTrainer(vocab_size=40)),
    ],
    ids=["bpe", "wordpiece", "wordlevel", "unigram"],
)
def test_rows_are_those_of_the_library(
    model: models.Model, trainer: Trainer, tmp_path: Path
) -> None:
    tokenizer = Tokenizer(model)
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.add_tokens(["<|extra|>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert tokenizer_rows(tmp_path / "tokenizer.json") == tokenizer.get_vocab_size()


def test_our_own_tokenizers_count_as_well(tmp_path: Path) -> None:
    prepare(SAMPLE, tmp_path / "data", DataSettings(kind="bytes"))
    rows = tokenizer_rows(tmp_path / "data" / "tokenizer.json")
    assert rows == open_prepared(tmp_path / "data").vocab == 257


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"model": {"vocab": 3}}', '{"model": {"vocab": {"a": "b"}}}', "[" * 10**5],
)
def test_what_is_no_tokenizer_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"tokenizer\.json is not a tokenizer\.json"):
        tokenizer_rows(file)


def test_ids_that_leave_gaps_need_rows_for_them(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 9}}, "added_tokens": []}))
    assert tokenizer_rows(file) == 10
