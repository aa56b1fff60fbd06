"""What cannot be measured is refused, and what is proved is the best of all bounds."""

from typing import Any

import pytest

from archfit.exact.experiment import degree_bounds, divided, lower_bound, upper_bound
from archfit.theory import quantity
from archfit.theory.catalogue import as_json_value
from tests_experiments import experiment


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"L": 1, "d": 65}, "width=65 is over 64"),
        ({"L": 8, "d": 1}, "depth=8 is over 7"),
        ({"L": 2, "d": 3, "r": 4}, "rank=4 is above width=3"),
        ({"L": 0, "d": 3}, "depth=0 is below 1"),
        ({"L": 1, "d": 2, "V": 10**7}, "vocab=10000000 is over 1,000,000"),
        ({"L": 1, "d": 2, "H": 10**4, "d_a": 10**3}, "heads=10000 of 1000 are over"),
    ],
)
def test_what_cannot_be_measured_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        experiment(**settings)


@pytest.mark.parametrize(
    ("settings", "name", "inputs"),
    [
        ({"L": 2, "d": 3}, "ub_stat_N", {"d_x": 3, "n_P": 2, "n_Q": 2}),
        ({"L": 3, "d": 4, "H": 2, "N": 9}, "ub_stat_N", {"d_x": 4, "n_P": 4, "n_Q": 5}),
        ({"L": 2, "d": 5, "d_a": 1, "N": 10}, "ub_thm1", {"d_x": 5, "H": 1, "d_a": 1}),
        ({"L": 2, "d": 4, "r": 2, "N": 8}, "ub_stat", {"d_x": 2}),
        ({"L": 2, "d": 4, "r": 2, "r_e": 1}, "ub_stat_pos", {"r": 2, "r_e": 1}),
        ({"L": 2, "d": 3, "V": 4, "N": 8}, "ub_stat_vocab", {"V": 4, "r": 3, "n_P": 4, "n_Q": 4}),
    ],
)
def test_the_upper_bound_is_the_one_of_the_theory(
    settings: dict[str, Any], name: str, inputs: dict[str, int]
) -> None:
    found = as_json_value(quantity(name, L=settings["L"], **inputs).value)
    assert upper_bound(experiment(**settings)) == found


def test_a_sum_too_long_for_its_depth_leaves_the_bound_for_any_length() -> None:
    wide = experiment(7, 40, N=40)
    assert str(upper_bound(wide)) == as_json_value(quantity("ub_stat", L=7, d_x=40).value)


def test_bounds_by_degree_add_up_to_the_bound() -> None:
    for L, d, N in ((2, 3, 4), (3, 2, 4), (3, 3, 3), (2, 5, 4)):
        what = experiment(L, d, N=N)
        assert sum(degree_bounds(what)) == upper_bound(what)


def test_one_lower_bound_is_for_any_partition_and_mask() -> None:
    strong = as_json_value(quantity("lb_strong", L=3, d_x=3, H=1).value)
    found = lower_bound(experiment(3, 3, N=4))
    assert found is not None
    assert found >= int(str(strong)) > 1
    assert lower_bound(experiment(3, 3, N=4, side=(0,))) == 16  # lb_sphere
    assert lower_bound(experiment(3, 3, N=4, causal=True)) == 16
    assert lower_bound(experiment(3, 3, N=4, causal=True, output=0)) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"L": 1, "d": 64},
        {"L": 7, "d": 1},
        {"L": 1, "d": 2, "V": 10**6},
        {"L": 1, "d": 2, "H": 10**3, "d_a": 10**3},
        {"L": 2, "d": 3, "r": 3},
        {"L": 2, "d": 3, "N": 4096},
    ],
)
def test_the_largest_that_can_be_asked_for_is_taken(settings: dict[str, Any]) -> None:
    experiment(**settings)


@pytest.mark.parametrize(
    ("positions", "output", "words"),
    [
        (1, 0, "positions=1 cannot be divided; use 2 or more"),
        (4097, 0, "positions=4097 is over 4096"),
        (4, 4, "output position 4 is not in 0..3"),
        (4, -1, "output position -1 is not in 0..3"),
    ],
)
def test_positions_that_cannot_be_divided_are_refused(
    positions: int, output: int, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        divided(positions, (0,), output)


def test_positions_are_divided_with_the_output_on_its_own_side() -> None:
    halves = divided(5, (0, 1), 0)
    assert (halves.inside, halves.outside, halves.output) == ((0, 1), (2, 3, 4), 0)
    last = divided(5, (0, 1), 4)
    assert (last.inside, last.outside, last.output) == ((2, 3, 4), (0, 1), 4)
    chosen = divided(4, (0, 2), 2)
    assert (chosen.inside, chosen.outside, chosen.output) == ((0, 2), (1, 3), 2)


def test_the_degree_of_an_output_is_counted_in_all_that_is_drawn() -> None:
    """Inputs and their table 3^L times each, four weights in each of the (3^L - 1) / 2 products."""
    assert [experiment(L, 2).minor_degree for L in (1, 2, 3)] == [10, 34, 106]


def test_multiplications_are_those_of_the_layers() -> None:
    """d^2 for the first and 2 d^3 + d m + d^2 m // 5 for each other, m = d (d + 1) / 2."""
    for L, d, wanted in ((1, 3, 9), (2, 3, 91), (3, 3, 173), (2, 4, 16 + 128 + 40 + 32)):
        assert experiment(L, d).multiplications == wanted


def test_bounds_over_tokens_count_the_fillings_of_the_smaller_side() -> None:
    assert upper_bound(experiment(7, 20, V=3, N=5, r_e=1)) == 9
    assert upper_bound(experiment(7, 20, V=3, N=4, side=(0,), r_e=1)) == 3


def test_theorem_one_is_asked_only_where_it_can_be_the_least() -> None:
    """(H (d_a + 1))^C of over 18 digits is no rank of a matrix, and costs time to write out."""
    assert upper_bound(experiment(2, 6, d_a=1, H=2, N=12)) == 4**4
    assert upper_bound(experiment(1, 6, d_a=1, N=2)) == 2


def test_whether_order_matters_decides_what_is_listed() -> None:
    plain, placed = experiment(1, 2, V=90, N=4), experiment(1, 2, V=91, N=4, r_e=1)
    assert plain.token_fillings == (90 * 90, 90 * 91 // 2)
    assert placed.token_fillings == (91**2, 91**2)
    assert plain.lists_all
    assert not placed.lists_all
    assert experiment(1, 2, V=90, N=4, r_e=1).lists_all  # 8100 of 8192
    assert not experiment(1, 2).lists_all
    assert experiment(1, 2).token_fillings is None
