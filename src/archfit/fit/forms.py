"""The shapes that a loss may have over size, each fitted to many curves at once.

With u = ln N - middle, every shape is a row of seven numbers (level, slope, alpha, second, third,
fourth, fifth):

    loss(u) = level + slope (1 - e^(-alpha u)) / alpha + second u^2 + third u^3 + ... + fifth u^5

A power law with a floor, E + A N^-alpha, has only the first three (alpha = 0 is a line in ln N);
polynomials have alpha = 0.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from archfit.spec import lazy_numpy as np

Reals: TypeAlias = "NDArray[np.float64]"

LEAST_ALPHA, MOST_ALPHA, ALPHAS = -0.5, 2.0, 51  # losses of networks have 0.05 to 0.5
COEFFICIENTS = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class CurveForm:
    """A shape by name, and how many of its numbers are free."""

    name: str
    free: int


POWER = CurveForm(name="power law", free=3)
QUADRATIC = CurveForm(name="quadratic", free=3)
CUBIC = CurveForm(name="cubic", free=4)
QUARTIC = CurveForm(name="quartic", free=5)
QUINTIC = CurveForm(name="quintic", free=6)


def values(rows: Reals, u: Reals) -> Reals:
    """The loss of each row at each u."""
    level, slope, alpha, *higher = (rows[:, [at]] for at in range(COEFFICIENTS))
    total = level + slope * bend(alpha, u)
    for power, factor in enumerate(higher, start=2):
        total = total + factor * u**power
    return total


def bend(alpha: Reals, u: Reals) -> Reals:
    """(1 - e^(-alpha u)) / alpha, which is u at alpha = 0."""
    safe = np.where(np.abs(alpha) < 1e-9, 1.0, alpha)
    return np.where(np.abs(alpha) < 1e-9, u, -np.expm1(-alpha * u) / safe)


def fit_form(form: CurveForm, u: Reals, losses: Reals, weights: Reals) -> tuple[Reals, Reals]:
    """Rows of least weighted squares for each row of losses, and what is left of the squares."""
    rows = _power_rows(u, losses, weights) if form is POWER else _rows(form, u, losses, weights)
    left = np.asarray(((losses - values(rows, u)) ** 2 * weights).sum(axis=1))
    return rows, left


def _squares_left(alphas: Reals, u: Reals, losses: Reals, weights: Reals) -> Reals:
    """Weighted squares that a power law of each exponent leaves of each row of losses."""
    root = np.sqrt(weights)
    bends = bend(alphas[:, None], u)
    first = np.broadcast_to(root / np.sqrt(weights.sum()), bends.shape)
    second = bends * root
    second = second - first * (first * second).sum(axis=1, keepdims=True)
    second = second / np.linalg.norm(second, axis=1, keepdims=True)
    scaled = losses * root
    explained = (scaled @ first.T) ** 2 + (scaled @ second.T) ** 2
    return np.asarray((scaled**2).sum(axis=1, keepdims=True) - explained)


def _power_rows_at(alpha: Reals, u: Reals, losses: Reals, weights: Reals) -> Reals:
    """The best level and slope of each row of losses for the exponent given to it."""
    share = weights / weights.sum()
    bends = bend(alpha[:, None], u)
    bend_mean, loss_mean = bends @ share, losses @ share
    centred = bends - bend_mean[:, None]
    slope = ((losses - loss_mean[:, None]) * centred * share).sum(axis=1)
    slope = slope / (centred**2 * share).sum(axis=1)
    rows = np.zeros((len(slope), COEFFICIENTS))
    rows[:, 0], rows[:, 1], rows[:, 2] = loss_mean - slope * bend_mean, slope, alpha
    return rows


def _power_rows(u: Reals, losses: Reals, weights: Reals) -> Reals:
    alphas = np.linspace(LEAST_ALPHA, MOST_ALPHA, ALPHAS)
    middle = losses.mean(axis=1, keepdims=True)  # small numbers lose fewer digits
    left = _squares_left(alphas, u, losses - middle, weights)
    best = np.clip(left.argmin(axis=1), 1, len(alphas) - 2)
    every = np.arange(len(best))
    before, at, after = left[every, best - 1], left[every, best], left[every, best + 1]
    curvature = before - 2 * at + after
    step = np.where(curvature > 0, (before - after) / np.where(curvature > 0, 2 * curvature, 1), 0)
    moved = np.where(curvature > 0, np.clip(step, -1, 1), np.sign(before - after))
    alpha = alphas[best] + moved * (alphas[1] - alphas[0])
    for _ in range(2):  # a parabola through the grid is a little off
        alpha = _refined(alpha, u, losses, weights)
    return _power_rows_at(alpha, u, losses, weights)


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


def _rows(form: CurveForm, u: Reals, losses: Reals, weights: Reals) -> Reals:
    root = np.sqrt(weights)
    design = np.vander(u, form.free, increasing=True) * root[:, None]
    found = (losses * root) @ np.linalg.pinv(design).T
    rows = np.zeros((len(losses), COEFFICIENTS))
    rows[:, :2] = found[:, :2]
    rows[:, 3 : 1 + form.free] = found[:, 2:]
    return rows
