"""The ladder: small networks on the user's data, a round after another, each told by those before.

It tries depths that may be best at the largest size that can be paid, the budget itself if there is
time, then at smaller ones, and ends when little is left to lose at the budget or nothing more can
be paid. What to train next is decided here, from what is known so far alone; who trains it, and
what it costs, is said by the caller: a machine and its clock, or in back-tests the atlas and
operations.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from archfit.advise.prior import DRAWS, LEAST_SIZE, KindRuns, Knowledge, log_tokens
from archfit.advise.surface import USUAL_TOKENS, Observed, joined
from archfit.fit.best_depth import SHARE_OF_SIZE
from archfit.spec import RunRecord
from archfit.spec import lazy_numpy as np

SIZES = tuple(LEAST_SIZE << doubling for doubling in range(12))
DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
ABOUT = 1.1  # times the budget: widths are whole numbers
ENOUGH = 0.005  # bits per byte of expected regret: with less, nothing more is trained
RUN_NOISES = (0.004, 0.011, 0.025, 0.05)  # of ln loss by the seed, as kinds of the atlas have it
FAR = 4  # times the largest size measured: a budget beyond has a trend that was not seen
FIRST_SHARE = 0.05  # of what can be paid, at most, for a first look at the smallest size
TAIL = 0.15  # of the probability on either side of the depths that are tried
MOST_DEPTHS, LEAST_DEPTHS = 6, 2
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

    @classmethod
    def of(cls, size: int, record: RunRecord) -> "LadderRun":
        """What the record of a network that was meant to have a size says."""
        return cls(
            size=size,
            depth=record.spec.architecture.depth,
            seed=record.spec.seed,
            params=record.spec.architecture.params,
            bits=record.evaluations[-1].heldout_bits_per_byte,
            tokens_per_param=record.spec.training_tokens / size,
        )


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
    price: Callable[[Rung], float]  # in shares of what is left; above 1 there is no time for it
    tokens_per_param: float = USUAL_TOKENS  # that a network of the budget will be trained on


def knowledge(prior: Knowledge, runs: Sequence[LadderRun]) -> Knowledge:
    """The prior after runs on the data; those too small to tell of larger ones are left out."""
    told = [run for run in runs if run.size >= LEAST_SIZE]
    if not told:
        return prior
    surface = prior.posterior.surface
    likely = max((_observed(prior, told, noise) for noise in RUN_NOISES), key=surface.log_evidence)
    kinds = [kind.observed for kind in prior.kinds] if prior.family else []
    return replace(
        prior,
        posterior=surface.given(joined([*kinds, likely])),
        kind=len(kinds),
        deepest=max(prior.deepest, *(run.depth for run in told)),
        largest=max(run.size for run in told),
        own_runs=len(told),
    )


def _observed(prior: Knowledge, runs: Sequence[LadderRun], noise: float) -> Observed:
    """Runs brought to the sizes they were meant to have, if their seeds scatter so much."""
    rows = []
    for run in runs:
        missed = SHARE_OF_SIZE * prior.slope(run.size) * math.log(run.params / run.size)
        logs = math.log(run.size / 1e6), math.log(run.depth), math.log(run.bits) - missed
        rows.append((*logs, noise**2, log_tokens(run.tokens_per_param)))
    return KindRuns(name="", rows=tuple(rows), block=prior.block).observed


def next_rung(prior: Knowledge, runs: Sequence[LadderRun], limits: LadderLimits) -> Rung | None:
    """What to train next; None: enough is known, or nothing more can be paid.

    Two depths of a size near the budget tell more than many of a small one, so that the largest
    size comes that can be paid; before it the smallest, where that costs next to nothing, which
    also shows how fast this machine is.
    """
    known = knowledge(prior, runs)
    found = known.outlook(limits.budget, limits.deepest, limits.tokens_per_param)
    is_near = any(run.size * FAR >= limits.budget for run in runs)
    if is_near and prior.level(limits.budget) * found.expected_regret < ENOUGH:
        return None
    sizes = [size for size in SIZES if size <= ABOUT * limits.budget and limits.depths(size)]
    if sizes and not runs:
        depths = contenders(known, sizes[0], limits.depths(sizes[0]), MOST_DEPTHS)
        first = Rung(size=sizes[0], depths=depths, seed=0)
        if limits.price(first) <= FIRST_SHARE:
            return first
    rungs = (rung for size in reversed(sizes) for rung in _rungs(known, runs, size, limits))
    return next((rung for rung in rungs if limits.price(rung) <= 1), None)


def _rungs(
    known: Knowledge, runs: Sequence[LadderRun], size: int, limits: LadderLimits
) -> Iterator[Rung]:
    """What could be trained at a size, many depths first: those of a seed, then of the next."""
    done = {(run.depth, run.seed) for run in runs if run.size == size}
    for seed in range(MOST_SEEDS):
        left = [depth for depth in limits.depths(size) if (depth, seed) not in done]
        if left:
            for count in range(min(MOST_DEPTHS, len(left)), LEAST_DEPTHS - 1, -1):
                yield Rung(size=size, depths=contenders(known, size, left, count), seed=seed)
            return


def contenders(known: Knowledge, size: int, depths: Sequence[int], count: int) -> tuple[int, ...]:
    """So many of these depths, spread over where the best of a size may be, the likely ends too."""
    drawn = known.posterior.draws(size, np.array(depths, dtype=float), DRAWS, known.training())
    best = np.bincount(drawn.argmin(axis=1), minlength=len(depths)) / len(drawn)
    middles = np.cumsum(best) - best / 2
    at = [int(np.abs(middles - share).argmin()) for share in np.linspace(TAIL, 1 - TAIL, count)]
    likely = sorted(range(len(depths)), key=lambda each: -best[each])
    kept = [*dict.fromkeys([*at, *likely])][:count]  # one depth may stand for two shares
    return tuple(sorted(depths[each] for each in kept))


def climbed(
    prior: Knowledge,
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
