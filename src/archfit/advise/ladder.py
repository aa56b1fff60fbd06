"""The ladder: small networks on the user's data, a round after another, each told by those before.

It begins at the smallest size that says something of larger ones, tries the depths that may be best
there, goes up a size, as far as the budget itself if there is time, and ends when little is left to
lose at the budget or nothing more can be paid. What to train next is decided here, from what is
known so far alone; who trains it, and what it costs, is said by the caller: a machine and its
clock, or in back-tests the atlas and operations.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from archfit.advise.prior import DRAWS, FamilyPrior
from archfit.advise.prior_runs import LEAST_SIZE, log_tokens, observed_rows
from archfit.advise.shapes import Knowledge
from archfit.advise.surface import USUAL_TOKENS, Observed, Training
from archfit.fit.best_depth import SHARE_OF_SIZE
from archfit.spec import lazy_numpy as np

SIZES = tuple(LEAST_SIZE << doubling for doubling in range(12))
DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
ABOUT = 1.1  # times the budget: widths are whole numbers
ENOUGH = 0.005  # bits per byte of expected regret: with less, nothing more is trained
RUN_NOISES = (0.004, 0.011, 0.025, 0.05)  # of ln loss by the seed, as kinds of the atlas have it
UNLIKELY = 0.04  # probability of being best, below which a depth is not tried
MOST_DEPTHS, LEAST_DEPTHS = 6, 3
MOST_SEEDS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class LadderRun:
    """A network on the user's data, trained."""

    size: int  # that it was meant to have
    depth: int
    seed: int
    params: int
    bits: float  # per byte, held out
    tokens_per_param: float = USUAL_TOKENS


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """Networks to train side by side: depths of one size, each with this seed."""

    size: int
    depths: tuple[int, ...]
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LadderLimits:
    """What a ladder may do."""

    budget: float  # the size that is asked about
    deepest: float  # network of that size
    depths: Callable[[int], Sequence[int]]  # that can be trained at a size
    pays: Callable[[Rung], bool]  # whether there is time for it
    tokens_per_param: float = USUAL_TOKENS  # that a network of the budget will be trained on


def knowledge(prior: FamilyPrior, runs: Sequence[LadderRun]) -> Knowledge:
    """The prior after runs on the data; those too small to tell of larger ones are left out."""
    told = [run for run in runs if run.size >= LEAST_SIZE]
    if not told:
        return Knowledge.of_prior(prior)
    surface = prior.posterior.surface
    likely = max((_observed(prior, told, noise) for noise in RUN_NOISES), key=surface.log_evidence)
    return Knowledge(
        prior=prior,
        posterior=prior.with_runs(likely),
        kind=prior.own_kind,
        deepest=max(prior.deepest, *(run.depth for run in told)),
        largest=max(run.size for run in told),
        own_runs=len(told),
    )


def _observed(prior: FamilyPrior, runs: Sequence[LadderRun], noise: float) -> Observed:
    """Runs brought to the sizes they were meant to have, if their seeds scatter so much."""
    rows = []
    for run in runs:
        missed = SHARE_OF_SIZE * prior.slope(run.size) * math.log(run.params / run.size)
        logs = math.log(run.size / 1e6), math.log(run.depth), math.log(run.bits) - missed
        rows.append((*logs, noise**2, log_tokens(run.tokens_per_param)))
    return observed_rows(rows)


def next_rung(prior: FamilyPrior, runs: Sequence[LadderRun], limits: LadderLimits) -> Rung | None:
    """What to train next; None: enough is known, or nothing more can be paid."""
    known = knowledge(prior, runs)
    found = known.outlook(limits.budget, limits.deepest, limits.tokens_per_param)
    level = prior.level(limits.budget)
    if known.own_runs and level * found.expected_regret < ENOUGH:
        return None
    top = max((run.size for run in runs if run.size in SIZES), default=0)
    larger = [size for size in SIZES if top < size <= ABOUT * limits.budget]
    tries = [(size, 0) for size in larger[:1]] + [(top, seed) for seed in _seeds(runs, top)]
    rungs = (Rung(size=size, depths=tuple(limits.depths(size)), seed=seed) for size, seed in tries)
    affordable = (_affordable(known, rung, limits) for rung in rungs)
    return next((rung for rung in affordable if rung is not None), None)


def _seeds(runs: Sequence[LadderRun], top: int) -> range:
    """Seeds that the largest size could still have."""
    used = max((run.seed for run in runs if run.size == top), default=MOST_SEEDS)
    return range(used + 1, MOST_SEEDS)


def _affordable(known: Knowledge, rung: Rung, limits: LadderLimits) -> Rung | None:
    """The depths of a rung that may be best, as many as can be paid; None: too few to compare."""
    depths = contenders(known, rung.size, rung.depths)
    while len(depths) >= LEAST_DEPTHS:
        found = Rung(size=rung.size, depths=tuple(sorted(depths)), seed=rung.seed)
        if limits.pays(found):
            return found
        depths = depths[:-1]
    return None


def contenders(known: Knowledge, size: int, depths: Sequence[int]) -> list[int]:
    """Depths that may be the best of these at a size, the most likely first."""
    if not depths:
        return []
    drawn = known.posterior.draws(size, np.array(depths, dtype=float), DRAWS, Training(known.kind))
    best = np.bincount(drawn.argmin(axis=1), minlength=len(depths)) / len(drawn)
    order = sorted(range(len(depths)), key=lambda at: (-best[at], at))
    likely = [depths[at] for at in order if best[at] >= UNLIKELY]
    near = sorted(depths, key=lambda depth: abs(math.log(depth / depths[order[0]])))
    kept = likely[:MOST_DEPTHS]
    kept += [depth for depth in near if depth not in kept][: max(0, LEAST_DEPTHS + 1 - len(kept))]
    return kept


def climbed(
    prior: FamilyPrior,
    runs: Sequence[LadderRun],
    limits: LadderLimits,
    train: Callable[[Rung], Sequence[LadderRun]],
) -> tuple[LadderRun, ...]:
    """All runs, when the ladder has ended; `train` makes those of a rung."""
    found = tuple(runs)
    while (rung := next_rung(prior, found, limits)) is not None:
        more = train(rung)
        if not more:  # whatever was tried failed: trying it again would not help
            break
        found += tuple(more)
    return found
