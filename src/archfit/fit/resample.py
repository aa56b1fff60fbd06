"""Random numbers that depend on what is fitted and on nothing else: same records, same numbers."""

import hashlib
from typing import TYPE_CHECKING

from archfit.fit.forms import Reals

if TYPE_CHECKING:
    import numpy as np

RESAMPLES = 2000
INSIDE = 0.90  # of every interval
TAIL = (1 - INSIDE) / 2


def generator(seed: int, name: object) -> "np.random.Generator":
    """Numbers of their own for each thing that is named, whatever else is fitted beside it."""
    import numpy as np

    digest = hashlib.sha256(f"{seed}\n{name!r}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8]))


def scales(seed: int, name: object, degrees: int) -> Reals:
    """What the true standard deviation may be, over the one that was seen: sqrt(nu / chi^2_nu)."""
    import numpy as np

    draws = generator(seed, ("scale", name)).chisquare(degrees, RESAMPLES)
    return np.sqrt(degrees / draws)


def tail_of_best(candidates: int) -> float:
    """What a tail must be to say that one is worse than the best of so many.

    Of equal candidates one is best by luck and one worst: Bonferroni, over all pairs.
    """
    return 2 * TAIL / (candidates * (candidates - 1))


def interval(draws: Reals) -> tuple[float, float]:
    """The middle 90 % of the draws."""
    import numpy as np

    low, high = np.quantile(draws, [TAIL, 1 - TAIL])
    return float(low), float(high)
