"""A number with an interval: its ends, what it holds, and what overlaps it."""

import itertools

import pytest

from archfit.spec.estimate import Estimate

ENDS = (None, 1.0, 2.0, 3.0)


def _is_inside(number: float, low: float | None, high: float | None) -> bool:
    return (low is None or number >= low) and (high is None or number <= high)


def _interval(low: float | None, high: float | None) -> Estimate:
    return Estimate(value=None, low=low, high=high)


INTERVALS = [
    (low, high)
    for low, high in itertools.product(ENDS, ENDS)
    if low is None or high is None or low <= high
]


def test_an_interval_holds_its_ends_and_an_open_one_everything_on_that_side() -> None:
    for low, high in INTERVALS:
        for number in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5):
            assert _interval(low, high).contains(number) == _is_inside(number, low, high)


def test_an_interval_lies_above_another_if_and_only_if_every_number_in_it_does() -> None:
    numbers = [quarter / 4 for quarter in range(17)]
    bounded = [(low, high) for low, high in INTERVALS if low is not None and high is not None]
    for first, second in itertools.product(bounded, bounded):
        mine = [n for n in numbers if _is_inside(n, *first)]
        theirs = [n for n in numbers if _is_inside(n, *second)]
        assert _interval(*first).lies_above(_interval(*second)) == (min(mine) > max(theirs))


def test_it_lies_above_or_below_a_number_that_is_not_one_of_its_ends() -> None:
    interval = _interval(1.0, 2.0)
    assert [interval.is_above(limit) for limit in (0.9, 1.0, 1.5)] == [True, False, False]
    assert [interval.is_below(limit) for limit in (1.5, 2.0, 2.1)] == [False, False, True]
    assert not _interval(None, 2.0).is_above(0.0)
    assert not _interval(1.0, None).is_below(9.0)


def test_it_is_bounded_with_both_ends_alone() -> None:
    assert _interval(1.0, 2.0).is_bounded
    assert not _interval(None, 2.0).is_bounded
    assert not _interval(1.0, None).is_bounded


def test_ends_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValueError, match=r"low=2.0 lies above high=1.0; give the lower end first"):
        _interval(2.0, 1.0)
    with pytest.raises(ValueError, match=r"confidence=1.5 is not in 0..1"):
        Estimate(value=1.0, low=0.0, high=2.0, confidence=1.5)
