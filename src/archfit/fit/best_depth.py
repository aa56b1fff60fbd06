"""The best depth at each size: smooth curves over ln depth through networks of equal size.

Networks of one size miss it by some per cent, since widths are whole numbers; their losses are
brought to it by half the slope of the loss over ln size between best networks: the other half of
that slope is more tokens, and these have equally many. A network that is no better than one of a
sixteenth of its size failed to train: no smooth curve goes through it. As in curves.py no form
is chosen: polynomials of degree 2 to 4 take part in as many resamples as the data speak for them,
and an interval holds what best depths the resamples have. Where few networks were repeated by other
seeds, what the highest polynomial leaves is the noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from archfit.fit.cells import Repeated
from archfit.fit.curves import CUBIC, QUADRATIC, QUARTIC, FormFits, Reals, fit_form, values
from archfit.fit.noise import LEAST_DEGREES, TAIL
from archfit.spec import lazy_numpy as np
from archfit.spec.estimate import Estimate

LEAST_DEPTHS = 5
GRID = 241  # depths at which a curve is looked at
SHARE_OF_SIZE = 0.5  # of that slope; residuals of the atlas say 0.42 with an error of 0.18
FAILED = 16  # times as large as a network that is better
LEAST_NOISE = 1e-6  # bits, of data that are learnt by heart


@dataclass(frozen=True, kw_only=True, slots=True)
class DepthPoint(Repeated):
    """A depth at one size: the network's parameters and its loss by seed."""

    depth: int
    params: int
    losses: tuple[float, ...]  # bits per byte, or per symbol


@dataclass(frozen=True, kw_only=True, slots=True)
class DepthCurve:
    """What depths of one size lose."""

    size: int
    points: tuple[DepthPoint, ...]  # by depth
    failed: tuple[DepthPoint, ...] = ()  # networks that are not on the curve
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

    def predicted(self, depth: float, params: int) -> Estimate:
        """The loss of one more run of a network of about this size."""
        from scipy.special import stdtrit

        error = np.interp(math.log(depth), np.log(self.depths), self.errors)
        middle = self.at(depth) + self.slope * math.log(params / self.size)
        half = float(stdtrit(self.degrees, 1 - TAIL)) * math.hypot(error, self.scatter)
        return Estimate(value=middle, low=middle - half, high=middle + half)

    def brought(self, point: DepthPoint) -> float:
        """The mean loss of a depth, brought to the size."""
        return point.mean - self.slope * math.log(point.params / self.size)

    def regret(self, depth: float) -> float:
        """What a depth loses against the best one, by the curve."""
        return self.at(depth) - self.least


def depth_curves(name: str, sizes: Mapping[int, Sequence[DepthPoint]]) -> tuple[DepthCurve, ...]:
    """A curve for each size of one kind of data that has depths and seeds enough.

    `name` seeds the resamples.
    """
    failed = {size: _failed(size, sizes) for size in sizes}
    sizes = {size: [p for p in some if p not in failed[size]] for size, some in sizes.items()}
    noises = {size: found for size in sizes if (found := _noise(sizes[size])) is not None}
    if not noises:
        return ()
    # Where it cannot be known, the noise is that of the nearest size.
    noise = {
        size: noises[min(noises, key=lambda other: abs(math.log(other / size)))]
        for size in sorted(sizes)
        if len(sizes[size]) >= LEAST_DEPTHS
    }
    known = {size: tuple(sorted(sizes[size], key=lambda p: p.depth)) for size in noise}
    flat = [_fit(points, size, 0.0, noise[size]) for size, points in known.items()]
    least = np.array([float(fit.mean(grid).min()) for fit, grid in flat])
    # The change of the least loss over ln size, around each size, at equally many tokens.
    slopes = SHARE_OF_SIZE * np.gradient(least, np.log([*known])) if len(flat) > 1 else 0 * least
    shown = zip(known.items(), slopes, strict=True)
    curves = (_curve(f"{name}/{n}", n, some, float(slope), noise[n]) for (n, some), slope in shown)
    return tuple(replace(curve, failed=failed[curve.size]) for curve in curves)


def _failed(size: int, sizes: Mapping[int, Sequence[DepthPoint]]) -> tuple[DepthPoint, ...]:
    """Networks that lose more than the best of those so much smaller that training must beat it."""
    smaller = [point.mean for other in sizes if other * FAILED <= size for point in sizes[other]]
    return tuple(p for p in sizes[size] if smaller and p.mean > min(smaller))


def _noise(points: Sequence[DepthPoint]) -> tuple[float, int] | None:
    """Standard deviation of a run and its degrees of freedom; None where it cannot be known."""
    degrees = sum(point.seeds - 1 for point in points)
    if degrees >= LEAST_DEGREES:
        std = math.sqrt(math.fsum(point.squares for point in points) / degrees)
        return max(std, LEAST_NOISE), degrees
    spare = len(points) - QUARTIC.free
    if spare < LEAST_DEGREES:
        return None
    logs = np.log([point.depth for point in points])
    losses, seeds = zip(*((point.mean, point.seeds) for point in points), strict=True)
    weights = np.array(seeds, dtype=float)
    _, left = fit_form(QUARTIC, logs - logs.mean(), np.array([losses]), weights)
    return max(math.sqrt(float(left[0]) / spare), LEAST_NOISE), spare


def _fit(
    points: Sequence[DepthPoint], size: int, slope: float, noise: tuple[float, int]
) -> tuple[FormFits, Reals]:
    """Polynomials in ln depth about its mean through losses brought to the size, and a grid."""
    std, degrees = noise
    logs = np.log([point.depth for point in points])
    u = logs - logs.mean()
    losses = np.array([p.mean - slope * math.log(p.params / size) for p in points])
    precisions = np.array([point.seeds / std**2 for point in points])
    forms = tuple(f for f in (QUADRATIC, CUBIC, QUARTIC) if len(points) >= f.free + 2)
    return FormFits.of(forms, u, losses, precisions, degrees), np.linspace(u[0], u[-1], GRID)


def _curve(
    name: str, size: int, points: tuple[DepthPoint, ...], slope: float, noise: tuple[float, int]
) -> DepthCurve:
    """The curve, and the best depths of curves that chance might have given instead."""
    fit, grid = _fit(points, size, slope, noise)
    curve, precisions = fit.mean(grid), fit.precisions
    depths = np.exp(grid + float(np.log([point.depth for point in points]).mean()))
    depths[0], depths[-1] = points[0].depth, points[-1].depth  # whatever rounding made of them
    resampled = values(fit.redrawn(name, name, in_order=True), grid)
    value = float(depths[curve.argmin()])
    bests = depths[resampled.argmin(axis=1)]
    low, high = (float(end) for end in np.quantile(bests, [TAIL, 1 - TAIL]))
    # Squares that depths differ by, and that the curve leaves, both without the seeds' part.
    middle = (fit.losses * precisions).sum() / precisions.sum()
    total = float(((fit.losses - middle) ** 2 * precisions).sum()) - (len(points) - 1)
    left = float(((fit.losses - fit.mean(fit.u)) ** 2 * precisions).sum())
    left -= max(1, len(points) - QUADRATIC.free)
    return DepthCurve(
        size=size,
        points=points,
        depths=depths,
        losses=curve,
        errors=resampled.std(axis=0),
        best=Estimate(  # an end that is an end of the grid is open, but for depth 1
            value=value,
            low=min(low, value) if low > depths[0] or depths[0] == 1 else None,
            high=max(high, value) if high < depths[-1] else None,
        ),
        least=float(curve.min()),
        slope=slope,
        noise=noise[0],
        scatter=noise[0] * math.sqrt(fit.inflation),
        degrees=fit.degrees,
        explained=1 - max(0.0, left) / total if total > 0 else 1.0,
    )
