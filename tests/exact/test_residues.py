"""Arithmetic modulo a prime, against Python's whole numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.exact.prime_field import (
    WITNESS_PRIME,
    check_witness_prime,
    residue_power,
    residue_product,
    residue_rank,
    root_of_minus_one,
)
from archfit.exact.witness_network import unit_rows

PRIMES = [WITNESS_PRIME, 1_073_741_789, 1_048_589]


@pytest.mark.parametrize("prime", PRIMES)
def test_minus_one_has_a_root(prime: int) -> None:
    check_witness_prime(prime)
    assert root_of_minus_one(prime) ** 2 % prime == prime - 1


@pytest.mark.parametrize("prime", PRIMES)
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


def test_the_rank_is_that_of_a_thin_product() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, WITNESS_PRIME, (9, 4)), rng.integers(0, WITNESS_PRIME, (4, 7))
    assert residue_rank(residue_product(left, right, WITNESS_PRIME), WITNESS_PRIME) == 4


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_rows_have_norm_one_and_differ(dimension: int) -> None:
    rows = unit_rows(20, dimension, WITNESS_PRIME)
    assert {sum(x * x for x in row) % WITNESS_PRIME for row in rows} == {1}
    assert len(set(rows)) == (20 if dimension > 1 else 1)


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
