"""How many seeds would settle a question."""

import math

from archfit.fit.resample import TAIL

MOST_SEEDS = 1000
POWER = 0.8  # of telling an effect that is there


def seeds_needed(effect: float, error: float, seeds: int, *, tail: float = TAIL) -> int | None:
    """Seeds with which an effect of this size would be told from zero; None above MOST_SEEDS.

    `error` is the standard error with `seeds` seeds; it falls with their square root. `tail` is
    that of the interval which must leave out zero.
    """
    from scipy.special import ndtri

    enough = float(ndtri(1 - tail) + ndtri(POWER))  # standard errors
    if effect == 0 or (enough * error / effect) ** 2 * seeds > MOST_SEEDS:
        return None
    return max(2, math.ceil(seeds * (enough * error / effect) ** 2))
