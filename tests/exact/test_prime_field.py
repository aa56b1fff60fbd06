"""Arithmetic of residues, against Python's integers, at the edges of what float64 holds."""

import numpy as np
import pytest

from archfit.exact.arrays import Arrays
from archfit.exact.prime_field import LARGEST, PrimeField, is_prime
from tests_experiments import NUMPY, PRIMES, TORCH, field

EDGE = 16_777_213  # the largest below 2^24: the longest products of one limb


def centred(values: np.ndarray, prime: int) -> np.ndarray:
    """The class member nearest to zero, in Python's integers."""
    residues = values % prime
    return np.where(2 * residues > prime, residues - prime, residues)


def extremes(rng: np.random.Generator, shape: tuple[int, ...], prime: int) -> np.ndarray:
    """Residues that are as large as they get, of either sign."""
    return rng.choice([-1, 1], shape).astype(object) * ((prime - 1) // 2)


def to(arrays: Arrays, values: np.ndarray) -> object:
    return arrays.array(values.astype(np.float64))


def back(arrays: Arrays, values: object) -> np.ndarray:
    return np.array(arrays.numpy(values), np.int64).astype(object)


@pytest.mark.parametrize("arrays", [NUMPY, TORCH], ids=["numpy", "torch"])
@pytest.mark.parametrize("prime", [*PRIMES, EDGE, 16_777_259, 2_147_483_647])
def test_the_largest_sums_are_exact(prime: int, arrays: Arrays) -> None:
    ours = field(prime, arrays)
    rng = np.random.default_rng(prime)
    for length in (1, min(ours.longest_sum, 700), min(ours.longest_sum, 700) + 1, 701):
        for left, right in (
            (extremes(rng, (3, length), prime), extremes(rng, (length, 4), prime)),
            (np.full((3, length), prime // 2, object), np.full((length, 4), prime // 2, object)),
            (np.full((3, length), prime // 2, object), np.full((length, 4), -(prime // 2), object)),
        ):
            product = back(arrays, ours.matmul(to(arrays, left), to(arrays, right)))
            assert (product == centred(left @ right, prime)).all()


@pytest.mark.parametrize("arrays", [NUMPY, TORCH], ids=["numpy", "torch"])
@pytest.mark.parametrize("prime", [*PRIMES, EDGE])
def test_products_are_subtracted_in_place(prime: int, arrays: Arrays) -> None:
    rng = np.random.default_rng(prime)
    array = extremes(rng, (5, 7), prime)
    left, right = extremes(rng, (5, 300), prime), extremes(rng, (300, 7), prime)
    ours = to(arrays, array)
    field(prime, arrays).subtract_product(ours, to(arrays, left), to(arrays, right))
    assert (back(arrays, ours) == centred(array - left @ right, prime)).all()


@pytest.mark.parametrize("prime", [*PRIMES, EDGE])
def test_sums_of_the_longest_length_stay_below_what_float64_holds(prime: int) -> None:
    ours = field(prime)
    limb = (1 << 15) if ours.has_two_limbs else prime // 2 + 1
    assert ours.longest_sum * limb * (prime // 2 + 1) + prime * (1 << 16) <= 1 << 53
    assert ours.longest_sum >= 64  # the width of the widest network


def test_two_parts_of_a_residue_make_it_whole_and_are_small() -> None:
    ours = field(PRIMES[-1])
    values = extremes(np.random.default_rng(0), (50,), ours.prime) - np.arange(50)
    high, low = ours.limbs(to(ours.arrays, values))
    assert (back(ours.arrays, high) * 65_536 + back(ours.arrays, low) == values).all()
    assert np.abs(high).max() <= 1 << 15
    assert np.abs(low).max() <= 1 << 15


def test_primes_are_told_from_other_numbers() -> None:
    sieve = [n for n in range(2000) if n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))]
    assert [n for n in range(2000) if is_prime(n)] == sieve
    carmichael = (561, 41_041, 825_265, 321_197_185, 2_152_302_898_747)
    strong_pseudoprimes = (2047, 1_373_653, 25_326_001, 3_215_031_751)
    assert not any(map(is_prime, carmichael + strong_pseudoprimes))
    assert is_prime(2_147_483_647)


@pytest.mark.parametrize("prime", [-7, 0, 1, 2, 9, 8_388_595, LARGEST + 11])
def test_what_is_no_odd_prime_below_2_to_the_31_is_refused(prime: int) -> None:
    with pytest.raises(ValueError, match=rf"^prime={prime} is not an odd prime below 2\^31; use "):
        PrimeField(prime=prime, arrays=NUMPY)
