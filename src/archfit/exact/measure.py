"""A separation rank, measured modulo primes, with what is certain about it and what it will take.

A rank modulo a prime is never above that over the rationals, and the rank at one point never above
that at almost all: what is found is a lower bound for generic weights, for certain. It is too small
only if the drawn numbers are a zero of a minor that is not zero as a polynomial (Schwartz and
Zippel: at most degree / p), or if the prime divides all its coefficients. Where it meets the proved
upper bound it is exact, whatever the chance.
"""

import importlib.util
import math
import os
import time
from dataclasses import dataclass, replace
from itertools import takewhile

from archfit.exact import experiment as experiments
from archfit.exact.elimination import modular_rank
from archfit.exact.experiment import MOST_LISTED, Experiment, Partition
from archfit.exact.matrix import Evaluator, Progress, output_matrices, random_mixes, sample_sides
from archfit.exact.prime_field import Arrays, PrimeField, check_prime
from archfit.spec.architecture import head_dim_of
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.sizes import parse_size

DEVICES = ("cpu", "cuda", "auto")
SMALL_PRIMES = (8_388_593, 8_388_587)  # below 2^23: fast
LARGE_PRIMES = (2_147_483_647, 2_147_483_629, 2_147_483_587)  # below 2^31: sure
MARGIN = 6  # samples beyond the upper bound: a rank below their number was not cut off
WORTH_SPLITTING = 1000  # samples from which on parts by degree may be quicker
MULTIPLICATION = 50  # of residues in an evaluation, over one in the elimination's products
HOPELESS = 10**7  # samples: nobody has the memory
TRIALS = 1 + 2 * 2.5  # one with a small prime, two with large ones, which take longer
# Seconds for a small prime, measured on two CPU cores and on one H200; elsewhere a rough guide.
EVALUATION = {"cpu": 1.3e-9, "cuda": 1.5e-11}  # a multiplication of one pair
COLUMN = {"cpu": 6e-5, "cuda": 1.3e-4}  # finding a pivot
CUBE = {"cpu": 4e-11, "cuda": 8e-14}  # of the number of samples: clearing the rows
CLEARING = 0.6  # of a matrix more while its rows are cleared


@dataclass(frozen=True, kw_only=True, slots=True)
class RankTrial:
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
    trials: tuple[RankTrial, ...]
    upper: int
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
        if not self.is_sampled_at_random:
            return 1.0
        degree = (self.rank + 1) * self.experiment.minor_degree
        return math.prod(
            min(1.0, degree / trial.prime) for trial in self.trials if trial.rank == self.rank
        )

    @property
    def is_sampled_at_random(self) -> bool:
        """Whether samples are random numbers, or all there are; tokens at random are neither."""
        return self.experiment.vocab is None or self.experiment.lists_all

    @property
    def seconds(self) -> float:
        """The time of all trials together."""
        return sum(trial.seconds for trial in self.trials)


def measure(
    experiment: Experiment, arrays: Arrays, *, primes: tuple[int, ...] = (), progress: Progress
) -> Measurement:
    """The generic separation rank, under two primes and seeds.

    Small primes come first: if the rank meets the upper bound, it is exact and they were enough.
    Else two large ones are taken, or three.
    """
    upper = experiments.upper_bound(experiment)

    def trial(seed: int, prime: int) -> RankTrial:
        field = PrimeField(prime=prime, arrays=arrays)
        return _trial(experiment, field, seed, upper + MARGIN, progress)

    trials = [trial(seed, prime) for seed, prime in enumerate(primes or SMALL_PRIMES[:1])]
    if not primes and trials[0].rank == upper:
        trials.append(trial(1, SMALL_PRIMES[1]))
    elif not primes:
        trials = [trial(seed, prime) for seed, prime in enumerate(LARGE_PRIMES[:2])]
        if trials[0].rank != trials[1].rank:  # one of them was unlucky
            trials.append(trial(2, LARGE_PRIMES[2]))
    lower = experiments.lower_bound(experiment)
    return Measurement(experiment=experiment, trials=tuple(trials), upper=upper, lower=lower)


def _trial(
    experiment: Experiment, field: PrimeField, seed: int, samples: int, progress: Progress
) -> RankTrial:
    start = time.perf_counter()
    mixes = random_mixes(experiment, field, 2 * seed)
    evaluator = Evaluator(experiment=experiment, field=field, mixes=mixes)
    sizes = part_sizes(experiment, samples)
    if 2 * len(sizes) >= field.prime:  # values of t^2 must be distinct modulo the prime
        sizes = ()
    samples = max(sizes, default=samples)
    sides = sample_sides(experiment, field, samples=samples, seed=2 * seed + 1)
    shapes = [(size, size) for size in sizes]
    shapes = shapes or [(int(sides.inside.shape[2]), int(sides.outside.shape[2]))]
    ranks = []
    for done, part in enumerate(output_matrices(evaluator, sides, shapes, progress)):
        progress("eliminating", done, len(shapes))
        ranks.append(modular_rank(field, part))
    return RankTrial(
        prime=field.prime,
        seed=seed,
        rank=sum(ranks),
        samples=sum(map(min, shapes)),
        parts=tuple(ranks) if sizes else None,
        seconds=time.perf_counter() - start,
    )


def part_sizes(experiment: Experiment, samples: int) -> tuple[int, ...]:
    """Samples of the parts by degree, where measuring them takes less than the whole; else ()."""
    mixes_degrees = experiment.residual or experiment.position_rank or experiment.vocab is not None
    if mixes_degrees or samples <= WORTH_SPLITTING:
        return ()
    sizes = tuple(min(bound + MARGIN, samples) for bound in experiments.degree_bounds(experiment))
    evaluation = MULTIPLICATION * experiment.multiplications
    split = max(sizes) ** 2 * len(sizes) * evaluation + sum(size**3 for size in sizes)
    return sizes if split < samples**2 * evaluation + samples**3 else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasurementCost:
    """What all trials of a measurement will take, known before they start."""

    gigabytes: float
    seconds: float

    def fits(self, *, seconds: float, gigabytes: float) -> bool:
        """Whether it stays within these limits."""
        return self.seconds <= seconds and self.gigabytes <= gigabytes


def estimate(experiment: Experiment, device: str) -> MeasurementCost:
    """Memory of the largest trial and time of all; `device` is cpu or cuda."""
    if (ways := experiment.token_fillings) is not None:
        matrices = [(min(MOST_LISTED, ways[0]), min(MOST_LISTED, ways[1]))]
    else:
        samples = min(experiments.upper_bound(experiment) + MARGIN, HOPELESS)
        sizes = part_sizes(experiment, samples) if samples < HOPELESS else ()
        matrices = [(size, size) for size in sizes or (samples,)]
    pairs = len(matrices) * math.prod(max(matrices))
    seconds = pairs * experiment.multiplications * EVALUATION[device]
    for matrix in matrices:
        short = min(matrix)
        seconds += short * COLUMN[device] + math.prod(matrix) * short * CUBE[device]
    numbers = [math.prod(matrix) for matrix in matrices]
    gigabytes = 8 * (sum(numbers) + CLEARING * max(numbers)) / 1e9
    return MeasurementCost(gigabytes=gigabytes, seconds=TRIALS * seconds)


def check_cost(experiment: Experiment, device: str, *, seconds: float, gigabytes: float) -> None:
    """Refuse what would take longer, or more memory, and say what would not."""
    cost = estimate(experiment, device)
    if cost.fits(seconds=seconds, gigabytes=gigabytes):
        return
    needed, minutes = (
        f"{amount:,.1f}" if amount < 1e6 else "a million or more"
        for amount in (cost.gigabytes, cost.seconds / 60)
    )
    limits = {"most_gigabytes": f"{gigabytes:,.1f}", "most_minutes": f"{seconds / 60:,.1f}"}
    way_out = _what_fits(experiment, device, seconds, gigabytes)
    takes = {"needed": needed, "minutes": minutes, "way_out": way_out}
    takes |= {"depth": str(experiment.depth), "width": str(experiment.width)}
    raise refusal("takes-too-much", **takes, **limits)


def _what_fits(experiment: Experiment, device: str, seconds: float, gigabytes: float) -> str:
    def fits(width: int) -> bool:
        rank = min(width, experiment.rank)
        narrow = replace(experiment, width=width, heads=1, head_dim=width, rank=rank)
        return estimate(narrow, device).fits(seconds=seconds, gigabytes=gigabytes)

    widths = range(1, experiment.width if experiment.vocab is None else 1)
    if fitting := max(takewhile(fits, widths), default=0):
        return f"--width {fitting} fits with one head, or raise --limit"
    return "use less depth or fewer tokens, or raise --limit"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasureOptions:
    """A network, and how the positions of its input are divided; None: not given."""

    depth: int | None = None
    width: int | None = None
    heads: int = 1
    positions: int = 4
    head_dim: int | None = None
    residual: bool = False
    causal: bool = False
    vocab: int | None = None
    rank: int | None = None
    patch: int | None = None
    position_rank: int = 0
    partition: str = "balanced"
    output_position: str | None = None

    def experiment(self) -> Experiment:
        """The measurement that is asked for."""
        if self.depth is None or self.width is None:
            raise ValueError("--depth and --width say which network; give both, or --claim NAME")
        d_a = head_dim_of(self.width, self.heads) if self.head_dim is None else self.head_dim
        names = ("depth", "width", "heads", "residual", "causal", "vocab", "position_rank")
        return Experiment(
            **{name: getattr(self, name) for name in names},
            head_dim=d_a,
            rank=self._rank(self.width),
            partition=self._partition(),
        )

    def _rank(self, width: int) -> int:
        """That of what a position reads: the largest there is, unless one is asked for."""
        vocab, rank, patch = self.vocab, self.rank, self.patch
        if vocab is not None and patch is not None:
            raise ValueError("--vocab and --patch are given; a position reads tokens or a patch")
        if rank is not None:
            return min(rank, width, patch) if patch else rank
        return min(limit for limit in (width, vocab, patch) if limit is not None)

    def _partition(self) -> Partition:
        """The positions on either side, by a name or by their numbers."""
        words, positions, half = self.partition, self.positions, range(self.positions // 2)
        usual = dict.fromkeys(("balanced", "first-half", "prefix"), half)
        usual["interleaved"] = range(0, positions, 2)
        try:
            named = usual.get(words)
            side = tuple(sorted({*map(int, words.split(","))} if named is None else named))
        except ValueError as problem:
            raise refusal("unknown-partition", words=repr(words)) from problem
        is_outside = positions > 1 and (max(side) >= positions or min(side) < 0)
        refuse_if(is_outside, "partition-outside", words=words, last=positions - 1)
        output = self.output_position or ("last" if self.causal else "0")
        at = positions - 1 if output == "last" else parse_size(output)
        return experiments.divided(positions, side, at)


class Machine:
    """What measures, and how much of it may be used: these minutes, and most of its memory."""

    def __init__(self, device: str, minutes: float, primes: tuple[int, ...]) -> None:
        for number in primes:
            check_prime(number)
        if not 0 < minutes < 1e6:
            raise ValueError(f"--limit {minutes} is no number of minutes; use one such as 10")
        # Work is spread over the cores by us; two layers of threads would wait for each other.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        self.arrays = _arrays(device)
        self.kind = self.arrays.device
        self.primes = primes  # none: the usual ones
        gigabytes = 0.7 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
        if self.kind == "cuda":
            import torch

            gigabytes = 0.8 * float(torch.cuda.mem_get_info()[0]) / 1e9
        self.limits = {"seconds": 60 * minutes, "gigabytes": gigabytes}

    def measure(self, experiment: Experiment, progress: Progress) -> Measurement:
        """Its rank; one that would take too long or too much memory is refused."""
        check_cost(experiment, self.kind, **self.limits)
        return measure(experiment, self.arrays, primes=self.primes, progress=progress)


def _arrays(device: str) -> Arrays:
    """What calculates; auto takes a GPU where there is one."""
    if device not in DEVICES:
        raise ValueError(f"--device {device!r} is unknown; use {', '.join(DEVICES)}")
    problem = "--device cuda needs torch; pip install 'archfit[train]'"
    if device != "cpu" and importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            return Arrays("cuda")
        problem = "--device cuda: torch finds no GPU here; use --device cpu"
    if device == "cuda":
        raise ValueError(problem)
    return Arrays()
