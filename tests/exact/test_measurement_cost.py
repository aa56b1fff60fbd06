"""What is refused before it starts, and whether what is offered instead is true."""

import re
from dataclasses import replace
from typing import Any

import pytest

from archfit.exact.measure import FIRST_SAMPLES, check_cost, estimate, most_samples
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


def test_sizes_beyond_all_measure_are_refused_in_words() -> None:
    words = refusal({"L": 7, "d": 64, "N": 200}, 600, 16)
    assert "a million or more GB" in words
    assert len(words) < 200


def test_samples_may_be_doubled_as_far_as_the_limit_goes() -> None:
    what = experiment(2, 3, causal=True)
    few, more = (most_samples(what, "cpu", seconds=s, gigabytes=16) for s in (1.0, 60.0))
    assert FIRST_SAMPLES <= few < more
    assert most_samples(what, "cpu", seconds=1e-9, gigabytes=16) == FIRST_SAMPLES


def test_a_limit_that_is_met_says_nothing() -> None:
    what = experiment(2, 3)
    cost = estimate(what, "cpu")
    check_cost(what, "cpu", seconds=cost.seconds, gigabytes=cost.gigabytes)
    with pytest.raises(ValueError, match="would take about"):
        check_cost(what, "cpu", seconds=cost.seconds, gigabytes=0.999 * cost.gigabytes)
    assert replace(cost, seconds=0.0).gigabytes == pytest.approx(1.6 * 8 * 55**2 / 1e9)
