"""How many seeds would settle a question."""

import math

MOST_SEEDS = 1000
ENOUGH = 1.6449 + 0.8416  # standard errors: a 90 % interval leaves out zero with probability 0.8


def seeds_needed(effect: float, error: float, seeds: int) -> int | None:
    """Seeds with which an effect of this size would be told from zero; None above MOST_SEEDS.

    `error` is the standard error with `seeds` seeds; it falls with their square root.
    """
    if effect == 0 or (ENOUGH * error / effect) ** 2 * seeds > MOST_SEEDS:
        return None
    return max(2, math.ceil(seeds * (ENOUGH * error / effect) ** 2))
