"""Forms compared by what they were not fitted to: each point left out once."""

import math
from collections.abc import Callable, Mapping

from archfit.fit.forms import POWER, Reals, fit_form, values
from archfit.fit.laws import Rival

Predictor = Callable[[Reals, Reals, Reals, float], float]  # x, y, weights and where; what is y

LEAST_POINTS = 4  # three are left to fit a form of three numbers


def line(x: Reals, y: Reals, weights: Reals, at: float) -> float:
    """y at a point by a straight line."""
    share = weights / weights.sum()
    x_mean, y_mean = float(x @ share), float(y @ share)
    slope = float(((x - x_mean) * (y - y_mean)) @ share) / float((x - x_mean) ** 2 @ share)
    return y_mean + slope * (at - x_mean)


def constant(x: Reals, y: Reals, weights: Reals, at: float) -> float:
    """y by its mean."""
    del x, at
    return float(y @ weights / weights.sum())


def power(x: Reals, y: Reals, weights: Reals, at: float) -> float:
    """y by a power law with a floor of e^x."""
    import numpy as np

    middle = float(x.mean())
    rows, _ = fit_form(POWER, x - middle, y[None], weights)
    return float(values(rows, np.array([at - middle]))[0, 0])


def compared(
    forms: Mapping[str, Predictor], x: Reals, y: Reals, weights: Reals
) -> tuple[Rival, ...]:
    """The forms, that of the least held-out error first; x must be in order."""
    found = [_held_out(name, predictor, x, y, weights) for name, predictor in forms.items()]
    return tuple(sorted(found, key=lambda rival: rival.held_out_error))


def _held_out(name: str, predictor: Predictor, x: Reals, y: Reals, weights: Reals) -> Rival:
    import numpy as np

    errors = []
    for at in range(len(x)):
        kept = np.arange(len(x)) != at
        errors.append(predictor(x[kept], y[kept], weights[kept], float(x[at])) - float(y[at]))
    share = weights / weights.sum()
    square = float(np.square(errors) @ share)
    return Rival(form=name, held_out_error=math.sqrt(square), last_error=abs(errors[-1]))
