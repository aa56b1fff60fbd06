import hashlib
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data.blocks import Block
from archfit.data.split import BY_HASH, BY_TAILS, Divider, split_places
from archfit.data.survey import Nothing, Survey, survey


def surveyed(documents: list[bytes]) -> Survey:
    return survey([Block(documents, complete=True)], Nothing())


def divided(blocks: list[Block], places: np.ndarray, unit: int) -> tuple[list[bytes], list[bytes]]:
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
    assert divider.train.documents == len(sides[0]) - 1
    assert divider.heldout.bytes == len(b"".join(sides[1]))
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
        blocks += [Block([piece], complete=False) for piece in pieces]
        blocks.append(Block([rest], complete=True))
    train, heldout = divided(blocks, np.array(places), unit)
    good = [place - place % unit for place in places]
    whole = zip(documents, good, strict=True)
    expected = [(document[:place], document[place:]) for document, place in whole]
    assert train == [head for head, _ in expected if head]
    assert heldout == [tail for _, tail in expected if tail]


DOCUMENTS = [f"document number {number}".encode() for number in range(2000)]


def test_one_document_in_twenty_is_held_out_by_its_hash() -> None:
    places, rule = split_places(surveyed(DOCUMENTS))
    first_bytes = [hashlib.sha256(document).digest()[:8] for document in DOCUMENTS]
    held = [int.from_bytes(one, "little") % 20 == 0 for one in first_bytes]
    assert rule == BY_HASH
    assert (places == 0).tolist() == held
    assert 60 < sum(held) < 140


def test_a_document_lands_on_the_same_side_in_any_company() -> None:
    def held(documents: list[bytes]) -> set[bytes]:
        places, _ = split_places(surveyed(documents))
        return {one for one, place in zip(documents, places, strict=True) if place == 0}

    mixed = random.Random(0).sample(DOCUMENTS, 700)
    assert held(mixed + mixed) == held(DOCUMENTS) & set(mixed)


@pytest.mark.parametrize("documents", [DOCUMENTS[:99], [b"always the same one"] * 200])
def test_few_documents_or_one_sided_ones_lose_their_tails(documents: list[bytes]) -> None:
    places, rule = split_places(surveyed(documents))
    assert rule == BY_TAILS
    assert places.tolist() == [len(one) - len(one) // 20 for one in documents]
