"""Laws: the loss over size, and the width at which a network is better deepened.

Each competes with other forms, judged by the points that they were not fitted to.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from archfit.fit import curves
from archfit.fit.cells import FamilyKey, grouped
from archfit.fit.curves import CONSTANT, LINE, POWER, Curve, CurveForm, Reals, fit_form, values
from archfit.fit.depths import Crossing
from archfit.fit.noise import TAIL, Noise
from archfit.spec import lazy_numpy as np
from archfit.spec.estimate import Estimate

SIZE_FORM, TRANSITION_FORM = "loss = E + A N^-alpha", "ln width = a + b depth"
LEAST_POINTS = 4  # of a size law: three are left to fit a form of three numbers
LEAST_CROSSINGS, CROSSINGS_FOR_INTERVAL = 2, 3
LEAST_ALPHA, MOST_ALPHA, ALPHAS = 0.003, 2.0, 500
REFINEMENTS = 2  # of the exponents that are tried

Profile: TypeAlias = tuple[Reals, Reals, Reals, Reals, Reals]


@dataclass(frozen=True, kw_only=True, slots=True)
class FormError:
    """A form, and by how much it misses what it was not fitted to."""

    form: str
    held_out_error: float  # root mean square, each point left out once
    last_error: float  # the largest point left out


@dataclass(frozen=True, kw_only=True, slots=True)
class Law:
    """A fitted law."""

    kind: Literal["transition", "size"]
    form: str
    family: FamilyKey  # of a size law; the shallowest of a transition law
    parameters: dict[str, Estimate]  # by name; none where no law of this form is near the points
    forms: tuple[FormError, ...]  # the best first, this form among them; none of too few points
    points: int
    seeds: int  # the fewest of any cell
    inflation: float  # of the variance, where the law misses its points by more than that


def transition_laws(crossings: Iterable[Crossing]) -> tuple[Law, ...]:
    """Levine et al.: from which width on a network is better deepened, ln d = a + b L.

    A law for each set of neighbouring depths whose deeper networks win above two crossings.
    """
    last = [
        crossing
        for crossing in crossings
        if crossing.neighbours and crossing.number == crossing.times
        if crossing.verdict == "deeper wins above"
    ]
    questions = grouped(last, lambda crossing: crossing.shallow.any_depth)
    return tuple(
        _transition_law(sorted(found, key=lambda crossing: crossing.shallow.depth))
        for found in questions.values()
        if len(found) >= LEAST_CROSSINGS
    )


def _transition_law(found: Sequence[Crossing]) -> Law:
    from scipy.special import chdtrc

    depths = np.array([float(crossing.shallow.depth) for crossing in found])
    centres = np.array([math.log(crossing.width.value or math.nan) for crossing in found])
    draws = np.stack([c.log_widths for c in found if c.log_widths is not None], axis=1)
    inner = np.quantile(draws, curves.ONE_SIGMA, axis=0)
    weights = (2 / (inner[1] - inner[0])) ** 2
    (fit,), (left,) = fit_form(LINE, depths, centres[None], weights)
    spare = len(found) - LINE.free
    is_explained = spare < 1 or float(chdtrc(spare, left)) >= curves.MISFIT
    inflation = 1.0 if is_explained else float(left) / spare  # beyond the crossings' own intervals
    spread = centres + (draws - centres) * math.sqrt(inflation)
    drawn, _ = fit_form(LINE, depths, spread, weights)
    has_interval = len(found) >= CROSSINGS_FOR_INTERVAL  # they can also contradict the law
    parameters = {}
    for name, value, own in zip("ab", fit, drawn.T, strict=False):  # the rest of a row is zero
        low, high = np.quantile(own, [TAIL, 1 - TAIL]).tolist() if has_interval else (None, None)
        parameters[name] = Estimate(value=float(value), low=low, high=high)
    forms = {
        TRANSITION_FORM: (LINE, depths),
        "ln width = a + b ln depth": (LINE, np.log(depths)),
        "ln width = a": (CONSTANT, depths),
    }
    return Law(
        kind="transition",
        form=TRANSITION_FORM,
        family=found[0].shallow,
        parameters=parameters,
        forms=compared(forms, centres, weights) if has_interval else (),
        points=len(found),
        seeds=min(crossing.seeds for crossing in found),
        inflation=inflation,
    )


def size_law(curve: Curve, noise: Noise) -> Law | None:
    """loss = E + A N^-alpha with E >= 0, of a family of four sizes or more.

    Intervals are by likelihood: for each exponent E and A are linear, so all values whose squares
    are within what noise allows (an F test with one degree of freedom) are found in closed form.
    Resampled exponents would be skewed where the data bend little. There are no parameters where
    no law is near the losses.
    """
    from scipy.special import stdtrit

    cells = curve.family.cells
    if curve.family.sizes < LEAST_POINTS:
        return None
    u, losses = curve.fits.u, curve.fits.losses
    precisions = curve.fits.precisions / curve.fits.inflation
    degrees = noise.usual.degrees if curve.fits.inflation == 1 else max(1, len(cells) - POWER.free)
    allowed = float(stdtrit(degrees, 1 - TAIL)) ** 2  # excess squares of a 90 % interval
    alphas = np.geomspace(LEAST_ALPHA, MOST_ALPHA, ALPHAS)
    for _ in range(REFINEMENTS):  # as many exponents where the interval is
        excess = _profile(alphas, u, losses, precisions)[0]
        places = np.append(np.flatnonzero(excess <= allowed), excess.argmin())
        first, last = max(int(places.min()) - 1, 0), min(int(places.max()) + 1, ALPHAS - 1)
        alphas = np.linspace(alphas[first], alphas[last], ALPHAS)
    profile = _profile(alphas, u, losses, precisions)
    forms = {SIZE_FORM: POWER, "loss = a - b ln N": LINE, "loss = a": CONSTANT}
    return Law(
        kind="size",
        form=SIZE_FORM,
        family=curve.family.key,
        parameters=_size_parameters(alphas, profile, curve.middle, allowed),
        forms=compared({name: (form, u) for name, form in forms.items()}, losses, precisions),
        points=len(cells),
        seeds=curve.family.seeds,
        inflation=curve.fits.inflation,
    )


def _profile(alpha: Reals, u: Reals, losses: Reals, precisions: Reals) -> Profile:
    """For each exponent: excess squares, and E and B = A e^(-alpha middle) with their errors."""
    decay = np.exp(-alpha[:, None] * u)
    total = precisions.sum()
    decay_mean, loss_mean = decay @ precisions / total, float(losses @ precisions / total)
    centred = decay - decay_mean[:, None]
    spread = centred**2 @ precisions
    scale = (centred * (losses - loss_mean)) @ precisions / spread
    left = (losses - loss_mean - scale[:, None] * centred) ** 2 @ precisions
    _, least = fit_form(POWER, u, losses[None], precisions)
    excess = np.maximum(0.0, left - min(float(least[0]), float(left.min())))
    floor_error = np.sqrt(1 / total + decay_mean**2 / spread)
    return excess, loss_mean - scale * decay_mean, floor_error, scale, np.sqrt(1 / spread)


def _size_parameters(
    alphas: Reals, profile: Profile, middle: float, allowed: float
) -> dict[str, Estimate]:
    """E, A and alpha, or none where every exponent misses by more than noise allows."""
    excess, floor, floor_error, scale, scale_error = profile
    penalised = excess + (np.minimum(0, floor) / floor_error) ** 2  # no floor is below zero
    inside = (penalised <= allowed) & (scale > 0)
    if not inside.any():
        return {}
    best = int(np.where(inside, penalised, np.inf).argmin())
    alpha = alphas[inside]
    half = np.sqrt(np.maximum(0, allowed - excess[inside]))
    size = np.exp(alpha * middle)
    is_open = bool(alpha[-1] >= MOST_ALPHA)  # the exponents end before the interval does
    top = scale[best] * math.exp(alphas[best] * middle)
    found = {}
    for name, value, centre, length in (
        ("E", max(0.0, floor[best]), floor[inside], floor_error[inside] * half),
        ("A", top, scale[inside] * size, scale_error[inside] * half * size),
    ):
        low, high = max(0.0, float((centre - length).min())), float((centre + length).max())
        end = None if is_open else max(low, high)
        found[name] = Estimate(value=float(value), low=low, high=end)
    low_end = None if alpha[0] <= LEAST_ALPHA else float(alpha[0])
    high_end = None if is_open else float(alpha[-1])
    return {**found, "alpha": Estimate(value=float(alphas[best]), low=low_end, high=high_end)}


def compared(
    forms: Mapping[str, tuple[CurveForm, Reals]], y: Reals, weights: Reals
) -> tuple[FormError, ...]:
    """The forms, each over its own x, that of the least held-out error first; x is in order."""
    share, found = weights / weights.sum(), []
    for name, (form, x) in forms.items():
        errors = []
        for at in range(len(x)):
            kept = np.arange(len(x)) != at
            u = x - x[kept].mean()
            rows, _ = fit_form(form, u[kept], y[None, kept], weights[kept])
            errors.append(float(values(rows, u[[at]])[0, 0] - y[at]))
        error = math.sqrt(float(np.square(errors) @ share))
        found.append(FormError(form=name, held_out_error=error, last_error=abs(errors[-1])))
    return tuple(sorted(found, key=lambda error: error.held_out_error))
