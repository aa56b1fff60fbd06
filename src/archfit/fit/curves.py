"""The loss of a family as a curve over size, with what else it may be.

Several forms are fitted. None is chosen: each takes part in as many resamples as the data speak
for it (weights of Akaike with the seeds' variance), so that an interval also covers our doubt
about the form. A form that was chosen would be right too seldom, and its interval too narrow.

Random numbers depend on what is fitted and on nothing else: same records, same numbers.

With u = ln N - middle, every form is a row of seven numbers (level, slope, alpha, second, third,
fourth, fifth), fitted to many curves at once:

    loss(u) = level + slope (1 - e^(-alpha u)) / alpha + second u^2 + third u^3 + ... + fifth u^5

A power law with a floor, E + A N^-alpha, has only the first three (alpha = 0 is a line in ln N);
polynomials have alpha = 0.

Where the difference of two curves is zero, an interval holds every x at which zero lies in the
middle 90 % of the resampled differences. Where the difference is monotone this is the percentile
interval of its root; where some resamples have no root, or two, it still means what it says.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from archfit.fit.cells import WidthFamily
from archfit.fit.noise import TAIL, Noise
from archfit.spec import lazy_numpy as np
from archfit.spec.estimate import Estimate
from archfit.spec.search import bisect_rising

Reals: TypeAlias = "np.typing.NDArray[np.float64]"
Truths: TypeAlias = "np.typing.NDArray[np.bool_]"

LEAST_ALPHA, MOST_ALPHA, ALPHAS = -0.5, 2.0, 51  # losses of networks have 0.05 to 0.5
COEFFICIENTS = 7
RESAMPLES = 2000
LEAST_SIZES = 3  # a curve has three free numbers
MISFIT = 0.01  # below this probability the seeds' noise does not explain the residuals
COARSE, FINE = 65, 33  # points
REACH = 0.1  # of the range on each side, up to which an interval may end beyond it
ONE_SIGMA = (0.1587, 0.8413)  # quantiles; a few wild resamples do not count between them


@dataclass(frozen=True, kw_only=True, slots=True)
class CurveForm:
    """A shape by name, how many of its numbers are free, and of how many sizes it is fitted."""

    name: str
    free: int
    least_sizes: int


# A sum of two power laws bends like a quintic, which only many sizes can tell from others.
FORMS = POWER, QUADRATIC, CUBIC, QUARTIC, QUINTIC = (
    CurveForm(name="power law", free=3, least_sizes=3),
    CurveForm(name="quadratic", free=3, least_sizes=3),
    CurveForm(name="cubic", free=4, least_sizes=6),
    CurveForm(name="quartic", free=5, least_sizes=8),
    CurveForm(name="quintic", free=6, least_sizes=10),
)
CONSTANT = CurveForm(name="constant", free=1, least_sizes=1)
LINE = CurveForm(name="line", free=2, least_sizes=2)


def values(rows: Reals, u: Reals) -> Reals:
    """The loss of each row at each u."""
    powers = rows[:, [0, 3, 4, 5, 6]] @ np.array([u**power for power in (0, 2, 3, 4, 5)])
    return np.asarray(powers + rows[:, [1]] * bend(rows[:, [2]], u))


def bend(alpha: Reals, u: Reals) -> Reals:
    """(1 - e^(-alpha u)) / alpha, which is u at alpha = 0."""
    if not alpha.any():
        return u
    is_line = np.abs(alpha) < 1e-9
    return np.where(is_line, u, -np.expm1(-alpha * u) / np.where(is_line, 1.0, alpha))


def fit_form(form: CurveForm, u: Reals, losses: Reals, weights: Reals) -> tuple[Reals, Reals]:
    """Rows of least weighted squares for each row of losses, and what is left of the squares."""
    if form is POWER:
        rows = _power_rows(u, losses, weights)
    else:
        root, rows = np.sqrt(weights), np.zeros((len(losses), COEFFICIENTS))
        design = np.vander(u, form.free, increasing=True) * root[:, None]
        rows[:, [0, 1, 3, 4, 5, 6][: form.free]] = (losses * root) @ np.linalg.pinv(design).T
    left = np.asarray(((losses - values(rows, u)) ** 2 * weights).sum(axis=1))
    return rows, left


def _power_rows(u: Reals, losses: Reals, weights: Reals) -> Reals:
    """Power laws: the exponent of a grid that leaves least, at the foot of a parabola through it
    and its neighbours."""
    alphas, root = np.linspace(LEAST_ALPHA, MOST_ALPHA, ALPHAS), np.sqrt(weights)
    bends = bend(alphas[:, None], u)
    first = np.broadcast_to(root / np.sqrt(weights.sum()), bends.shape)
    second = bends * root - first * (first * bends * root).sum(axis=1, keepdims=True)
    second = second / np.linalg.norm(second, axis=1, keepdims=True)
    scaled = (losses - losses.mean(axis=1, keepdims=True)) * root  # small: fewer digits are lost
    left = (scaled**2).sum(axis=1, keepdims=True)
    left = left - ((scaled @ first.T) ** 2 + (scaled @ second.T) ** 2)
    best, every = np.clip(left.argmin(axis=1), 1, ALPHAS - 2), np.arange(len(losses))
    before, at, after = (left[every, best + step] for step in (-1, 0, 1))
    bent = before - 2 * at + after
    step = np.clip((before - after) / np.where(bent > 0, 2 * bent, 1), -1, 1)
    moved = np.where(bent > 0, step, np.sign(before - after))
    alpha = alphas[best] + moved * (alphas[1] - alphas[0])
    for _ in range(2):  # a parabola through the grid is a little off
        alpha = _refined(alpha, u, losses, weights)
    return _power_rows_at(alpha, u, losses, weights)


def _power_rows_at(alpha: Reals, u: Reals, losses: Reals, weights: Reals) -> Reals:
    """The best level and slope of each row of losses for the exponent given to it."""
    share = weights / weights.sum()
    bends = np.broadcast_to(bend(alpha[:, None], u), losses.shape)
    bend_mean, loss_mean = bends @ share, losses @ share
    centred = bends - bend_mean[:, None]
    slope = ((losses - loss_mean[:, None]) * centred) @ share / (centred**2 @ share)
    rows = np.zeros((len(slope), COEFFICIENTS))
    rows[:, 0], rows[:, 1], rows[:, 2] = loss_mean - slope * bend_mean, slope, alpha
    return rows


def _refined(alpha: Reals, u: Reals, losses: Reals, weights: Reals) -> Reals:
    """The exponents after one step of Gauss and Newton."""
    rows = _power_rows_at(alpha, u, losses, weights)
    near = np.zeros(COEFFICIENTS)
    near[2] = 1e-5
    change = (values(rows + near, u) - values(rows - near, u)) / (2 * near[2])
    change = change - values(_power_rows_at(alpha, u, change, weights), u)  # level and slope follow
    norm = (change**2 * weights).sum(axis=1)
    step = ((losses - values(rows, u)) * change * weights).sum(axis=1)
    step = np.where(norm > 0, step / np.where(norm > 0, norm, 1), 0)
    return np.asarray(np.clip(alpha + np.clip(step, -0.05, 0.05), LEAST_ALPHA, MOST_ALPHA))


@dataclass(frozen=True, kw_only=True, slots=True)
class FormFits:
    """Several forms through the same points."""

    forms: tuple[CurveForm, ...]
    weights: tuple[float, ...]  # how much the data speak for each; their sum is 1
    rows: Reals  # one for each form
    u: Reals  # of the points
    losses: Reals
    precisions: Reals  # by the seeds
    inflation: float  # of the seeds' variance, where that does not explain the residuals
    degrees: int  # of freedom, of that variance

    @classmethod
    def of(
        cls, forms: tuple[CurveForm, ...], u: Reals, losses: Reals, precisions: Reals, degrees: int
    ) -> "FormFits":
        """The forms fitted to losses whose seeds' variance has so many degrees of freedom."""
        fits = [fit_form(form, u, losses[None], precisions) for form in forms]
        misfits = [float(left[0]) for _, left in fits]
        inflation, free = variance_inflation(misfits, forms, len(u), degrees)
        return cls(
            forms=forms,
            weights=form_weights([each / inflation for each in misfits], forms, len(u), degrees),
            rows=np.concatenate([row for row, _ in fits]),
            u=u,
            losses=losses,
            precisions=precisions,
            inflation=inflation,
            degrees=free,
        )

    def mean(self, u: Reals) -> Reals:
        """The loss at each u, by all forms."""
        return np.asarray(np.array(self.weights) @ values(self.rows, u))

    def redrawn(self, name: object, scale: object, *, in_order: bool = False) -> Reals:
        """Rows that chance might have given instead: each form, with noise, is fitted again in as
        many resamples as it has weight. `name` and `scale` seed the noise and its size."""
        random = generator(name)
        errors = np.outer(scales(scale, self.degrees), np.sqrt(self.inflation / self.precisions))
        noises = random.standard_normal(errors.shape) * errors
        order = np.arange(RESAMPLES) if in_order else random.permutation(RESAMPLES)
        cuts = np.round(np.cumsum(self.weights)[:-1] * RESAMPLES).astype(int)
        rows = np.empty((RESAMPLES, COEFFICIENTS))
        for form, row, own in zip(self.forms, self.rows, np.split(order, cuts), strict=True):
            losses = values(row[None], self.u) + noises[own]
            rows[own], _ = fit_form(form, self.u, losses, self.precisions)
        return rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """A fitted family."""

    family: WidthFamily
    middle: float  # ln N from which u counts
    fits: FormFits
    draws: Reals  # RESAMPLES rows

    def mean(self, log_sizes: Reals) -> Reals:
        """The loss at each ln N."""
        return self.fits.mean(log_sizes - self.middle)

    def resampled(self, log_sizes: Reals) -> Reals:
        """The loss at each ln N in each resample."""
        return values(self.draws, log_sizes - self.middle)

    def band(self, log_sizes: Reals) -> tuple[Reals, Reals]:
        """The ends of the 90 % interval at each ln N."""
        low, high = np.quantile(self.resampled(log_sizes), [TAIL, 1 - TAIL], axis=0)
        return low, high


def curve_of(family: WidthFamily, noise: Noise) -> Curve:
    """The curve of a family of at least LEAST_SIZES sizes."""
    log_sizes = np.array([cell.log_size for cell in family.cells])
    losses = np.array([cell.mean for cell in family.cells])
    precisions = np.array([1 / noise.variance(cell) for cell in family.cells])
    middle = float(log_sizes.mean())
    forms = tuple(form for form in FORMS if family.sizes >= form.least_sizes)
    fits = FormFits.of(forms, log_sizes - middle, losses, precisions, noise.usual.degrees)
    scale = (noise.data_hash, noise.recipe) if fits.inflation == 1 else family.key
    return Curve(family=family, middle=middle, fits=fits, draws=fits.redrawn(family.key, scale))


def variance_inflation(
    misfits: Sequence[float], forms: Sequence[CurveForm], sizes: int, degrees: int
) -> tuple[float, int]:
    """By how much the variance of cell means exceeds the seeds', and its degrees of freedom.

    1 where the best form leaves no more than seeds explain (an F test).
    """
    from scipy.special import fdtrc

    spare = [sizes - form.free for form in forms]
    ratios = [(left / free, free) for left, free in zip(misfits, spare, strict=True) if free > 0]
    ratio, free = min(ratios, default=(1.0, 0))
    is_explained = not free or float(fdtrc(free, degrees, ratio)) >= MISFIT
    return (1.0, degrees) if is_explained else (ratio, free)


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


def generator(name: object) -> "np.random.Generator":
    """Numbers of their own for each thing that is named, whatever else is fitted beside it."""
    text = name if isinstance(name, str) else repr(name)
    digest = hashlib.sha256(f"0\n{text}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8]))


def scales(name: object, degrees: int) -> Reals:
    """What the true standard deviation may be, over the one that was seen: sqrt(nu / chi^2_nu)."""
    draws = generator(("scale", name)).chisquare(degrees, RESAMPLES)
    return np.sqrt(degrees / draws)


@dataclass(frozen=True, kw_only=True, slots=True)
class ResampledDifference:
    """A difference of two losses over a range of ln N."""

    mean: Callable[[Reals], Reals]
    resampled: Callable[[Reals], Reals]  # a row for each resample
    log_range: tuple[float, float]

    def grid(self, reach: float = 0.0) -> Reals:
        """Points over the range, and beyond it by this share on each side."""
        low, high = self.log_range
        more = reach * (high - low)
        return np.linspace(low - more, high + more, COARSE)

    def below_zero(self, points: Reals) -> tuple[Reals, Truths]:
        """The share of resamples that are below zero at each point, and whether zero is there."""
        below = np.asarray((self.resampled(points) < 0).mean(axis=0))
        return below, (below >= TAIL) & (below <= 1 - TAIL)

    def slope_probability(self) -> float:
        """Two-sided, that the mean slope is none."""
        ends = self.resampled(np.array(self.log_range))
        rising = float((ends[:, 1] > ends[:, 0]).mean())
        return 2 * min(rising, 1 - rising)

    def slope(self) -> tuple[float, float]:
        """The mean slope over the range, and its standard error."""
        ends = np.array(self.log_range)
        first, last = self.mean(ends)
        inner = np.quantile(np.diff(self.resampled(ends), axis=1), ONE_SIGMA)
        length = self.log_range[1] - self.log_range[0]
        return float(last - first) / length, float(inner[1] - inner[0]) / 2 / length

    def height(self, point: float) -> tuple[float, float]:
        """The difference at a point, and its standard error."""
        at = np.array([point])
        inner = np.quantile(self.resampled(at), ONE_SIGMA)
        return float(self.mean(at)[0]), float(inner[1] - inner[0]) / 2

    def nearest_point(self) -> float:
        """Where the one that is better by and large is ahead by the least."""
        points = self.grid()
        heights = self.mean(points)
        ahead = heights if heights.sum() > 0 else -heights
        return float(points[ahead.argmin()])

    def sign_changes(self) -> list[tuple[float, bool]]:
        """Where the sign changes beyond doubt on both sides, and whether it falls there."""
        points = self.grid()
        below, may_be_zero = self.below_zero(points)
        sure = np.flatnonzero(~may_be_zero)
        is_below = below[sure] > 0.5
        found = []
        for at in np.flatnonzero(is_below[1:] != is_below[:-1]):
            between, falling = points[sure[at] : sure[at + 1] + 1], bool(is_below[at + 1])
            root = self.root(between, falling=falling)
            found += [] if root is None else [(root, falling)]
        return found

    def interval_about(self, root: float) -> Estimate:
        """The root with all x about it at which the difference may be zero.

        An end is None where it lies beyond the range by more than REACH.
        """
        points = np.unique(np.append(self.grid(REACH), root))
        _, may_be_zero = self.below_zero(points)
        at = int(np.searchsorted(points, root))
        may_be_zero[at] = True
        return Estimate(
            value=root,
            low=self._end(points[at::-1], may_be_zero[at::-1]),
            high=self._end(points[at:], may_be_zero[at:]),
        )

    def root(self, points: "Reals | None" = None, *, falling: bool) -> float | None:
        """The last place where the mean goes through zero in this direction."""
        points = self.grid() if points is None else points
        sign = -1.0 if falling else 1.0
        heights = sign * self.mean(points)
        places = np.flatnonzero((heights[:-1] <= 0) & (heights[1:] > 0))
        if not len(places):
            return None
        low, high = points[places[-1]], points[places[-1] + 1]
        return float(
            bisect_rising(lambda x: sign * float(self.mean(np.array([x]))[0]), 0.0, low, high)
        )

    def _end(self, points: Reals, may_be_zero: Truths) -> float | None:
        """Where, going along the points, zero is first left out; None if nowhere."""
        sure = np.flatnonzero(~may_be_zero)
        if not len(sure):
            return None
        inside, outside = points[sure[0] - 1], points[sure[0]]
        fine = np.linspace(inside, outside, FINE)
        outer = np.flatnonzero(~self.below_zero(fine)[1])
        first = int(outer[0]) if len(outer) else FINE - 1
        return float(fine[max(first, 1)] + fine[max(first, 1) - 1]) / 2
