"""Measuring a separation rank, and the rank of a matrix, against what one would write oneself.

The plain way: a loop over pairs of samples, each through the recursion F_(l+1) = A F S F^T B F in
numpy's int64, and FLINT's rank of the whole matrix. The loop is timed on a random subset of the
pairs and scaled to all of them; FLINT's rank (of a random matrix of that size) and ours are timed
in full. Ours is one prime, from drawing to the rank.

Run:    python benchmarks/exact.py
Expect: at least 10x end to end, and a rank engine at least 4x FLINT's as it comes.
"""

import os
import statistics
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does; before numpy loads

import flint
import numpy as np
from flint import nmod_mat

from archfit.exact.elimination import modular_rank
from archfit.exact.experiment import (
    Experiment,
    divided,
    upper_bound,
)
from archfit.exact.measure import MARGIN, measure
from archfit.exact.prime_field import Arrays, PrimeField

REPEATS = 3
PAIRS = 2000  # of the plain loop, drawn at random
CASES = ((3, 3, 6), (2, 7, 4))  # depth, width, positions
SMALL, LARGE = 8_388_593, 2_147_483_629
SIZE = 4000


def main() -> None:
    """Time both, in the same run."""
    for depth, width, positions in CASES:
        _end_to_end(depth, width, positions)
    for prime in (SMALL, LARGE):
        _rank_engine(prime)


def _end_to_end(depth: int, width: int, positions: int) -> None:
    case = _case(depth, width, positions)
    upper = upper_bound(case)
    assert upper is not None
    samples = upper + MARGIN
    ours = _median(lambda: measure(case, Arrays(), primes=(SMALL,), progress=lambda *_: None))
    loop = _median(lambda: _plain_loop(depth, width, positions)) / PAIRS * samples**2
    matrix = _flint_matrix(np.random.default_rng(0).integers(0, LARGE, (samples, samples)), LARGE)
    rank = _median(matrix.rank)
    print(
        f"L={depth} d={width} N={positions} H=1, {samples:,} samples: plain loop {loop:8.1f} s "
        f"(scaled from {PAIRS:,} of {samples**2:,} pairs) + FLINT {rank:.2f} s; "
        f"archfit {ours:.2f} s; ratio {(loop + rank) / ours:.0f}x"
    )


def _case(depth: int, width: int, positions: int) -> Experiment:
    half = positions // 2
    return Experiment(
        depth=depth,
        width=width,
        heads=1,
        head_dim=width,
        residual=False,
        causal=False,
        rank=width,
        partition=divided(positions, range(half), 0),
    )


def _plain_loop(depth: int, width: int, positions: int) -> None:
    """Outputs of PAIRS pairs, one at a time; residues below 2^31 are reduced after each product."""
    rng, p, half = np.random.default_rng(1), LARGE, positions // 2
    a, b = (rng.integers(0, p, (depth, width, width)) for _ in range(2))
    x, z = (rng.integers(0, p, (PAIRS, width, half)) for _ in range(2))
    for one, other in zip(x, z, strict=True):
        s = (_times(one, one.T) + _times(other, other.T)) % p
        f = np.eye(width, dtype=np.int64)
        for layer in range(depth - 1):
            f = _times(_times(_times(_times(a[layer], f), _times(s, f.T)), b[layer]), f)
        row = _times(_times(a[-1][:1], f), _times(s, f.T))
        _times(_times(row, b[-1]), _times(f, one[:, :1]))


def _times(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product modulo a prime near 2^31: every term is reduced, or two would overflow."""
    return np.asarray((left[:, :, None] * right[None] % LARGE).sum(axis=1) % LARGE)


def _rank_engine(prime: int) -> None:
    values = np.random.default_rng(2).integers(0, prime, (SIZE, SIZE))
    matrix = _flint_matrix(values, prime)
    field = PrimeField(prime=prime, arrays=Arrays())
    residues = field.reduced(field.arrays.array(values))
    theirs: dict[int, list[float]] = {1: [], 2: []}  # by FLINT's threads; one is its default
    ours = []
    for _ in range(REPEATS):
        for threads, seconds in theirs.items():
            flint.ctx.threads = threads
            seconds.append(_seconds(matrix.rank))
        ours.append(_seconds(partial(modular_rank, field, residues.copy())))  # it is used up
    flint.ctx.threads = 1
    other = statistics.median(ours)
    for threads, seconds in theirs.items():
        one = statistics.median(seconds)
        print(
            f"rank of {SIZE} x {SIZE} modulo {prime}: FLINT on {threads} thread(s) {one:.2f} s, "
            f"archfit {other:.2f} s, ratio {one / other:.1f}x"
        )


def _flint_matrix(values: np.ndarray, prime: int) -> nmod_mat:
    return nmod_mat(len(values), values.shape[1], values.reshape(-1).tolist(), prime)


def _median(run: Callable[[], object]) -> float:
    return statistics.median(_seconds(run) for _ in range(REPEATS))


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
