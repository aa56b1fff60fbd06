"""What a kind takes, what it chooses itself, and what it refuses."""

import pytest

from archfit.exact.witness import KINDS, WitnessRequest, recipe_for
from archfit.exact.witness_embedded import (
    ConvolutionRecipe,
    LongVocabularyRecipe,
    VocabularyRecipe,
)
from archfit.exact.witness_network import NetworkShape
from archfit.exact.witness_weights import BaseRecipe, MonomialRecipe, SimplifiedRecipe

SIZES = {"depth": 3, "width": 6, "heads": 2}


def _recipe(kind: str, **sizes: int) -> object:
    return recipe_for(WitnessRequest(kind=kind, **(SIZES | sizes)))  # type: ignore[arg-type]  # plan is no size


def _shape(positions: int) -> NetworkShape:
    return NetworkShape(**SIZES, positions=positions)


def test_sizes_left_out_are_the_smallest_that_do_and_the_largest_rank() -> None:
    assert _recipe("base") == BaseRecipe(shape=_shape(4))
    assert _recipe("simplified") == SimplifiedRecipe(shape=_shape(4))
    assert _recipe("convolution") == ConvolutionRecipe(
        shape=_shape(4), embedding_rank=6, patch=2, channels=3
    )
    assert _recipe("vocabulary") == VocabularyRecipe(shape=_shape(4), embedding_rank=6, vocab=9)
    long = LongVocabularyRecipe(shape=_shape(20), embedding_rank=7, vocab=5)
    assert _recipe("vocabulary-long") == long
    monomial = _recipe("monomial")
    assert isinstance(monomial, MonomialRecipe)
    assert monomial.shape == _shape(4)


def test_sizes_given_are_kept() -> None:
    given = _recipe("convolution", rank=4, patch=1, channels=5, positions=8)
    expected = ConvolutionRecipe(shape=_shape(8), embedding_rank=4, patch=1, channels=5)
    assert given == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"width": 7}, r"heads=2 do not divide width=7.*; use width=8"),
        ({"positions": 5}, r"positions=5 is odd.*; use 6"),
        ({"depth": 0}, r"depth=0 is not in"),
        ({"depth": 61}, r"depth=61 is over the 60 layers .*; use depth <= 60"),
        ({"depth": 10**6, "width": 3 * 10**8, "heads": 10**8}, "is over the 60 layers"),
        ({"depth": 2, "width": 3 * 10**8, "heads": 10**8}, r"; use "),
    ],
)
def test_no_kind_takes_sizes_that_make_no_network(
    kind: str, sizes: dict[str, int], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        _recipe(kind, **sizes)


@pytest.mark.parametrize(
    ("kind", "sizes", "sentence"),
    [
        ("base", {"depth": 1}, "use depth >= 2"),
        ("simplified", {"depth": 1}, "use depth >= 2"),
        ("base", {"width": 8}, "heads of dimension 4, .*; use width=10, or the simplified kind"),
        ("base", {"width": 2}, "heads of dimension 1, .*; use width=6"),
        ("vocabulary", {"width": 8}, "heads of dimension 4"),
        ("simplified", {"heads": 6}, "use width=12, or the monomial kind"),
        ("vocabulary", {"rank": 3}, "leaves no coordinate .*; use 4 or more"),
        ("convolution", {"rank": 7}, "no more than width=6"),
        ("vocabulary-long", {"rank": 4}, "use embedding_rank >= 5"),
        ("vocabulary-long", {"rank": 9}, "; use 7 or less"),
        ("vocabulary-long", {"positions": 18}, "use positions=20 or more"),
        ("vocabulary", {"vocab": 8}, "use vocab=9"),
        ("vocabulary", {"vocab": 10**9}, "use vocab=9"),
        ("vocabulary-long", {"vocab": 4}, "use vocab=5"),
        ("convolution", {"patch": 4, "channels": 1}, "use channels=2"),
        ("convolution", {"patch": 10**6}, "6 are enough"),
        ("convolution", {"patch": 0}, "patch=0 is below 1"),
        ("monomial", {"positions": 2}, "use positions=4 or more"),
        ("monomial", {"entry": 2}, "entry=2 is not in 0..1"),
        ("monomial", {"width": 400, "heads": 400}, "multiplications .* for one entry"),
        ("simplified", {"positions": 2000}, "multiplications .* for one entry"),
        ("simplified", {"depth": 6, "width": 64}, r"of about 10\^\d+ rows .*use depth <= 2"),
        ("simplified", {"depth": 9, "width": 4}, "2188 rows .*use depth <= 8"),
        ("simplified", {"depth": 2, "width": 6000}, "use 2000 or fewer free coordinates"),
        ("simplified", {"vocab": 5}, "takes no vocab; use --kind vocabulary or vocabulary-long"),
        ("base", {"entry": 0}, "takes no entry; use --kind monomial"),
        ("wide", {}, "kind='wide' is unknown; use one of base, simplified"),
    ],
)
def test_a_refusal_names_what_would_fit(kind: str, sizes: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _recipe(kind, **sizes)
