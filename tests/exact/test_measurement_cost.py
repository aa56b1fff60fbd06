"""What is refused before it starts, and whether what is offered instead is true."""

import re
from dataclasses import replace
from typing import Any

import pytest

from archfit.exact.experiment import upper_bound
from archfit.exact.measure import check_cost, estimate, part_sizes
from tests_experiments import experiment

DAY = 86_400.0


def refusal(settings: dict[str, Any], seconds: float, gigabytes: float) -> str:
    with pytest.raises(ValueError, match="would take about") as caught:
        check_cost(experiment(**settings), "cpu", seconds=seconds, gigabytes=gigabytes)
    return str(caught.value)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_estimates_grow_with_depth_width_and_positions(device: str) -> None:
    pairs: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
        ({"L": 2, "d": 3}, {"L": 3, "d": 3}),
        ({"L": 3, "d": 3}, {"L": 3, "d": 4}),
        ({"L": 3, "d": 4, "N": 2}, {"L": 3, "d": 4, "N": 8}),
        ({"L": 2, "d": 3, "V": 3, "N": 4}, {"L": 2, "d": 3, "V": 3, "N": 8}),
        ({"L": 2, "d": 3, "causal": True}, {"L": 2, "d": 3, "causal": True, "N": 400}),
    )
    for smaller, larger in pairs:
        one, other = (estimate(experiment(**sizes), device) for sizes in (smaller, larger))
        assert one.seconds < other.seconds
        assert one.gigabytes <= other.gigabytes


@pytest.mark.parametrize(
    "settings", [{"L": 3, "d": 6}, {"L": 4, "d": 4}, {"L": 2, "d": 30, "N": 60}]
)
@pytest.mark.parametrize(("seconds", "gigabytes"), [(60.0, 16.0), (DAY, 0.2)])
def test_the_width_that_is_said_to_fit_fits_and_the_next_does_not(
    settings: dict[str, Any], seconds: float, gigabytes: float
) -> None:
    offered = re.search(r"--width (\d+) fits", refusal(settings, seconds, gigabytes))
    assert offered is not None
    width = int(offered[1])
    check_cost(experiment(**settings | {"d": width}), "cpu", seconds=seconds, gigabytes=gigabytes)
    assert str(width) in refusal(settings | {"d": width + 1}, seconds, gigabytes)


def test_where_no_width_fits_that_is_not_offered() -> None:
    assert "use less depth" in refusal({"L": 3, "d": 3}, 1e-9, 16)
    assert "fits" not in refusal({"L": 2, "d": 3, "V": 3, "N": 60}, 1e-9, 16)


def test_a_width_is_not_offered_where_tokens_cost_the_time() -> None:
    costly: dict[str, Any] = {"L": 4, "d": 6, "V": 3, "N": 60}
    one = estimate(experiment(**costly | {"d": 1}), "cpu")
    assert "use less depth or fewer tokens" in refusal(costly, 2 * one.seconds, 2 * one.gigabytes)


def test_sizes_beyond_all_measure_are_refused_in_words() -> None:
    words = refusal({"L": 7, "d": 64, "N": 200}, 600, 16)
    assert "a million or more GB" in words
    assert len(words) < 200


def test_a_limit_that_is_met_says_nothing() -> None:
    what = experiment(2, 3)
    cost = estimate(what, "cpu")
    check_cost(what, "cpu", seconds=cost.seconds, gigabytes=cost.gigabytes)
    with pytest.raises(ValueError, match="would take about"):
        check_cost(what, "cpu", seconds=cost.seconds, gigabytes=0.999 * cost.gigabytes)
    assert replace(cost, seconds=0.0).gigabytes == pytest.approx(1.6 * 8 * 55**2 / 1e9)


@pytest.mark.parametrize(
    ("device", "pair", "column", "cube"),
    [("cpu", 1.3e-9, 6e-5, 4e-11), ("cuda", 1.5e-11, 1.3e-4, 8e-14)],
)
def test_the_time_is_that_of_evaluating_pairs_and_clearing_columns(
    device: str, pair: float, column: float, cube: float
) -> None:
    """49 + 6 samples; 9 multiplications and 2 * 27 + 3 * 6 + 9 * 6 // 5 for the second layer; six
    times, for one small prime and two large ones that take 2.5 as long."""
    one = 55**2 * (9 + 82) * pair + 55 * column + 55**3 * cube
    assert estimate(experiment(2, 3), device).seconds == pytest.approx(6 * one)


def test_under_a_mask_every_position_from_the_second_run_to_the_output_is_evaluated() -> None:
    """Four of a prefix are not run for every pair; those at 4 and 5 are."""
    what = experiment(2, 3, N=8, causal=True, output=5)
    samples = upper_bound(what) + 6
    pairs, columns = samples**2 * 2 * 91 * 1.3e-9, samples * 6e-5 + samples**3 * 4e-11
    cost = estimate(what, "cpu")
    assert cost.seconds == pytest.approx(6 * (pairs + columns))
    assert cost.gigabytes == pytest.approx(1.6 * 8 * samples**2 / 1e9)


def test_tokens_take_as_many_samples_as_there_are_fillings() -> None:
    """Three tokens on two positions: 3 * 3 with the output's own, 6 without."""
    cost = estimate(experiment(2, 3, V=3), "cpu")
    assert cost.gigabytes == pytest.approx(1.6 * 8 * 9 * 6 / 1e9)
    clearing = 6 * 6e-5 + 9 * 6 * 6 * 4e-11
    assert cost.seconds == pytest.approx(6 * (9 * 6 * 91 * 1.3e-9 + clearing))
    many = estimate(experiment(2, 3, V=1000), "cpu")
    assert many.gigabytes == pytest.approx(1.6 * 8 * 8192**2 / 1e9)


def test_parts_by_degree_take_the_memory_of_all_and_the_time_of_the_largest() -> None:
    """Depth 7 of width 1 has 1094 parts of rank 1, with 6 samples more."""
    cost = estimate(experiment(7, 1, N=2), "cpu")
    assert cost.gigabytes == pytest.approx(8 * (1094 + 0.6) * 49 / 1e9)
    work = 1 + 6 * 3  # one coordinate: 2 + 1 + 0 a layer after the first
    pairs = 49 * 1094 * work * 1.3e-9
    assert cost.seconds == pytest.approx(6 * (pairs + 1094 * (7 * 6e-5 + 7**3 * 4e-11)))


def test_parts_are_worth_their_while_from_a_thousand_samples_on() -> None:
    what = experiment(7, 1, N=2)
    assert part_sizes(what, 1000) == ()
    assert part_sizes(what, 1001) == (7,) * 1094
    for more in ({"residual": True}, {"r_e": 1}, {"V": 3}):
        assert part_sizes(experiment(7, 1, N=2, **more), 10**6) == ()
