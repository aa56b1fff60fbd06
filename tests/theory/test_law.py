"""The law against the numbers that the papers print, and against itself."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.theory.law import ideal_shape, law_width


@pytest.mark.parametrize(
    ("size", "depth", "width"),
    [
        (125e6, 25.6, 638),
        (1.3e9, 42.2, 1603),
        (13e9, 59.8, 4257),
        (175e9, 80.5, 13459),
        (1e12, 94.7, 29657),
    ],
)
def test_levines_table_comes_out_within_half_a_percent(
    size: float, depth: float, width: float
) -> None:
    shape = ideal_shape(size, 50257)
    assert shape.depth == pytest.approx(depth, rel=5e-3)
    assert shape.width == pytest.approx(width, rel=5e-3)


def test_a_pixel_vocabulary_at_100m_gives_the_depth_of_the_sparse_transformer() -> None:
    shape = ideal_shape(1e8, 257)
    assert shape.depth == pytest.approx(126, abs=1)
    assert shape.width == 257


def test_thirty_three_amino_acids_at_650m_ask_for_an_absurd_depth() -> None:
    assert ideal_shape(650e6, 33).depth == pytest.approx(49_700, rel=2e-3)


@given(size=st.floats(4e5, 1e18), limit=st.one_of(st.just(math.inf), st.integers(1, 10**6)))
def test_a_shape_on_the_law_has_the_size_asked_for_and_no_more_width_than_the_law_and_the_limit(
    size: float, limit: float
) -> None:
    shape = ideal_shape(size, limit)
    assert shape.block_params == pytest.approx(size, rel=1e-9)
    assert shape.width <= limit * (1 + 1e-12)
    if shape.depth > 1:
        assert shape.width == pytest.approx(min(law_width(shape.depth), limit), rel=1e-9)


def test_a_budget_below_one_layer_of_the_law_buys_a_narrower_layer() -> None:
    shape = ideal_shape(12 * 50**2)
    assert shape.depth == 1
    assert shape.width == pytest.approx(50)
