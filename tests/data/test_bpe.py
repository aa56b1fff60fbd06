import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from archfit.data import vocabulary as vocabularies
from archfit.data.kinds import read_vocabulary
from archfit.data.prepare import prepare
from archfit.data.sources import DataSettings
from archfit.data.streams import DocumentBlock
from archfit.data.vocabulary import Bpe, read_bpe, train_bpe

TEXT = (
    "The quick brown fox jumps over the lazy dog. It's 42 o'clock;  two  spaces,\n\n"
    "and naïve café “quotes” don't hurt <|doc|> a tokenizer!\n\tTabs too ...\n"
) * 30


@pytest.fixture(scope="module")
def trained() -> Bpe:
    return train_bpe(iter([TEXT]), 320)


def test_size_counts_bytes_merges_and_the_separator(trained: Bpe) -> None:
    described = json.loads(trained.as_json())
    assert trained.size == 320 == 256 + len(described["model"]["merges"]) + 1
    assert trained.separator == 319


def test_the_file_is_a_tokenizer_of_hugging_face(trained: Bpe) -> None:
    theirs = Tokenizer.from_str(trained.as_json())
    theirs.encode_special_tokens = True
    ours = trained.encode(DocumentBlock([TEXT.encode()], complete=True))
    assert ours.tolist() == [*theirs.encode(TEXT).ids, trained.separator]


def test_training_again_gives_the_same_file(trained: Bpe) -> None:
    assert train_bpe(iter([TEXT]), 320).as_json() == trained.as_json()


@given(texts=st.lists(st.text(), min_size=1))
@settings(max_examples=30)
def test_any_text_comes_back(texts: list[str]) -> None:
    vocabulary = read_vocabulary(_small().as_json(), "tokenizer.json")
    documents = [text.encode() for text in texts]
    assert (
        vocabulary.decode(vocabulary.encode(DocumentBlock(documents, complete=True))) == documents
    )


def _small() -> Bpe:
    if not hasattr(_small, "made"):
        _small.made = train_bpe(iter([TEXT]), 300)  # type: ignore[attr-defined]  # trained once
    return _small.made  # type: ignore[attr-defined, no-any-return]


@given(words=st.lists(st.sampled_from(["a", "the", "it's", " ", "\n", "é", ".", "7"]), min_size=1))
def test_cutting_between_words_changes_no_token(words: list[str]) -> None:
    text = " ".join([*words, "and more words"])
    cut = vocabularies.word_cut(text.encode(), len(text.encode()))
    parts = [text.encode()[:cut], text.encode()[cut:]]
    ids = [token for part in parts for token in _small().tokenizer.encode(part.decode()).ids]
    assert ids == _small().tokenizer.encode(text).ids


def test_a_cut_stays_near_its_limit_where_words_have_no_gaps() -> None:
    content = ("Hello world\n" + "\u6c49\u5b57" * 8000).encode()
    assert 45_000 - 3 <= vocabularies.word_cut(content, 45_000) <= 45_000
    content[: vocabularies.word_cut(content, 45_000)].decode()
    assert vocabularies.word_cut(content, 2_000) == len(b"Hello world")  # near enough


def test_long_documents_are_encoded_in_pieces_as_if_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once = _small().encode(DocumentBlock([TEXT.encode()], complete=True))
    monkeypatch.setattr(vocabularies, "PIECE_BYTES", 100)
    assert len(list(vocabularies.pieces_of(TEXT.encode(), 100))) > 40
    assert np.array_equal(_small().encode(DocumentBlock([TEXT.encode()], complete=True)), at_once)


def test_text_that_looks_like_the_separator_is_text(trained: Bpe) -> None:
    ids = trained.encode(DocumentBlock([b"a<|doc|>b"], complete=True))
    assert (ids == trained.separator).sum() == 1
    assert trained.decode(ids) == [b"a<|doc|>b"]


def test_a_tokenizer_is_reused_with_its_own_separator() -> None:
    tokenizer = Tokenizer.from_str(_small().as_json().replace("<|doc|>", "<|endoftext|>"))
    reused = read_bpe(tokenizer.to_str(), "tokenizer.json")
    assert reused.separator == tokenizer.token_to_id("<|endoftext|>")
    assert reused.size == _small().size


def test_a_tokenizer_with_a_normaliser_is_not_cut() -> None:
    described = json.loads(_small().as_json())
    described["normalizer"] = {"type": "NFC"}
    assert not read_bpe(json.dumps(described), "t").cuttable
    assert _small().cuttable


def described(**changes: object) -> str:
    """A tokenizer.json like that of the small BPE, except for some parts of it."""
    return json.dumps(json.loads(_small().as_json()) | changes)


def test_only_a_special_token_is_a_separator() -> None:
    tokenizer = Tokenizer.from_str(described(added_tokens=[]))
    tokenizer.add_tokens(["</s>"])
    reused = read_bpe(tokenizer.to_str(), "t")
    assert reused.tokenizer.id_to_token(reused.separator) == "<|doc|>"
    assert reused.decode(reused.encode(DocumentBlock([b"a</s>b"], complete=True))) == [b"a</s>b"]
    tokenizer.add_tokens(["<|doc|>"])
    with pytest.raises(
        ValueError, match=r"has <\|doc\|> as an ordinary token.*; mark it as special"
    ):
        read_bpe(tokenizer.to_str(), "t")


def test_a_tokenizer_that_does_not_split_at_words_is_not_cut() -> None:
    whole = json.loads(_small().as_json())["pre_tokenizer"] | {"use_regex": False}
    assert not read_bpe(described(pre_tokenizer=whole), "t").cuttable


@pytest.mark.parametrize(
    "changes",
    [
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}},
        {"normalizer": {"type": "Lowercase"}},
        {"model": {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"}},
    ],
)
def test_a_tokenizer_that_loses_text_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"t does not give text back .*; use a byte-level"):
        read_bpe(described(**changes), "t")


def test_a_tokenizer_that_fails_is_one_sentence() -> None:
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}
    with pytest.raises(
        ValueError, match=r"the tokenizer cannot encode this text \(.*; use another"
    ):
        read_bpe(described(model=model), "t")


def test_a_tokenizer_of_too_many_tokens_is_refused() -> None:
    model = json.loads(_small().as_json())["model"]
    model["vocab"]["far"] = 1 << 24
    with pytest.raises(
        ValueError, match="t has ids from 0 to 16777216, and a vocabulary ends at 16777215"
    ):
        read_bpe(described(model=model), "t")


def test_a_tokenizer_must_be_a_file_of_reasonable_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.data.vocabulary.LARGEST_TOKENIZER", 1 << 20)
    pipe, large = tmp_path / "pipe.json", tmp_path / "large.json"
    os.mkfifo(pipe)
    large.touch()
    os.truncate(large, (1 << 20) + 1)
    for path, sentence in (
        (
            pipe,
            r"--tokenizer pipe.json cannot be read \(it is a pipe or a device; .*; give another",
        ),
        (tmp_path, r"cannot be read \(.*Is a directory: .*; give another"),
        (
            large,
            r"--tokenizer large.json cannot be read \(it has over 1,048,576 bytes, more than",
        ),
    ):
        with pytest.raises(ValueError, match=sentence):
            prepare("nowhere", tmp_path / "out", DataSettings(kind="text", tokenizer=path))
