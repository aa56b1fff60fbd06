"""The size law of a family: loss = E + A N^-alpha, with E >= 0.

Intervals are by likelihood: for each exponent E and A are linear, so all values whose squares are
within what noise allows (an F test with one degree of freedom) are found in closed form.
Resampled exponents would be skewed where the data bend little.
"""

import math
from dataclasses import dataclass

from archfit.fit.curves import Curve
from archfit.fit.forms import POWER, Reals, fit_form
from archfit.fit.laws import Law, Parameter
from archfit.fit.noise import Noise
from archfit.fit.rivals import LEAST_POINTS, compared, constant, line, power

FORM = "loss = E + A N^-alpha"
LEAST_ALPHA, MOST_ALPHA, ALPHAS = 0.003, 2.0, 500
REFINEMENTS = 2  # of the exponents that are tried
RIVALS = {FORM: power, "loss = a - b ln N": line, "loss = a": constant}


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """For each exponent: excess squares, and E and B = A e^(-alpha middle) with their errors."""

    alpha: Reals
    excess: Reals
    floor: Reals
    floor_error: Reals
    scale: Reals
    scale_error: Reals


def size_law(curve: Curve, noise: Noise) -> Law | None:
    """The law of a family of four sizes or more; no parameters where none is near its losses."""
    import numpy as np

    cells = curve.family.cells
    if curve.family.sizes < LEAST_POINTS:
        return None
    x = np.array([cell.log_size for cell in cells])
    losses = np.array([cell.mean for cell in cells])
    precisions = np.array([1 / noise.variance(cell) for cell in cells]) / curve.inflation
    allowed = _allowed(curve, noise)
    profile = _profile(_all_alphas(), x - curve.middle, losses, precisions)
    for _ in range(REFINEMENTS):
        profile = _profile(_near(profile, allowed), x - curve.middle, losses, precisions)
    parameters = _parameters(profile, curve, allowed)
    return Law(
        kind="size",
        form=FORM,
        family=curve.family.key,
        parameters=parameters,
        rivals=compared(RIVALS, x, losses, precisions),
        points=len(cells),
        seeds=curve.family.seeds,
        inflation=curve.inflation,
    )


def _allowed(curve: Curve, noise: Noise) -> float:
    """Excess squares that a 90 % interval allows."""
    from scipy.special import stdtrit

    free = len(curve.family.cells) - POWER.free
    degrees = noise.degrees if curve.inflation == 1 else max(1, free)
    return float(stdtrit(degrees, 0.95)) ** 2


def _all_alphas() -> Reals:
    import numpy as np

    return np.geomspace(LEAST_ALPHA, MOST_ALPHA, ALPHAS)


def _near(profile: Profile, allowed: float) -> Reals:
    """As many exponents where the interval is."""
    import numpy as np

    least = int(profile.excess.argmin())
    places = np.append(np.flatnonzero(profile.excess <= allowed), least)
    first, last = max(int(places.min()) - 1, 0), min(int(places.max()) + 1, ALPHAS - 1)
    return np.linspace(profile.alpha[first], profile.alpha[last], ALPHAS)


def _profile(alpha: Reals, u: Reals, losses: Reals, precisions: Reals) -> Profile:
    import numpy as np

    decay = np.exp(-alpha[:, None] * u)
    total = precisions.sum()
    decay_mean, loss_mean = decay @ precisions / total, float(losses @ precisions / total)
    centred = decay - decay_mean[:, None]
    spread = centred**2 @ precisions
    scale = (centred * (losses - loss_mean)) @ precisions / spread
    left = (losses - loss_mean - scale[:, None] * centred) ** 2 @ precisions
    _, least = fit_form(POWER, u, losses[None], precisions)
    return Profile(
        alpha=alpha,
        excess=np.maximum(0.0, left - min(float(least[0]), float(left.min()))),
        floor=loss_mean - scale * decay_mean,
        floor_error=np.sqrt(1 / total + decay_mean**2 / spread),
        scale=scale,
        scale_error=np.sqrt(1 / spread),
    )


def _parameters(profile: Profile, curve: Curve, allowed: float) -> tuple[Parameter, ...]:
    """E, A and alpha, or none where every exponent misses by more than noise allows."""
    import numpy as np

    below_zero = np.minimum(0, profile.floor) / profile.floor_error
    excess = profile.excess + below_zero**2  # a loss has no floor below zero
    inside = (excess <= allowed) & (profile.scale > 0)
    if not inside.any():
        return ()
    best = int(np.where(inside, excess, np.inf).argmin())
    alpha = profile.alpha[inside]
    half = np.sqrt(np.maximum(0, allowed - profile.excess[inside]))
    floor, floor_half = profile.floor[inside], profile.floor_error[inside] * half
    size = np.exp(alpha * curve.middle)
    scale, scale_half = profile.scale[inside] * size, profile.scale_error[inside] * half * size
    # The exponents end before the interval does.
    is_open = bool(alpha[-1] >= MOST_ALPHA), bool(alpha[0] <= LEAST_ALPHA)
    return (
        Parameter(
            name="E",
            value=max(0.0, float(profile.floor[best])),
            low=max(0.0, float((floor - floor_half).min())),
            high=None if is_open[0] else float((floor + floor_half).max()),
        ),
        Parameter(
            name="A",
            value=float(profile.scale[best]) * math.exp(profile.alpha[best] * curve.middle),
            low=max(0.0, float((scale - scale_half).min())),
            high=None if is_open[0] else float((scale + scale_half).max()),
        ),
        Parameter(
            name="alpha",
            value=float(profile.alpha[best]),
            low=None if is_open[1] else float(alpha[0]),
            high=None if is_open[0] else float(alpha[-1]),
        ),
    )
