"""Rounded shapes: on the grid, within the budget's reach, near the ideal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.advise.plan_request import TotalParams
from archfit.advise.shapes import ideal_for, parts, rounded_for, usual_head_dim
from archfit.spec import standard_architecture
from tests_plans import question


@given(
    size=st.integers(10**6, 10**12),
    vocab=st.integers(2, 10**6),
    multiple=st.sampled_from([None, 8, 64, 128]),
    deepest=st.integers(12, 200),
)
def test_a_rounded_shape_is_on_the_grid_and_close_in_size(
    size: int, vocab: int, multiple: int | None, deepest: int
) -> None:
    asked = question(size, vocab=vocab, max_depth=deepest, multiple_of=multiple)
    shape = rounded_for(asked, ideal_for(asked, asked.limit.limit))
    assert shape.width % (multiple or 8) == 0
    assert shape.heads * shape.head_dim == shape.width
    assert shape.depth <= deepest
    assert 0.6 < shape.block_params / size < 1.6
    if size > 10**8:
        assert 0.85 < shape.block_params / size < 1.15


@pytest.mark.parametrize(
    ("width", "head_dim"),
    [
        (768, 64),
        (1024, 128),
        (1088, 64),
        (96, 32),
        (64, 32),
        (8, 8),
        (7, 7),
        (33 * 35, 55),
        (257, 257),
    ],
)
def test_heads_are_of_the_sizes_that_hardware_likes(width: int, head_dim: int) -> None:
    assert usual_head_dim(width) == head_dim


@pytest.mark.parametrize("size", [300, 12 * 8**2 - 1])
def test_a_budget_below_one_layer_is_refused_with_the_way_out(size: int) -> None:
    asked = question(size, vocab=257)
    with pytest.raises(ValueError, match="does not pay for one layer of width 8"):
        rounded_for(asked, ideal_for(asked, 257))


def test_the_smallest_layer_is_bought_by_what_it_costs() -> None:
    asked = question(12 * 8**2)
    shape = rounded_for(asked, ideal_for(asked, 257))
    assert (shape.depth, shape.width) == (1, 8)


def test_a_table_that_alone_exceeds_the_budget_is_refused() -> None:
    asked = question(TotalParams(params=10**6), vocab=50257, rank=100)  # no width makes it smaller
    with pytest.raises(ValueError, match="does not pay for one layer"):
        rounded_for(asked, ideal_for(asked, 100))


def test_parts_add_up_to_the_parameters_of_the_trained_network() -> None:
    asked = question(10**7, vocab=2000)
    shape = rounded_for(asked, ideal_for(asked, 2000))
    counted = parts(asked, shape)
    trained = standard_architecture(
        depth=shape.depth, width=shape.width, heads=shape.heads, vocab=2000, context=1024
    )
    assert counted.total == trained.params
    assert counted.blocks == trained.block_params
    assert counted.embedding == trained.embedding_params
