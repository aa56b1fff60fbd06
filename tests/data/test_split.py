import hashlib
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data.prepare import prepare
from archfit.data.shards import (
    BY_HASH,
    BY_TAILS,
    NGRAMS_LOOKED_AT,
    Divider,
    NgramSketch,
    Survey,
    sampling,
    split_places,
)
from archfit.data.sources import DataSettings
from archfit.data.streams import DocumentBlock
from archfit.data.vocabulary import WORDS


def survey(blocks: list[DocumentBlock], ignored_at_end: bytes = b"") -> Survey:
    found = Survey(ignored_at_end)
    contents = [b"".join(block.parts) for block in blocks]
    assert list(found.read(blocks)) == contents
    return found


def surveyed(documents: list[bytes]) -> Survey:
    return survey([DocumentBlock(documents, complete=True)])


def divided(
    blocks: list[DocumentBlock], places: np.ndarray, unit: int
) -> tuple[list[bytes], list[bytes]]:
    """What arrives on each side, documents put together again."""
    divider = Divider(places, lambda _, limit: limit - limit % unit)
    sides: tuple[list[bytes], list[bytes]] = ([b""], [b""])
    for block in blocks:
        for side, part in zip(sides, divider.divide(block), strict=True):
            for index, piece in enumerate(part.parts):
                side[-1] += piece
                if index < len(part.parts) - 1 or part.complete:
                    side.append(b"")
    assert sides[0][-1] == sides[1][-1] == b""
    return sides[0][:-1], sides[1][:-1]


@given(
    documents=st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=6),
    cuts=st.lists(st.integers(1, 25)),
    shares=st.lists(st.sampled_from([0, 0.5, 1]), min_size=6, max_size=6),
    unit=st.integers(1, 3),
)
def test_documents_are_divided_at_their_places_however_they_come(
    documents: list[bytes], cuts: list[int], shares: list[float], unit: int
) -> None:
    documents = [document * unit for document in documents]
    lengths = [len(document) for document in documents]
    places = [int(n * share) for n, share in zip(lengths, shares, strict=False)]
    blocks = []
    for document in documents:
        pieces, rest = [], document
        for cut in cuts:
            pieces.append(rest[:cut])
            rest = rest[cut:]
        blocks += [DocumentBlock([piece], complete=False) for piece in pieces]
        blocks.append(DocumentBlock([rest], complete=True))
    train, heldout = divided(blocks, np.array(places), unit)
    good = [place - place % unit for place in places]
    whole = zip(documents, good, strict=True)
    expected = [(document[:place], document[place:]) for document, place in whole]
    assert train == [head for head, _ in expected if head]
    assert heldout == [tail for _, tail in expected if tail]


DOCUMENTS = [f"document number {number}".encode() for number in range(2000)]


def test_one_document_in_twenty_is_held_out_by_its_hash() -> None:
    (places,), rule = split_places(surveyed(DOCUMENTS))
    first_bytes = [hashlib.sha256(document).digest()[:8] for document in DOCUMENTS]
    held = [int.from_bytes(start, "little") % 20 == 0 for start in first_bytes]
    assert rule == {"rule": BY_HASH, "heldout_share": 0.05}
    assert (places == 0).tolist() == held
    assert 60 < sum(held) < 140


def test_a_document_lands_on_the_same_side_in_any_company() -> None:
    def held(documents: list[bytes]) -> set[bytes]:
        (places,), _ = split_places(surveyed(documents))
        return {text for text, place in zip(documents, places, strict=True) if place == 0}

    mixed = random.Random(0).sample(DOCUMENTS, 700)
    assert held(mixed + mixed) == held(DOCUMENTS) & set(mixed)


@pytest.mark.parametrize("documents", [DOCUMENTS[:99], [b"always the same one"] * 200])
def test_few_documents_or_one_sided_ones_lose_their_tails(documents: list[bytes]) -> None:
    (places,), rule = split_places(surveyed(documents))
    assert rule == {"rule": BY_TAILS, "heldout_share": 0.05}
    assert places.tolist() == [len(text) - len(text) // 20 for text in documents]


@given(documents=st.lists(st.binary(), min_size=1), cut=st.integers(0, 9))
def test_lengths_and_hashes_of_documents(documents: list[bytes], cut: int) -> None:
    first, *others = documents
    found = survey(
        [
            DocumentBlock([first[:cut]], complete=False),
            DocumentBlock([first[cut:], *others], complete=True),
        ],
    )
    real = [document for document in documents if document]
    assert found.lengths.tolist() == [len(document) for document in real]
    hashes = [hashlib.sha256(document).digest() for document in real]
    assert found.digests.tolist() == [int.from_bytes(digest[:8], "little") for digest in hashes]
    assert sum(found.lengths) == sum(map(len, real))


@given(parts=st.lists(st.text("a\r\n", max_size=4).map(str.encode), min_size=1))
def test_line_ends_that_end_a_document_can_be_left_out_of_its_hash(parts: list[bytes]) -> None:
    blocks = [DocumentBlock([part], complete=False) for part in parts[:-1]]
    blocks.append(DocumentBlock([parts[-1], b"next\n"], complete=True))
    found = survey(blocks, ignored_at_end=b"\r\n")
    content = b"".join(parts)
    real = [document for document in (content, b"next\n") if document]
    hashes = [hashlib.sha256(document.rstrip(b"\r\n")).digest() for document in real]
    assert found.digests.tolist() == [int.from_bytes(digest[:8], "little") for digest in hashes]
    assert found.lengths.tolist() == [len(document) for document in real]


@pytest.mark.parametrize("kind", ["text", "bytes", "abc"])
def test_a_copy_at_the_end_of_a_file_is_on_the_same_side(kind: str, tmp_path: Path) -> None:
    lines = [f"document {number}" for number in range(200)]
    source, copies = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("\n<|doc|>\n".join(lines) + "\n")
    copies.write_text("\n<|doc|>\n".join(reversed(lines)) + "\n")
    chosen = DataSettings(kind=kind, separator="<|doc|>")
    data = prepare(str(source), tmp_path / "out", chosen, heldout=str(copies)).data
    leakage = data.description["leakage"]
    assert isinstance(leakage, dict)
    assert leakage["shared_documents"] == len(lines)


RANDOM = random.Random(0)
WORD_LIST = ["".join(RANDOM.choices("abcdefgh", k=5)) for _ in range(3000)]


def text(words: int) -> str:
    return " ".join(RANDOM.choices(WORD_LIST, k=words))


def leak(
    train: list[str], heldout: list[str], *, unit: int = WORDS, one_in: int = 1
) -> float | None:
    sketches = NgramSketch(unit, one_in), NgramSketch(unit, one_in)
    for sketch, documents in zip(sketches, (train, heldout), strict=True):
        sketch.add(DocumentBlock([document.encode() for document in documents], complete=True))
    share: float | None = sketches[1].leakage(sketches[0], shared_documents=0)["share"]
    return share


def brute_force(train: list[str], heldout: list[str]) -> float | None:
    def ngrams(documents: list[str]) -> list[tuple[str, ...]]:
        split = [document.split() for document in documents]
        return [tuple(w[i : i + 13]) for w in split for i in range(len(w) - 12)]

    known, asked = set(ngrams(train)), ngrams(heldout)
    return sum(ngram in known for ngram in asked) / len(asked) if asked else None


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
        sketch.add(DocumentBlock([words.encode()], complete=True))
    assert len(sketch.hashes) == 8
    found = sketch.leakage(sketch, shared_documents=0)
    assert found["heldout_ngrams"] == found["shared_ngrams"] == 8000


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
    assert 10**9 // 6 // sampling(10**9, WORDS) <= NGRAMS_LOOKED_AT
