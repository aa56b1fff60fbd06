"""What cannot be measured is refused, and what is proved is the best of all bounds."""

from typing import Any

import pytest

from archfit.exact.experiment import degree_bounds, lower_bound, upper_bound
from archfit.theory import quantity
from tests_experiments import experiment


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"L": 1, "d": 65}, "width=65 is over 64"),
        ({"L": 8, "d": 1}, "depth=8 is over 7"),
        ({"L": 2, "d": 3, "r": 4}, "rank=4 is above width=3"),
        ({"L": 2, "d": 3, "entry": 3}, r"entry=3 is not in 0\.\.2"),
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
        ({"L": 3, "d": 4, "N": 9}, "ub_stat_N", {"d_x": 4, "n_P": 4, "n_Q": 5}),
        ({"L": 2, "d": 5, "d_a": 1, "N": 10}, "ub_thm1", {"d_x": 5, "H": 1, "d_a": 1}),
        ({"L": 2, "d": 4, "r": 2, "N": 8}, "ub_stat", {"d_x": 2}),
        ({"L": 2, "d": 4, "r": 2, "r_e": 1}, "ub_stat_pos", {"r": 2, "r_e": 1}),
        ({"L": 2, "d": 3, "V": 4, "N": 8}, "ub_stat_vocab", {"V": 4, "r": 3, "n_P": 4, "n_Q": 4}),
    ],
)
def test_the_upper_bound_is_the_one_of_the_theory(
    settings: dict[str, Any], name: str, inputs: dict[str, int]
) -> None:
    found = quantity(name, L=settings["L"], **inputs).as_json()["value"]
    assert upper_bound(experiment(**settings)) == found


def test_a_sum_too_long_for_its_depth_leaves_the_bound_for_any_length() -> None:
    wide = experiment(7, 40, N=40)
    assert str(upper_bound(wide)) == quantity("ub_stat", L=7, d_x=40).as_json()["value"]


def test_bounds_by_degree_add_up_to_the_bound() -> None:
    for L, d, N in ((2, 3, 4), (3, 2, 4), (3, 3, 3), (2, 5, 4)):
        what = experiment(L, d, N=N)
        assert sum(degree_bounds(what)) == upper_bound(what)


def test_lower_bounds_are_for_balanced_partitions_without_a_mask() -> None:
    strong = quantity("lb_strong", L=3, d_x=3, H=1).as_json()["value"]
    found = lower_bound(experiment(3, 3, N=4))
    assert found is not None
    assert found >= int(str(strong)) > 1
    assert lower_bound(experiment(3, 3, N=4, side=(0,))) is None
    assert lower_bound(experiment(3, 3, N=4, causal=True)) is None
