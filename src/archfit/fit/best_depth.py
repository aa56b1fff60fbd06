"""The best depth at each size: smooth curves over ln depth through networks of equal size.

Networks of one size miss it by some per cent, since widths are whole numbers; their losses are
brought to it by half the slope of the loss over ln size between best networks: the other half of
that slope is more tokens, and these have equally many. As in curves.py no form
is chosen: polynomials of degree 2 to 4 take part in as many resamples as the data speak for them,
and an interval holds what best depths the resamples have. Where few networks were repeated by other
seeds, what the highest polynomial leaves is the noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archfit.fit.curves import (
    CUBIC,
    QUADRATIC,
    QUARTIC,
    RESAMPLES,
    FormFits,
    Reals,
    fit_form,
    fit_forms,
    generator,
    scales,
)
from archfit.fit.noise import LEAST_DEGREES, TAIL
from archfit.spec import lazy_numpy as np
from archfit.spec.estimate import Estimate

LEAST_DEPTHS = 5
GRID = 241  # depths at which a curve is looked at
SHARE_OF_SIZE = 0.5  # of that slope; residuals of the atlas say 0.42 with an error of 0.18
LEAST_NOISE = 1e-6  # bits, of data that are learnt by heart


@dataclass(frozen=True, kw_only=True, slots=True)
class DepthPoint:
    """A depth at one size: the network's parameters and its loss by seed."""

    depth: int
    params: int
    losses: tuple[float, ...]  # bits per byte, or per symbol

    @property
    def mean(self) -> float:
        """Over seeds."""
        return math.fsum(self.losses) / len(self.losses)

    @property
    def squares(self) -> float:
        """Sum of squares about the mean."""
        return math.fsum((loss - self.mean) ** 2 for loss in self.losses)


@dataclass(frozen=True, kw_only=True, slots=True)
class DepthCurve:
    """What depths of one size lose."""

    size: int
    points: tuple[DepthPoint, ...]  # by depth
    depths: Reals  # of the grid
    losses: Reals  # the curve there
    errors: Reals  # standard errors of the curve there
    best: Estimate  # depth; open at an end of the grid that it may lie beyond
    least: float  # the loss of the curve at the best depth
    slope: float  # of the loss over ln size
    noise: float  # standard deviation of one run
    scatter: float  # that of one run about the curve, where noise does not explain it all
    degrees: int  # of freedom, of the scatter
    explained: float  # by the curve, of the variance between depths that seeds do not explain

    @property
    def is_inside(self) -> bool:
        """Whether the best depth lies between depths that were trained, or no network is less
        deep."""
        depths = [point.depth for point in self.points]
        least = min(depths) if min(depths) > 1 else 0
        return self.best.value is not None and least < self.best.value < max(depths)

    def at(self, depth: float) -> float:
        """The loss of a depth, by the curve."""
        return float(np.interp(math.log(depth), np.log(self.depths), self.losses))

    def brought(self, point: DepthPoint) -> float:
        """The mean loss of a depth, brought to the size."""
        return point.mean - self.slope * math.log(point.params / self.size)

    def regret(self, depth: float) -> float:
        """What a depth loses against the best one, by the curve."""
        return self.at(depth) - self.least

    def predicted(self, depth: float, params: int) -> Estimate:
        """The loss of one more run of a network of about this size."""
        from scipy.special import stdtrit

        error = np.interp(math.log(depth), np.log(self.depths), self.errors)
        middle = self.at(depth) + self.slope * math.log(params / self.size)
        half = float(stdtrit(self.degrees, 1 - TAIL)) * math.hypot(error, self.scatter)
        return Estimate(value=middle, low=middle - half, high=middle + half)


def depth_curves(name: str, sizes: Mapping[int, Sequence[DepthPoint]]) -> tuple[DepthCurve, ...]:
    """A curve for each size of one kind of data that has depths and seeds enough.

    `name` seeds the resamples.
    """
    noise = _noises(sizes)
    known = {size: tuple(sorted(sizes[size], key=lambda p: p.depth)) for size in sorted(noise)}
    flat = {size: _fit(points, size, 0.0, noise[size]) for size, points in known.items()}
    slopes = _slopes({size: float(fit.curve(fit.grid).min()) for size, fit in flat.items()})
    return tuple(
        _curve(f"{name}/{size}", size, points, slopes[size], noise[size])
        for size, points in known.items()
    )


def _noises(sizes: Mapping[int, Sequence[DepthPoint]]) -> dict[int, tuple[float, int]]:
    """Standard deviation of a run and its degrees of freedom, for each size; where it cannot be
    known, those of the nearest size."""
    known = {size: found for size, points in sizes.items() if (found := _noise(points)) is not None}
    if not known:
        return {}
    return {
        size: known[min(known, key=lambda other: abs(math.log(other / size)))]
        for size, points in sizes.items()
        if len(points) >= LEAST_DEPTHS
    }


def _noise(points: Sequence[DepthPoint]) -> tuple[float, int] | None:
    degrees = sum(len(point.losses) - 1 for point in points)
    if degrees >= LEAST_DEGREES:
        std = math.sqrt(math.fsum(point.squares for point in points) / degrees)
        return max(std, LEAST_NOISE), degrees
    spare = len(points) - QUARTIC.free
    if spare < LEAST_DEGREES:
        return None
    logs = np.log([point.depth for point in points])
    losses, seeds = zip(*((point.mean, len(point.losses)) for point in points), strict=True)
    weights = np.array(seeds, dtype=float)
    _, left = fit_form(QUARTIC, logs - logs.mean(), np.array([losses]), weights)
    return max(math.sqrt(float(left[0]) / spare), LEAST_NOISE), spare


def _slopes(least: Mapping[int, float]) -> dict[int, float]:
    """The change of the least loss over ln size, around each size, at equally many tokens."""
    if len(least) < 2:
        return dict.fromkeys(least, 0.0)
    slopes = SHARE_OF_SIZE * np.gradient(np.array([*least.values()]), np.log([*least]))
    return dict(zip(least, map(float, slopes), strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Fit:
    """Polynomials through the depths of one size, and their mean."""

    u: Reals  # ln depth about its mean
    grid: Reals  # of the same
    losses: Reals  # brought to the size
    precisions: Reals
    fits: FormFits

    def curve(self, u: Reals) -> Reals:
        """The mean of the polynomials."""
        return np.asarray(np.array(self.fits.weights) @ _polynomials(self.fits.rows, u))


def _fit(points: Sequence[DepthPoint], size: int, slope: float, noise: tuple[float, int]) -> _Fit:
    std, degrees = noise
    logs = np.log([point.depth for point in points])
    u = logs - logs.mean()
    losses = np.array([p.mean - slope * math.log(p.params / size) for p in points])
    precisions = np.array([len(point.losses) / std**2 for point in points])
    forms = tuple(f for f in (QUADRATIC, CUBIC, QUARTIC) if len(points) >= f.free + 2)
    fits = fit_forms(forms, u, losses, precisions, degrees)
    grid = np.linspace(u[0], u[-1], GRID)
    return _Fit(u=u, grid=grid, losses=losses, precisions=precisions, fits=fits)


def _polynomials(rows: Reals, u: Reals) -> Reals:
    """The loss of each row of curves.py at each u; none of them is a power law."""
    level, slope, _, *higher = rows.T
    return np.array([level, slope, *higher]).T @ np.vander(u, len(higher) + 2, increasing=True).T


def _resampled(fit: _Fit, name: str) -> Reals:
    """Curves on the grid that chance might have given instead."""
    spread = np.sqrt(fit.fits.inflation / fit.precisions)
    errors = np.outer(scales(name, fit.fits.degrees), spread)
    noises, parts = generator(name).standard_normal(errors.shape) * errors, []
    for form, row, some in fit.fits.shares(np.arange(RESAMPLES)):
        drawn, _ = fit_form(form, fit.u, _polynomials(row, fit.u) + noises[some], fit.precisions)
        parts.append(_polynomials(drawn, fit.grid))
    return np.concatenate(parts)


def _curve(
    name: str, size: int, points: tuple[DepthPoint, ...], slope: float, noise: tuple[float, int]
) -> DepthCurve:
    fit, std = _fit(points, size, slope, noise), noise[0]
    resampled, curve = _resampled(fit, name), fit.curve(fit.grid)
    depths = np.exp(fit.grid + float(np.log([point.depth for point in points]).mean()))
    depths[0], depths[-1] = points[0].depth, points[-1].depth  # whatever rounding made of them
    value, spare = float(depths[curve.argmin()]), max(1, len(points) - QUADRATIC.free)
    drawn = depths[resampled.argmin(axis=1)]
    low, high = (float(end) for end in np.quantile(drawn, [TAIL, 1 - TAIL]))
    best = Estimate(  # an end of the interval that is an end of the grid is open, but for depth 1
        value=value,
        low=min(low, value) if low > depths[0] or depths[0] == 1 else None,
        high=max(high, value) if high < depths[-1] else None,
    )
    return DepthCurve(
        size=size,
        points=points,
        depths=depths,
        losses=curve,
        errors=resampled.std(axis=0),
        best=best,
        least=float(curve.min()),
        slope=slope,
        noise=std,
        scatter=std * math.sqrt(fit.fits.inflation),
        degrees=fit.fits.degrees,
        explained=_explained(fit, spare),
    )


def _explained(fit: _Fit, free: int) -> float:
    """1 less what the curve leaves, over what depths differ by, both without the seeds' part."""
    losses, precisions = fit.losses, fit.precisions
    middle = (losses * precisions).sum() / precisions.sum()
    total = float(((losses - middle) ** 2 * precisions).sum()) - (len(losses) - 1)
    left = float(((losses - fit.curve(fit.u)) ** 2 * precisions).sum()) - free
    return 1 - max(0.0, left) / total if total > 0 else 1.0
