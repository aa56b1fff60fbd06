"""Searches by halves, against looking everywhere."""

import math

import pytest

from archfit.spec.search import bisect_rising, first_whole


@pytest.mark.parametrize("low", [-3, 0, 4])
@pytest.mark.parametrize("size", range(6))
def test_the_first_whole_number_is_found_wherever_it_is(low: int, size: int) -> None:
    for first in range(low, low + size + 1):
        assert first_whole(lambda number, first=first: number >= first, low, low + size) == first  # type: ignore[misc]  # a default binds the loop's number


def test_a_whole_number_that_never_holds_is_the_last() -> None:
    assert first_whole(lambda _: False, 2, 9) == 9


def test_a_large_range_takes_few_steps() -> None:
    asked: list[int] = []

    def is_seven_or_more(number: int) -> bool:
        asked.append(number)
        return number >= 7

    assert first_whole(is_seven_or_more, 0, 2**60) == 7
    assert len(asked) <= 60


def test_a_root_is_found_to_the_last_bit() -> None:
    found = bisect_rising(lambda x: x * x, 2.0, 0.0, 2.0)
    below = math.nextafter(found, 0.0)
    assert below * below < 2.0 <= found * found


def test_a_goal_out_of_reach_is_the_upper_end_and_one_already_met_the_lower() -> None:
    assert bisect_rising(lambda x: x, 9.0, 0.0, 2.0) == 2.0
    assert bisect_rising(lambda x: x, -9.0, 1.0, 2.0) == math.nextafter(1.0, 2.0)
