"""The law of Levine et al.: from which width on a network is better deepened, ln d = a + b L."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from archfit.fit.crossing import CrossingDraws
from archfit.fit.families import FamilyKey
from archfit.fit.forms import Reals
from archfit.fit.laws import Law, Parameter, Rival
from archfit.fit.resample import interval
from archfit.fit.rivals import compared, constant, line

FORM = "ln width = a + b depth"
LEAST_CROSSINGS, CROSSINGS_FOR_INTERVAL = 2, 3
MISFIT = 0.01


def transition_laws(draws: Iterable[CrossingDraws]) -> tuple[Law, ...]:
    """A law for each set of neighbouring depths whose deeper networks win above two crossings."""
    questions: dict[FamilyKey, list[CrossingDraws]] = defaultdict(list)
    for one in draws:
        if one.crossing.neighbours and one.crossing.deeper_wins_from_here_on:
            questions[replace(one.crossing.shallow, depth=1)].append(one)
    return tuple(
        _law(sorted(found, key=lambda one: one.crossing.shallow.depth))
        for found in questions.values()
        if len(found) >= LEAST_CROSSINGS
    )


def _law(found: Sequence[CrossingDraws]) -> Law:
    import numpy as np

    depths = np.array([float(one.crossing.shallow.depth) for one in found])
    centres = np.array([math.log(one.crossing.width or math.nan) for one in found])
    draws = np.stack([one.log_widths for one in found], axis=1)
    inner = np.quantile(draws, [0.1587, 0.8413], axis=0)
    weights = (2 / (inner[1] - inner[0])) ** 2
    inflation = _inflation(depths, centres, weights)
    spread = centres + (draws - centres) * math.sqrt(inflation)
    (a,), (b,) = _lines(depths, centres[None], weights)
    a_draws, b_draws = _lines(depths, spread, weights)
    return Law(
        kind="transition",
        form=FORM,
        family=found[0].crossing.shallow,
        parameters=(
            _parameter("a", float(a), a_draws, len(found)),
            _parameter("b", float(b), b_draws, len(found)),
        ),
        rivals=_rivals(depths, centres, weights),
        points=len(found),
        seeds=min(one.crossing.seeds for one in found),
        inflation=inflation,
    )


def _parameter(name: str, value: float, draws: Reals, crossings: int) -> Parameter:
    """With an interval where the crossings can also contradict the law."""
    if crossings < CROSSINGS_FOR_INTERVAL:
        return Parameter(name=name, value=value, low=None, high=None)
    low, high = interval(draws)
    return Parameter(name=name, value=value, low=low, high=high)


def _lines(x: Reals, rows: Reals, weights: Reals) -> tuple[Reals, Reals]:
    """Intercept and slope of each row."""
    share = weights / weights.sum()
    centred = x - x @ share
    slope = rows @ (centred * share) / float(centred**2 @ share)
    return rows @ share - slope * float(x @ share), slope


def _inflation(depths: Reals, centres: Reals, weights: Reals) -> float:
    """By how much crossings scatter about the line beyond their own intervals, if they do."""
    from scipy.special import chdtrc

    spare = len(depths) - 2
    (a,), (b,) = _lines(depths, centres[None], weights)
    left = float((centres - a - b * depths) ** 2 @ weights)
    if spare < 1 or float(chdtrc(spare, left)) >= MISFIT:
        return 1.0
    return left / spare


def _rivals(depths: Reals, centres: Reals, weights: Reals) -> tuple[Rival, ...]:
    """By crossings that were left out; a line needs two others."""
    import numpy as np

    if len(depths) < CROSSINGS_FOR_INTERVAL:
        return ()

    def by_logarithm(x: Reals, y: Reals, weights: Reals, at: float) -> float:
        return line(np.log(x), y, weights, math.log(at))

    forms = {FORM: line, "ln width = a + b ln depth": by_logarithm, "ln width = a": constant}
    return compared(forms, depths, centres, weights)
