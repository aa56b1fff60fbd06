"""Measures in words, and verdicts from intervals."""

import pytest

from archfit.evidence.finding import Measure, Unit, is_above, is_below, lies_above, verdict_of


def measure(
    value: float | None, low: float | None, high: float | None, unit: Unit = "share"
) -> Measure:
    return Measure(what="", at=None, value=value, low=low, high=high, unit=unit, seeds=3)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (measure(0.519, 0.484, 0.553), "51.9 % (48.4 % to 55.3 %)"),
        (measure(0.805, 0.754, None), "80.5 % (75.4 % to …)"),
        (measure(None, 0.75, None), "at least 75.0 %"),
        (measure(None, None, 0.05), "at most 5.0 %"),
        (measure(None, None, None), "unknown"),
        (measure(278, 253, 311, "width"), "278 (253 to 311)"),
        (measure(1.85e6, 1.54e6, 2.33e6, "block parameters"), "1.85M (1.54M to 2.33M)"),
        (measure(-0.0459, -0.0838, -0.008, "nats"), "-0.0459 (-0.0838 to -0.0080)"),
        (measure(4.627, None, None, "number"), "4.627"),
    ],
)
def test_a_measure_says_what_is_known(one: Measure, words: str) -> None:
    assert str(one) == words


def test_an_open_end_lies_beyond_every_limit_on_its_side_only() -> None:
    assert not is_below(measure(0.8, 0.7, None), 0.9)
    assert is_above(measure(0.8, 0.7, None), 0.6)
    assert not is_above(measure(None, None, 0.05), 0.0)


def test_intervals_are_apart_only_where_both_ends_are_known() -> None:
    low, high = measure(0.0, -0.1, 0.0), measure(0.2, 0.1, 0.3)
    assert lies_above(high, low)
    assert not lies_above(low, high)
    assert not lies_above(high, measure(0.0, -0.1, None))
    assert not lies_above(measure(None, None, 0.9), low)


def test_what_is_against_a_finding_outweighs_what_is_for_it() -> None:
    assert verdict_of(confirmed=(True, True), refuted=(False,)) == "confirmed"
    assert verdict_of(confirmed=(True, False), refuted=(False,)) == "undecided"
    assert verdict_of(confirmed=(True, True), refuted=(True,)) == "refuted"
