"""Arithmetic of residues, against Python's integers, at the edges of what 64 bits hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.exact.prime_field import (
    LARGEST,
    WITNESS_PRIME,
    Arrays,
    PrimeField,
    check_witness_prime,
    is_prime,
    residue_power,
    residue_product,
    root_of_minus_one,
)
from archfit.exact.witness_network import unit_rows
from tests_experiments import NUMPY, PRIMES, TORCH, field

WITNESS_PRIMES = [WITNESS_PRIME, 1_073_741_789, 1_048_589]
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


@pytest.mark.parametrize("prime", WITNESS_PRIMES)
def test_minus_one_has_a_root(prime: int) -> None:
    check_witness_prime(prime)
    assert root_of_minus_one(prime) ** 2 % prime == prime - 1


@pytest.mark.parametrize("prime", WITNESS_PRIMES)
@pytest.mark.parametrize("inner", [1, 7, 2000])
def test_products_of_the_largest_residues_are_exact(prime: int, inner: int) -> None:
    left, right = np.full((2, 3, inner), prime - 1), np.full((inner, 4), prime - 1)
    assert (residue_product(left, right, prime) == inner).all()
    assert (residue_product(left, right - 1, prime) == 2 * inner).all()


@given(seed=st.integers(0, 999))
def test_products_are_those_of_whole_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = (rng.integers(0, WITNESS_PRIME, (2, 5, 5)) for _ in range(2))
    expected = left.astype(object) @ right.astype(object) % WITNESS_PRIME
    assert residue_product(left, right, WITNESS_PRIME).tolist() == expected.tolist()


@given(base=st.integers(0, WITNESS_PRIME - 1), exponent=st.integers(0, 3**40))
def test_powers_are_those_of_whole_numbers(base: int, exponent: int) -> None:
    found = residue_power(np.array([base]), exponent, WITNESS_PRIME)
    assert found.tolist() == [pow(base, exponent, WITNESS_PRIME)]


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_rows_have_norm_one_and_differ(dimension: int) -> None:
    rows = unit_rows(20, dimension, WITNESS_PRIME)
    assert {sum(x * x for x in row) % WITNESS_PRIME for row in rows.tolist()} == {1}
    assert len({tuple(row) for row in rows.tolist()}) == (20 if dimension > 1 else 1)


@pytest.mark.parametrize(
    ("prime", "reason"),
    [
        (2_147_483_641, "is composite"),
        (2_147_483_647, "3 mod 4"),
        (1_000_003, "not between"),
        (2**31 + 45, "not between"),
        (-7, "not between"),
    ],
)
def test_a_modulus_without_a_root_of_minus_one_is_refused(prime: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_witness_prime(prime)
