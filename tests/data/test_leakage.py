import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data.blocks import Block
from archfit.data.leakage import LOOKED_AT, WORDS, NgramSketch, compare, sampling

RANDOM = random.Random(0)
WORD_LIST = ["".join(RANDOM.choices("abcdefgh", k=5)) for _ in range(3000)]


def text(words: int) -> str:
    return " ".join(RANDOM.choices(WORD_LIST, k=words))


def leak(
    train: list[str], heldout: list[str], *, unit: int = WORDS, one_in: int = 1
) -> float | None:
    sketches = NgramSketch(unit, one_in), NgramSketch(unit, one_in)
    for sketch, documents in zip(sketches, (train, heldout), strict=True):
        sketch.add(Block([document.encode() for document in documents], complete=True))
    return compare(*sketches, shared_documents=0).share


def brute_force(train: list[str], heldout: list[str]) -> float | None:
    def ngrams(documents: list[str]) -> list[tuple[str, ...]]:
        split = [document.split() for document in documents]
        return [tuple(w[i : i + 13]) for w in split for i in range(len(w) - 12)]

    known, asked = set(ngrams(train)), ngrams(heldout)
    return sum(one in known for one in asked) / len(asked) if asked else None


@given(st.lists(st.lists(st.sampled_from("ab"), max_size=40).map(" ".join), min_size=2))
def test_shared_word_runs_are_those_found_by_brute_force(documents: list[str]) -> None:
    half = len(documents) // 2
    train, heldout = documents[:half], documents[half:]
    assert leak(train, heldout) == brute_force(train, heldout)


def test_copied_passages_are_found_in_other_case_and_wrapping() -> None:
    copied = text(500)
    heldout = text(500) + " " + copied
    train = [text(2000), copied.upper().replace(" ", "\n")]
    expected = (500 - 12) / (1000 - 12)
    assert leak(train, [heldout]) == pytest.approx(expected)


@pytest.mark.parametrize("one_in", [1, 16])
@pytest.mark.parametrize("blank", ["\r\n", "\n\n    ", " \t"])
def test_copies_with_other_blanks_are_copies(blank: str, one_in: int) -> None:
    copied = text(5000)
    assert leak([copied], [f" {copied} ".replace(" ", blank)], one_in=one_in) == 1


def test_the_share_of_nothing_is_unknown() -> None:
    assert leak([text(500)], ["too short"]) is None
    assert leak(["A" * 50], ["A" * 50], unit=1) is None


def test_repetitions_are_counted_and_need_no_room() -> None:
    words = text(20)
    sketch = NgramSketch(WORDS, 1)
    for _ in range(1000):
        sketch.add(Block([words.encode()], complete=True))
    assert len(sketch.hashes) == 8
    found = compare(sketch, sketch, shared_documents=0)
    assert found.heldout_ngrams == found.shared_ngrams == 8000


def test_runs_do_not_cross_documents() -> None:
    words = text(26).split()
    halves = [" ".join(words[:13]), " ".join(words[13:])]
    assert leak([" ".join([*words[:12], "x", *words[13:]])], halves) == 0.5


def test_a_sampled_estimate_is_close() -> None:
    copied = text(20_000)
    share = leak([text(20_000), copied], [text(20_000), copied], one_in=16)
    assert share == pytest.approx(0.5, abs=0.03)


def test_units_are_letters_and_flat_runs_do_not_count() -> None:
    train, heldout = "ACGTACGGTCATTTACGCA" + "A" * 50, "CCC" + "ACGTACGGTCATT" + "A" * 60
    assert leak([train], [heldout], unit=1)


@pytest.mark.parametrize("one_in", [1, 4])
def test_units_of_several_bytes_are_kept_whole(one_in: int) -> None:
    train = "".join(RANDOM.choices("abc", k=3000))
    assert leak([train], [train], unit=3, one_in=one_in) == 1
    share = leak([train], [train[1:-2]], unit=3, one_in=one_in)
    assert share is not None
    assert share < 0.1


def test_large_sources_are_sampled() -> None:
    assert sampling(1000, WORDS) == 1
    assert 10**9 // 6 // sampling(10**9, WORDS) <= LOOKED_AT
