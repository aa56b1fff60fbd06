"""The loss of a family as a curve over size, with what else it may be.

Several forms are fitted. None is chosen: each takes part in as many resamples as the data speak
for it (weights of Akaike with the seeds' variance), so that an interval also covers our doubt
about the form. A form that was chosen would be right too seldom, and its interval too narrow.

Random numbers depend on what is fitted and on nothing else: same records, same numbers.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.fit.cells import WidthFamily
from archfit.fit.forms import (
    CUBIC,
    POWER,
    QUADRATIC,
    QUARTIC,
    QUINTIC,
    CurveForm,
    Reals,
    fit_form,
    values,
)
from archfit.fit.noise import TAIL, Noise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from archfit.spec import lazy_numpy as np

RESAMPLES = 2000
LEAST_SIZES = 3  # a curve has three free numbers
LEAST_SIZES_OF = {POWER: 3, QUADRATIC: 3, CUBIC: 6, QUARTIC: 8, QUINTIC: 10}
MISFIT = 0.01  # below this probability the seeds' noise does not explain the residuals


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """A fitted family."""

    family: WidthFamily
    middle: float  # ln N from which u counts
    forms: tuple[CurveForm, ...]
    weights: tuple[float, ...]  # of the forms; their sum is 1
    best: Reals  # a row for each form
    draws: Reals  # RESAMPLES rows
    inflation: float  # of the seeds' variance, where that does not explain the residuals

    def mean(self, log_sizes: Reals) -> Reals:
        """The loss at each ln N."""
        return np.asarray(np.array(self.weights) @ values(self.best, log_sizes - self.middle))

    def resampled(self, log_sizes: Reals) -> Reals:
        """The loss at each ln N in each resample."""
        return values(self.draws, log_sizes - self.middle)

    def band(self, log_sizes: Reals) -> tuple[Reals, Reals]:
        """The ends of the 90 % interval at each ln N."""
        low, high = np.quantile(self.resampled(log_sizes), [TAIL, 1 - TAIL], axis=0)
        return low, high


def curve_of(family: WidthFamily, noise: Noise, seed: int) -> Curve:
    """The curve of a family of at least LEAST_SIZES sizes."""
    log_sizes = np.array([cell.log_size for cell in family.cells])
    losses = np.array([[cell.mean for cell in family.cells]])
    precisions = np.array([1 / noise.variance(cell) for cell in family.cells])
    middle = float(log_sizes.mean())
    u = log_sizes - middle
    # A sum of two power laws bends like a quintic, which only many sizes can tell from others.
    forms = tuple(form for form, least in LEAST_SIZES_OF.items() if family.sizes >= least)
    fits = [fit_form(form, u, losses, precisions) for form in forms]
    misfits = [float(left[0]) for _, left in fits]
    inflation, degrees = variance_inflation(misfits, forms, len(u), noise.degrees)
    weights = form_weights([misfit / inflation for misfit in misfits], forms, len(u), noise.degrees)
    best = np.concatenate([rows for rows, _ in fits])
    group = (noise.data_hash, noise.recipe) if inflation == 1 else family.key
    errors = np.outer(scales(seed, group, degrees), np.sqrt(inflation / precisions))
    random = generator(seed, family.key)
    noises = random.standard_normal(errors.shape) * errors
    draws = np.empty((RESAMPLES, best.shape[1]))
    for form, row, some in zip(forms, best, _shares(random, weights), strict=True):
        drawn = values(row[None], u) + noises[some]
        draws[some], _ = fit_form(form, u, drawn, precisions)
    return Curve(
        family=family,
        middle=middle,
        forms=forms,
        weights=weights,
        best=best,
        draws=draws,
        inflation=inflation,
    )


def variance_inflation(
    misfits: Sequence[float], forms: Sequence[CurveForm], sizes: int, degrees: int
) -> tuple[float, int]:
    """By how much the variance of cell means exceeds the seeds', and its degrees of freedom.

    1 where the best form leaves no more than seeds explain (an F test).
    """
    from scipy.special import fdtrc

    spare = [sizes - form.free for form in forms]
    ratios = [(left / free, free) for left, free in zip(misfits, spare, strict=True) if free > 0]
    if not ratios:
        return 1.0, degrees
    ratio, free = min(ratios)
    if float(fdtrc(free, degrees, ratio)) >= MISFIT:
        return 1.0, degrees
    return ratio, free


def form_weights(
    misfits: Sequence[float], forms: Sequence[CurveForm], sizes: int, degrees: int
) -> tuple[float, ...]:
    """How much the data speak for each form: Akaike's e^(-chi^2 / 2 - free).

    With a variance that is known to `degrees` only, e^(-chi^2 / 2) is the density of a t
    distribution.
    """
    logs = [
        -(degrees + sizes - form.free) / 2 * math.log1p(misfit / degrees) - form.free
        for misfit, form in zip(misfits, forms, strict=True)
    ]
    likely = [math.exp(log - max(logs)) for log in logs]
    return tuple(weight / math.fsum(likely) for weight in likely)


def _shares(random: "np.random.Generator", weights: Sequence[float]) -> "list[NDArray[np.intp]]":
    """Which resamples each form takes part in: all, divided by weight, in random order."""
    cuts = np.round(np.cumsum(weights)[:-1] * RESAMPLES).astype(int)
    return np.split(random.permutation(RESAMPLES), cuts)


def generator(seed: int, name: object) -> "np.random.Generator":
    """Numbers of their own for each thing that is named, whatever else is fitted beside it."""
    digest = hashlib.sha256(f"{seed}\n{name!r}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8]))


def scales(seed: int, name: object, degrees: int) -> Reals:
    """What the true standard deviation may be, over the one that was seen: sqrt(nu / chi^2_nu)."""
    draws = generator(seed, ("scale", name)).chisquare(degrees, RESAMPLES)
    return np.sqrt(degrees / draws)
