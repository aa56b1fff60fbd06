"""Shapes that can be built: on the grid, within the budget's reach, near the depth wanted."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.advise.budgets import Budget
from archfit.advise.ladder import LadderRun, knowledge
from archfit.advise.plan_request import PlanOptions
from archfit.advise.prior import family_prior
from archfit.advise.shapes import (
    LEAST_WIDTH,
    BudgetTooSmall,
    best_shape,
    shape_of_depth,
    usual_head_dim,
)
from archfit.spec import standard_architecture
from tests_plans import question


@given(
    size=st.integers(10**6, 10**12),
    multiple=st.sampled_from([None, 2, 8]),
    wanted=st.floats(1, 40),
    deepest=st.integers(12, 200),
)
def test_a_shape_is_on_the_grid_and_close_in_size_and_depth(
    size: int, multiple: int | None, wanted: float, deepest: int
) -> None:
    asked = question(size, max_depth=deepest, multiple_of=multiple)
    shape = shape_of_depth(asked, wanted)
    assert shape.width % (multiple or 2) == 0
    assert shape.heads * shape.head_dim == shape.width
    near = min(wanted, deepest)
    assert shape.depth <= deepest
    assert shape.depth == pytest.approx(near, abs=max(0.75, 0.15 * wanted))
    if math.sqrt(size / (12 * near)) > 16 * (multiple or 2):
        assert shape.block_params == pytest.approx(size, rel=0.05)


def test_a_width_is_a_multiple_that_was_asked_for() -> None:
    for multiple in (3, 48, 256):
        assert best_shape(question(10**8, multiple_of=multiple)).shape.width % multiple == 0


@pytest.mark.parametrize(
    ("width", "head_dim"),
    [
        (768, 64),
        (1024, 128),
        (1088, 64),
        (96, 48),
        (64, 64),
        (8, 8),
        (7, 7),
        (33 * 35, 55),
        (257, 257),
    ],
)
def test_heads_are_of_the_sizes_that_hardware_likes(width: int, head_dim: int) -> None:
    assert usual_head_dim(width) == head_dim


def test_rotary_positions_have_heads_of_an_even_size() -> None:
    assert usual_head_dim(2 * 55, is_even=False) % 2 == 1
    assert usual_head_dim(2 * 55, is_even=True) % 2 == 0


def test_the_smallest_layer_is_bought_by_what_it_costs_and_not_for_less() -> None:
    one_layer = 12 * LEAST_WIDTH**2
    shape = best_shape(question(one_layer)).shape
    assert (shape.depth, shape.width) == (1, LEAST_WIDTH)
    words = rf"{one_layer - 1:,} block parameters does not pay for .* width 16; use a larger budget"
    with pytest.raises(BudgetTooSmall, match=words):
        best_shape(question(one_layer - 1))


def test_a_multiple_of_the_width_that_the_budget_does_not_pay_for_is_refused() -> None:
    asked = question(Budget(kind="params", amount=30_000), vocab=5, multiple_of=128)
    with pytest.raises(BudgetTooSmall, match="one layer of width 128"):
        best_shape(asked)


def test_a_table_that_alone_exceeds_the_budget_is_refused() -> None:
    asked = question(
        Budget(kind="params", amount=10**6), vocab=50257, rank=100
    )  # no width makes it smaller
    with pytest.raises(BudgetTooSmall, match="does not pay for one layer"):
        best_shape(asked)


def test_parts_add_up_to_the_parameters_of_the_trained_network() -> None:
    asked = question(10**7, vocab=2000)
    found = best_shape(asked)
    shape = found.shape
    trained = standard_architecture(
        depth=shape.depth, width=shape.width, heads=shape.heads, vocab=2000, context=1024
    )
    assert found.params.total == trained.params
    assert found.params.blocks == trained.block_params
    assert found.params.embedding == trained.embedding_params


def test_the_depth_allowed_is_kept_to() -> None:
    free, capped = (best_shape(question(10**8, max_depth=deepest)) for deepest in (128, 6))
    assert capped.shape.depth <= 6 < free.shape.depth
    assert capped.shape.width > free.shape.width
    assert capped.outlook.high <= 6


def test_below_the_least_size_that_was_fitted_depths_are_those_of_it() -> None:
    known = family_prior(None)
    tiny, least = (known.outlook(size, 8.0) for size in (30_000, 250_000))
    assert tiny.depth == least.depth
    assert best_shape(question(Budget(kind="params", amount=30_000), vocab=30)).shape.depth <= 4


def test_no_depth_leaves_less_than_twice_its_width_however_much_better_it_may_be() -> None:
    runs = [
        LadderRun(size=size, depth=depth, seed=0, params=size, bits=4.0 - math.log(depth))
        for size in (250_000, 500_000)
        for depth in (1, 2, 4, 8, 16, 32)
    ]
    known = knowledge(family_prior(None), runs)
    shape = best_shape(question(Budget(kind="params", amount=250_000), vocab=30), known).shape
    assert shape.depth > 8
    assert 1.8 * shape.depth <= shape.width <= 3 * shape.depth


def test_tables_do_not_count_as_network_where_they_are_most_of_it() -> None:
    found = best_shape(question(Budget(kind="params", amount=10**7), vocab=50257))
    assert found.params.blocks < found.params.total / 2
    assert found.size < found.params.total / 2


@pytest.mark.parametrize("room", [4_000_000, 16_000_000, 500_000_000])
def test_weights_fit_the_room_they_are_given(room: int) -> None:
    request = PlanOptions(bytes=room, vocab=257, context=256).request()
    found = best_shape(request)
    assert 0.9 * room < 2 * found.params.total <= room
