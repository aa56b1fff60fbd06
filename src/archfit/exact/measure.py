"""A separation rank, measured modulo primes, with what is certain about it.

A rank modulo a prime is never above that over the rationals, and the rank at one point never above
that at almost all: what is found is a lower bound for generic weights, for certain. It is too small
only if the drawn numbers are a zero of a minor that is not zero as a polynomial (Schwartz and
Zippel: at most degree / p), or if the prime divides all its coefficients. Where it meets the proved
upper bound it is exact, whatever the chance.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from archfit.exact.arrays import Arrays
from archfit.exact.elimination import modular_rank
from archfit.exact.evaluate import Evaluator
from archfit.exact.experiment import Experiment, degree_bounds, lower_bound, upper_bound
from archfit.exact.inputs import Vocabulary
from archfit.exact.matrix import degree_matrices, whole_matrix
from archfit.exact.network import random_mixes
from archfit.exact.prime_field import PrimeField
from archfit.exact.samples import sample_sides

SMALL_PRIMES = (8_388_593, 8_388_587)  # below 2^23: fast
LARGE_PRIMES = (2_147_483_647, 2_147_483_629, 2_147_483_587)  # below 2^31: sure
MARGIN = 6  # samples beyond the upper bound: a rank below their number was not cut off
FIRST_SAMPLES = 64  # where no upper bound is known
WORTH_SPLITTING = 1000  # samples from which on parts by degree are quicker

Progress = Callable[[str, int, int], None]  # what is done, pairs done, of how many


def silent(what: str, done: int, total: int) -> None:
    """Nobody is watching."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One prime, one set of weights and samples, one rank."""

    prime: int
    seed: int
    rank: int
    samples: int  # of each side; of parts by degree, the sum over all parts
    parts: tuple[int, ...] | None  # ranks by degree in S_P, where the matrix was split
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """A separation rank with its certificate."""

    experiment: Experiment
    trials: tuple[Trial, ...]
    upper: int | None
    lower: int | None

    @property
    def rank(self) -> int:
        """The largest found, which is certain as a lower bound."""
        return max(trial.rank for trial in self.trials)

    @property
    def is_exact(self) -> bool:
        """Whether it meets the proved upper bound."""
        return self.rank == self.upper

    @property
    def failure_probability(self) -> float:
        """That the generic rank modulo these primes is larger after all: 0 if exact."""
        if self.is_exact:
            return 0.0
        degree = (self.rank + 1) * self.experiment.minor_degree
        return prod(
            min(1.0, degree / trial.prime) for trial in self.trials if trial.rank == self.rank
        )

    @property
    def seconds(self) -> float:
        """Of all trials."""
        return sum(trial.seconds for trial in self.trials)


def measure(
    experiment: Experiment,
    arrays: Arrays,
    *,
    primes: tuple[int, ...] = (),
    progress: Progress,
) -> Measurement:
    """The generic separation rank, under two primes and seeds.

    Small primes come first: if the rank meets the upper bound, it is exact and they were enough.
    """
    upper = upper_bound(experiment)

    def trials_with(chosen: tuple[int, ...]) -> tuple[Trial, ...]:
        return tuple(
            _trial(experiment, PrimeField(prime=prime, arrays=arrays), seed, upper, progress)
            for seed, prime in enumerate(chosen)
        )

    trials = trials_with(primes)
    if not primes and upper is not None:
        trials = trials_with(SMALL_PRIMES[:1])
        if trials[0].rank == upper:
            trials += trials_with(SMALL_PRIMES)[1:]
        else:
            trials = ()
    if not trials:
        trials = trials_with(LARGE_PRIMES[:2])
        if trials[0].rank != trials[1].rank:  # one of them was unlucky
            trials += trials_with(LARGE_PRIMES)[2:]
    return Measurement(
        experiment=experiment, trials=trials, upper=upper, lower=lower_bound(experiment)
    )


def _trial(
    experiment: Experiment, field: PrimeField, seed: int, upper: int | None, progress: Progress
) -> Trial:
    start = time.perf_counter()
    samples = FIRST_SAMPLES if upper is None else upper + MARGIN
    if experiment.is_homogeneous and samples > WORTH_SPLITTING:
        ranks, samples = _parts(experiment, field, seed, progress)
        rank, parts = sum(ranks), ranks
    else:
        rank, samples = _whole(experiment, field, seed, samples, progress)
        parts = None
    return Trial(
        prime=field.prime,
        seed=seed,
        rank=rank,
        samples=samples,
        parts=parts,
        seconds=time.perf_counter() - start,
    )


def _whole(
    experiment: Experiment, field: PrimeField, seed: int, samples: int, progress: Progress
) -> tuple[int, int]:
    """Rank and samples of the whole matrix; of more samples where they cut the rank off."""
    evaluator = _evaluator(experiment, field, seed)
    while True:
        sides = sample_sides(experiment, field, samples=samples, seed=2 * seed + 1)
        matrix = whole_matrix(
            evaluator, sides, experiment.partition, lambda a, b: progress("evaluating", a, b)
        )
        size = min(matrix.shape)
        progress("eliminating", 0, size)
        rank = modular_rank(field, matrix)
        if rank < size or isinstance(experiment.inputs, Vocabulary):  # all fillings, or many
            return rank, size
        samples *= 2


def _parts(
    experiment: Experiment, field: PrimeField, seed: int, progress: Progress
) -> tuple[tuple[int, ...], int]:
    """Ranks of the parts by degree, and how many samples they had together."""
    sizes = tuple(bound + MARGIN for bound in degree_bounds(experiment))
    sides = sample_sides(experiment, field, samples=max(sizes), seed=2 * seed + 1)
    evaluator = _evaluator(experiment, field, seed)
    parts = degree_matrices(evaluator, sides, sizes, lambda a, b: progress("evaluating", a, b))
    ranks = []
    for done, part in enumerate(parts):
        progress("eliminating", done, len(parts))
        ranks.append(modular_rank(field, part))
    return tuple(ranks), sum(sizes)


def _evaluator(experiment: Experiment, field: PrimeField, seed: int) -> Evaluator:
    return Evaluator(
        network=experiment.network,
        field=field,
        mixes=random_mixes(experiment.network, field, 2 * seed),
        entry=experiment.entry,
    )
