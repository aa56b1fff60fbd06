"""Least squares of many curves at once, against one at a time by other programs."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from archfit.fit.curves import (
    CUBIC,
    POWER,
    QUADRATIC,
    QUARTIC,
    QUINTIC,
    CurveForm,
    bend,
    fit_form,
    values,
)

RANDOM = np.random.default_rng(0)
U = np.array([-1.5, -1.1, -0.4, 0.1, 0.5, 1.0, 1.4])
WEIGHTS = np.array([3.0, 2.0, 3.0, 5.0, 1.0, 3.0, 3.0])


@pytest.mark.parametrize(
    ("form", "degree"), [(QUADRATIC, 2), (CUBIC, 3), (QUARTIC, 4), (QUINTIC, 5)]
)
def test_polynomials_are_those_of_numpy(form: CurveForm, degree: int) -> None:
    losses = 3 + RANDOM.normal(size=(5, len(U)))
    rows, left = fit_form(form, U, losses, WEIGHTS)
    for row, squares, own in zip(rows, left, losses, strict=True):
        expected = np.polynomial.Polynomial.fit(U, own, degree, w=np.sqrt(WEIGHTS)).convert()
        assert values(row[None], U)[0] == pytest.approx(expected(U))
        assert squares == pytest.approx(((own - expected(U)) ** 2 * WEIGHTS).sum())


@pytest.mark.parametrize("alpha", [-0.3, 0.0, 0.05, 0.2, 0.5, 1.3])
def test_the_power_law_is_that_of_a_general_optimiser(alpha: float) -> None:
    losses = 3 - 0.1 * bend(np.array([alpha]), U) + 1e-3 * RANDOM.normal(size=(4, len(U)))
    rows, left = fit_form(POWER, U, losses, WEIGHTS)
    for row, squares, own in zip(rows, left, losses, strict=True):

        def misses(p: np.ndarray, own: np.ndarray = own) -> np.ndarray:
            return (p[0] + p[1] * bend(p[2:3], U) - own) * np.sqrt(WEIGHTS)  # type: ignore[no-any-return]

        best = least_squares(misses, [3, -0.1, alpha], xtol=1e-15, ftol=1e-15, gtol=1e-15)
        assert squares == pytest.approx(2 * best.cost, rel=1e-9)
        assert row[2] == pytest.approx(best.x[2], abs=1e-6)


def test_a_power_law_without_noise_is_found_exactly() -> None:
    losses = 1.7 + 1.3 * np.exp(-0.17 * U)
    rows, left = fit_form(POWER, U, losses[None], WEIGHTS)
    level, slope, alpha = rows[0, :3]
    assert alpha == pytest.approx(0.17, rel=1e-12)
    assert level + slope / alpha == pytest.approx(1.7, rel=1e-6)
    assert left[0] < 1e-15


@pytest.mark.parametrize(
    ("alpha", "found"), [(-0.45, -0.45), (-0.42, -0.42), (1.95, 1.95), (2.5, 2), (-1, -0.5)]
)
def test_exponents_end_at_a_half_below_zero_and_at_two(alpha: float, found: float) -> None:
    losses = 3 - 0.1 * bend(np.array([alpha]), U)
    rows, _ = fit_form(POWER, U, losses[None], WEIGHTS)
    assert rows[0, 2] == pytest.approx(found, rel=1e-12)
