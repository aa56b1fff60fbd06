"""Curves: how much each form counts, when noise is more than seeds explain, and what is drawn."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from archfit.fit.cells import cells_of, families_of
from archfit.fit.curves import (
    CUBIC,
    POWER,
    QUADRATIC,
    QUARTIC,
    QUINTIC,
    RESAMPLES,
    Curve,
    CurveForm,
    curve_of,
    form_weights,
    generator,
    scales,
    variance_inflation,
)
from archfit.fit.noise import noise_of
from tests_curves import MIDDLE, power_law, shape, simulated, widths

FORMS = (POWER, QUADRATIC, CUBIC, QUARTIC)


def curve(sizes: int, std: float = 1e-3, seed: int = 0) -> Curve:
    """A power law that was measured at so many sizes."""
    law = power_law(2.0, 1.0, 0.2)
    shapes = [shape(6, width) for width in widths(6, 1e6, 1e7, sizes)]
    random = np.random.default_rng(seed)
    records = simulated(
        shapes, lambda a: law(math.log(a.block_params)), std=std, seeds=3, random=random
    )
    (family,) = families_of(cells_of(records))
    (noise,) = noise_of(family.cells)
    return curve_of(family, noise)


@pytest.mark.parametrize("misfits", [(4.0, 4.0, 4.0, 4.0), (9.0, 5.0, 4.9, 0.5), (40, 3, 2, 1)])
def test_with_a_variance_that_is_known_forms_count_by_akaikes_criterion(
    misfits: Sequence[float],
) -> None:
    """AIC = chi^2 + 2 k; a form counts e^(-AIC / 2)."""
    criterion = [misfit + 2 * form.free for misfit, form in zip(misfits, FORMS, strict=True)]
    likely = np.exp(-np.array(criterion) / 2)
    found = form_weights(misfits, FORMS, sizes=9, degrees=10**9)
    assert found == pytest.approx(likely / likely.sum(), rel=1e-6)


def test_a_variance_from_few_seeds_forgives_a_misfit_as_a_t_distribution_does() -> None:
    """With nu degrees the likelihood falls as (1 + chi^2 / nu)^-((nu + n - k) / 2)."""
    first, second = form_weights((2.0, 11.0), (QUADRATIC, CUBIC), sizes=7, degrees=6)
    ratio = (1 + 11 / 6) ** -((6 + 7 - 4) / 2) / (1 + 2 / 6) ** -((6 + 7 - 3) / 2) * math.exp(-1)
    assert second / first == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("sizes", "forms"),
    [
        (3, (POWER, QUADRATIC)),
        (5, (POWER, QUADRATIC)),
        (6, (POWER, QUADRATIC, CUBIC)),
        (7, (POWER, QUADRATIC, CUBIC)),
        (8, (POWER, QUADRATIC, CUBIC, QUARTIC)),
        (9, (POWER, QUADRATIC, CUBIC, QUARTIC)),
        (10, (POWER, QUADRATIC, CUBIC, QUARTIC, QUINTIC)),
    ],
)
def test_forms_take_part_where_there_are_sizes_to_tell_them(
    sizes: int, forms: tuple[CurveForm, ...]
) -> None:
    assert curve(sizes).fits.forms == forms


def test_a_form_takes_part_in_as_many_resamples_as_it_counts() -> None:
    """Rows of a power law have no higher powers of u, those of a cubic have a third."""
    found = curve(6)
    by_form = dict(zip(found.fits.forms, found.fits.weights, strict=True))
    assert math.fsum(found.fits.weights) == pytest.approx(1)
    cubic = (found.draws[:, 4] != 0).sum()
    power = ((found.draws[:, 3] == 0) & (found.draws[:, 4] == 0)).sum()
    assert cubic == pytest.approx(by_form[CUBIC] * RESAMPLES, abs=1)
    assert power == pytest.approx(by_form[POWER] * RESAMPLES, abs=1)


def test_the_mean_is_that_of_the_forms_and_the_band_holds_nine_of_ten_resamples() -> None:
    found = curve(6)
    levels = [float(row[0]) for row in found.fits.rows]  # at u = 0 nothing else is left
    mean = math.fsum(w * level for w, level in zip(found.fits.weights, levels, strict=True))
    assert float(found.mean(np.array([found.middle]))[0]) == pytest.approx(mean)
    at = np.array([MIDDLE])
    (low,), (high,) = found.band(at)
    drawn = found.resampled(at)[:, 0]
    assert ((low <= drawn) & (drawn <= high)).mean() == pytest.approx(0.9, abs=1e-3)
    assert low < 3.0 < high


def test_misfits_that_seeds_explain_inflate_nothing_and_others_by_their_ratio() -> None:
    """An F test of 1 %: the squares left of the best form, for each degree of freedom it has."""
    limit = brentq(lambda ratio: stats.f.sf(ratio, 4, 14) - 0.01, 1, 100)
    below, above = 4 * limit * 0.999, 4 * limit * 1.001
    forms = (QUADRATIC, CUBIC)
    assert variance_inflation([below, 1e9], forms, sizes=7, degrees=14) == (1.0, 14)
    inflation, degrees = variance_inflation([above, 1e9], forms, sizes=7, degrees=14)
    assert (inflation, degrees) == pytest.approx((limit * 1.001, 4))
    assert variance_inflation([1e9, 60.0], forms, sizes=7, degrees=14) == (20.0, 3)


def test_as_many_sizes_as_free_numbers_cannot_misfit() -> None:
    assert variance_inflation([5.0, 7.0], (POWER, QUADRATIC), sizes=3, degrees=6) == (1.0, 6)


def test_scales_are_those_of_a_variance_from_so_many_degrees() -> None:
    drawn = scales("x", 5)
    for share in (0.1, 0.5, 0.9):
        expected = math.sqrt(5 / stats.chi2.ppf(1 - share, 5))
        assert float((drawn < expected).mean()) == pytest.approx(share, abs=0.03)


def test_random_numbers_depend_on_the_name_alone() -> None:
    first = generator("a").random(3).tolist()
    assert first == generator("a").random(3).tolist()
    assert first != generator("b").random(3).tolist()
