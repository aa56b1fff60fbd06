"""Ranks of matrices modulo primes, against FLINT's."""

from collections.abc import Iterator

import numpy as np
import pytest
from flint import nmod_mat

from archfit.exact.elimination import modular_rank
from archfit.exact.prime_field import Arrays
from tests_experiments import NUMPY, PRIMES, TORCH, field

KINDS = ("random", "deficient", "zero", "sparse", "repeated", "zero columns")


def matrices(count: int, largest: int, seed: int) -> Iterator[tuple[str, int, np.ndarray]]:
    """Kind, prime and matrix, over all kinds and primes in turn."""
    rng = np.random.default_rng(seed)
    for index in range(count):
        kind, prime = KINDS[index % len(KINDS)], PRIMES[index // len(KINDS) % len(PRIMES)]
        rows, columns = (int(size) for size in rng.integers(1, largest, 2))
        yield kind, prime, matrix(rng, kind, prime, rows, columns)


def matrix(rng: np.random.Generator, kind: str, prime: int, rows: int, columns: int) -> np.ndarray:
    whole = rng.integers(0, prime, (rows, columns))
    match kind:
        case "deficient":
            rank = int(rng.integers(0, min(rows, columns) + 1))
            left = rng.integers(0, prime, (rows, rank)).astype(object)
            right = rng.integers(0, prime, (rank, columns)).astype(object)
            return np.asarray(left @ right % prime, np.int64).reshape(rows, columns)
        case "zero":
            return np.zeros_like(whole)
        case "sparse":
            return np.where(rng.random((rows, columns)) < 2 / columns, whole, 0)
        case "repeated":
            return whole[rng.integers(0, max(1, rows // 3), rows)]
        case "zero columns":
            return whole * (rng.random(columns) < 0.4)
    return whole


def rank(prime: int, values: np.ndarray, arrays: Arrays) -> int:
    ours = field(prime, arrays)
    return modular_rank(ours, ours.reduced(arrays.array(values)))


def flint_rank(prime: int, values: np.ndarray) -> int:
    return int(nmod_mat(len(values), values.shape[1], values.reshape(-1).tolist(), prime).rank())


def disagreements(count: int, largest: int, seed: int, arrays: Arrays) -> list[object]:
    return [
        (kind, prime, values.shape)
        for kind, prime, values in matrices(count, largest, seed)
        if rank(prime, values, arrays) != flint_rank(prime, values)
    ]


def test_matrices_of_every_kind_have_flints_rank() -> None:
    """Six for each kind and prime."""
    assert disagreements(180, 70, 1, NUMPY) == []


def test_torch_finds_the_same() -> None:
    assert disagreements(30, 60, 2, TORCH) == []


@pytest.mark.slow
def test_larger_matrices_have_flints_rank() -> None:
    assert disagreements(500, 300, 3, NUMPY) == []


@pytest.mark.parametrize(
    "prime", [101, 8_388_593, pytest.param(2_147_483_629, marks=pytest.mark.slow)]
)
def test_ranks_are_right_across_panels(prime: int) -> None:
    """More columns than a panel has, with pivots that end in its middle."""
    rng = np.random.default_rng(prime)
    for kind in ("deficient", "zero columns"):
        values = matrix(rng, kind, prime, 330, 300)
        assert rank(prime, values, NUMPY) == flint_rank(prime, values)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (0, 3), (3, 0), (257, 256), (8, 8)])
def test_edges_of_shape(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(4).integers(0, 101, shape)
    assert rank(101, values, NUMPY) == (flint_rank(101, values) if min(shape) else 0)


def test_multiples_of_the_prime_are_zero() -> None:
    assert rank(101, 101 * np.eye(5, dtype=np.int64), NUMPY) == 0
