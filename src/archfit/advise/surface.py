"""What depth does to the loss, as a surface over size and depth that runs bend.

For one kind of data, with s = ln(parameters / 1M) and z = ln depth - (centre + growth s),

    ln loss = level + a (coefficients . (z, z^2, z t, e^-z, t e^-z) + wave(s, ln depth)) + noise

where t = REACH tanh(s / REACH): what kinds differ in does not grow with size for ever. Levels are
free: only differences between depths of one size count. The coefficients have a normal distribution
over kinds of data, the wave is a Gaussian process for what those few terms miss, and a, how much a
kind answers to depth at all, is one of a few scales with weights of their own. All of that is
fitted to many kinds; given runs on new data, or none, it says which depths may be best.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from archfit.spec import lazy_numpy as np

Reals: TypeAlias = "NDArray[np.float64]"

SCALES = (0.2, 0.45, 1.0, 2.2)
REACH = 3.0  # in ln size
TERMS = 5
LEVEL_STD = 5.0  # of a free level, in ln loss
NUGGET = 1e-10
# Where a fit begins, and how far from it logarithms of spreads are likely: a factor of 4.5.
USUAL_MEAN = (0.02, 0.003, 0.004, 0.03, 0.008)
USUAL_SPREAD = (0.02, 0.005, 0.01, 0.02, 0.005)
USUAL_WAVE = (0.015, 0.5, 0.5, 0.003)  # its size, lengths in s and ln depth, and the misfit
USUAL_CENTRE = (2.0, 0.25)  # ln depth at 1M parameters; its growth as in Levine et al. 2020
LIKELY_FACTOR, LIKELY_CENTRE, LIKELY_GROWTH = 1.5, 0.7, 0.08
UNIT = 0.02  # of coefficients, so that all numbers of a fit are of one size
LEAST_LENGTH, MOST_LENGTH = 0.2, 3.0


def terms(centre: tuple[float, float], sizes: Reals, depths: Reals) -> Reals:
    """Those that coefficients multiply, a row a network."""
    z, t = depths - (centre[0] + centre[1] * sizes), REACH * np.tanh(sizes / REACH)
    return np.array([z, z * z, z * t, np.exp(-z), t * np.exp(-z)]).T


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """Runs on one kind of data."""

    sizes: Reals  # ln(parameters / 1M)
    depths: Reals  # ln
    losses: Reals  # ln
    variances: Reals  # of those, by seeds
    levels: Reals  # a column for each free level: networks that share one, or powers of the size

    @cached_property
    def free(self) -> Reals:
        """The covariance of the levels."""
        scaled = LEVEL_STD * self.levels
        return np.asarray(scaled @ scaled.T)


def of_sizes(sizes: Reals) -> Reals:
    """Levels of runs where every size has its own."""
    return np.asarray(sizes[:, None] == np.unique(sizes)[None], dtype=float)


@dataclass(frozen=True, kw_only=True, slots=True)
class Surface:
    """What is known of all kinds together."""

    centre: float  # ln depth, at 1M parameters
    growth: float  # of that, by ln size
    mean: tuple[float, ...]  # of the coefficients
    spread: tuple[float, ...]  # their standard deviations
    wave: float  # standard deviation of the wave
    size_length: float
    depth_length: float
    misfit: float  # standard deviation of a network about the surface, seeds aside
    weights: tuple[float, ...]  # of the scales

    def terms(self, sizes: Reals, depths: Reals) -> Reals:
        """Those that coefficients multiply, about its centre."""
        return terms((self.centre, self.growth), sizes, depths)

    def covariance(self, sizes: Reals, depths: Reals, others: tuple[Reals, Reals]) -> Reals:
        """Between networks and others, at a scale of 1."""
        spread = np.array(self.spread) ** 2
        linear = (self.terms(sizes, depths) * spread) @ self.terms(*others).T
        away = ((sizes[:, None] - others[0]) / self.size_length) ** 2
        away += ((depths[:, None] - others[1]) / self.depth_length) ** 2
        return np.asarray(linear + self.wave**2 * np.exp(-away / 2))

    def given(self, observed: Observed | None) -> "Posterior":
        """What it says of a kind after these runs."""
        if observed is None or not len(observed.sizes):
            return Posterior(surface=self, observed=None, solved=(), weights=self.weights)
        solved = tuple(self._solved(observed, scale) for scale in SCALES)
        logs = np.array([each.evidence for each in solved]) + np.log(self.weights)
        likely = np.exp(logs - logs.max())
        weights = tuple(float(weight) for weight in likely / likely.sum())
        return Posterior(surface=self, observed=observed, solved=solved, weights=weights)

    def log_evidence(self, observed: Observed) -> float:
        """ln of the probability of these runs."""
        logs = np.array([self._solved(observed, scale).evidence for scale in SCALES])
        logs = logs + np.log(self.weights)
        return float(logs.max() + math.log(np.exp(logs - logs.max()).sum()))

    def _solved(self, observed: Observed, scale: float) -> "_Solved":
        from scipy.linalg import cho_factor, cho_solve

        places = observed.sizes, observed.depths
        own = scale**2 * self.covariance(*places, places)
        own += observed.free + np.diag(observed.variances + self.misfit**2)
        factor = cho_factor(own, lower=True)
        left = observed.losses - scale * self.terms(*places) @ np.array(self.mean)
        solution = cho_solve(factor, left)
        evidence = -left @ solution / 2 - np.log(np.diag(factor[0])).sum()
        return _Solved(scale=scale, factor=factor, solution=solution, evidence=float(evidence))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Solved:
    """Runs, at one scale."""

    scale: float
    factor: tuple[Reals, bool]  # of their covariance
    solution: Reals  # its inverse times what the mean leaves
    evidence: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Posterior:
    """A surface after runs on one kind of data, or without any."""

    surface: Surface
    observed: Observed | None
    solved: tuple[_Solved, ...]
    weights: tuple[float, ...]  # of the scales

    def draws(self, size: float, depths: Reals, count: int, seed: int = 0) -> Reals:
        """ln loss at these depths (layers) up to a level, as it may be: `count` rows."""
        random = np.random.default_rng(seed)
        logs, sizes = np.log(depths), np.full(len(depths), math.log(size / 1e6))
        counts = random.multinomial(count, self.weights)
        parts = [
            self._drawn(at, sizes, logs, random.standard_normal((some, len(depths))))
            for at, some in enumerate(counts)
            if some
        ]
        return np.concatenate(parts)

    def _drawn(self, at: int, sizes: Reals, logs: Reals, normal: Reals) -> Reals:
        from scipy.linalg import cho_solve

        surface, scale = self.surface, SCALES[at]
        mean = scale * surface.terms(sizes, logs) @ np.array(surface.mean)
        own = scale**2 * surface.covariance(sizes, logs, (sizes, logs))
        if self.observed is not None:
            solved = self.solved[at]
            places = self.observed.sizes, self.observed.depths
            cross = scale**2 * surface.covariance(sizes, logs, places)
            mean = mean + cross @ solved.solution
            own = own - cross @ cho_solve(solved.factor, cross.T)
        roots, directions = np.linalg.eigh((own + own.T) / 2 + NUGGET * np.eye(len(own)))
        return np.asarray(mean + (normal * np.sqrt(np.clip(roots, 0, None))) @ directions.T)


def fit_surface(kinds: Sequence[Observed], start: Surface | None = None) -> Surface:
    """The surface under which these kinds are most likely, weakly held to the usual one."""
    from scipy.optimize import minimize

    usual = _usual()
    likely = np.full(len(usual), LIKELY_FACTOR)
    likely[-2:] = LIKELY_CENTRE, LIKELY_GROWTH

    def cost(numbers: Reals) -> float:
        surface = _surface(numbers)
        away = ((numbers - usual) / likely) ** 2
        return float(away.sum() / 2) - math.fsum(surface.log_evidence(kind) for kind in kinds)

    begin = usual if start is None else _numbers(start)
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(begin)
    for at in (2 * TERMS + 1, 2 * TERMS + 2):
        ends[at] = math.log(LEAST_LENGTH), math.log(MOST_LENGTH)
    options = {"maxiter": 200, "maxfun": 10**5, "eps": 1e-6, "ftol": 1e-8}
    found = minimize(cost, begin, method="L-BFGS-B", bounds=ends, options=options)
    return _surface(found.x)


def _usual() -> Reals:
    spread, wave = np.log(USUAL_SPREAD), np.log(USUAL_WAVE)
    mean = np.array(USUAL_MEAN) / UNIT
    return np.concatenate([mean, spread, wave, np.zeros(len(SCALES) - 1), USUAL_CENTRE])


def _numbers(surface: Surface) -> Reals:
    wave = surface.wave, surface.size_length, surface.depth_length, surface.misfit
    odds = np.log(surface.weights[:-1]) - math.log(surface.weights[-1])
    mean = np.array(surface.mean) / UNIT
    centre = surface.centre, surface.growth
    return np.concatenate([mean, np.log(surface.spread), np.log(wave), odds, centre])


def _surface(numbers: Reals) -> Surface:
    mean, spread, rest = np.split(numbers, [TERMS, 2 * TERMS])
    wave, size_length, depth_length, misfit = map(float, np.exp(rest[:4]))
    odds = np.exp(np.append(rest[4:-2], 0.0))
    return Surface(
        centre=float(rest[-2]),
        growth=float(rest[-1]),
        mean=tuple(float(UNIT * number) for number in mean),
        spread=tuple(map(float, np.exp(spread))),
        wave=wave,
        size_length=size_length,
        depth_length=depth_length,
        misfit=misfit,
        weights=tuple(map(float, odds / odds.sum())),
    )


def rounded(surface: Surface, digits: int = 6) -> Surface:
    """With as many digits as a file keeps."""

    def short(number: float) -> float:
        return float(f"{number:.{digits}g}")

    weights = [short(weight) for weight in surface.weights[:-1]]
    return replace(
        surface,
        centre=short(surface.centre),
        growth=short(surface.growth),
        mean=tuple(map(short, surface.mean)),
        spread=tuple(map(short, surface.spread)),
        wave=short(surface.wave),
        size_length=short(surface.size_length),
        depth_length=short(surface.depth_length),
        misfit=short(surface.misfit),
        weights=(*weights, 1 - math.fsum(weights)),
    )
