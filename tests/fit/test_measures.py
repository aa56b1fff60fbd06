"""Measures in words, and verdicts from intervals."""

import pytest

from archfit.fit.evidence import Measure, Unit, verdict_of, within
from archfit.spec.estimate import Estimate


def measure(
    value: float | None, low: float | None, high: float | None, unit: Unit = "share"
) -> Measure:
    estimate = Estimate(value=value, low=low, high=high)
    return Measure(what="", estimate=estimate, unit=unit, seeds=3)


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


def test_what_is_against_a_finding_outweighs_what_is_for_it() -> None:
    assert verdict_of(confirmed=(True, True), refuted=(False,)) == "confirmed"
    assert verdict_of(confirmed=(True, False), refuted=(False,)) == "undecided"
    assert verdict_of(confirmed=(True, True), refuted=(True,)) == "refuted"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.9, 0.9, "confirmed"),
        (-1.1, 0.9, "undecided"),
        (1.1, 1.2, "refuted"),
        (-3.0, -1.1, "refuted"),
        (None, 0.9, "undecided"),
        (None, -1.1, "refuted"),
    ],
)
def test_a_band_holds_an_interval_or_not(low: float | None, high: float, verdict: str) -> None:
    assert within([measure(None, low, high)], [(-1.0, 1.0)]) == verdict
