"""Integers modulo a prime in which -1 is a square: witnesses are built and run in them, exactly.

A witness uses whole numbers, 1/N and the imaginary unit. All of them exist modulo a prime
p = 1 mod 4, where J is a square root of -1, and adding and multiplying modulo p is what is left of
adding and multiplying the complex numbers. A rank modulo p is therefore never above the true one.
"""

from typing import TYPE_CHECKING

from archfit.exact.prime_field import is_prime

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Residues = NDArray[np.int64]

WITNESS_PRIME = 2_147_483_629  # the largest p = 1 mod 4 below 2^31
_LEAST, _BEYOND = 2**20, 2**31  # ranks fall by accident below, products overflow above


def check_witness_prime(prime: int) -> None:
    """Refuse a number that is no prime, has no root of -1 or is out of range."""
    if not _LEAST < prime < _BEYOND:
        raise ValueError(
            f"prime={prime} is not between 2^20 and 2^31, where sums are exact and ranks do not "
            f"fall by accident; use {WITNESS_PRIME}"
        )
    if not is_prime(prime):
        raise ValueError(f"prime={prime} is composite; use {WITNESS_PRIME}")
    if prime % 4 != 1:
        raise ValueError(f"prime={prime} is 3 mod 4, so -1 has no square root; use {WITNESS_PRIME}")


def root_of_minus_one(prime: int) -> int:
    """J with J^2 = -1: g^((p-1)/4) for the smallest g that is no square."""
    g = next(g for g in range(2, prime) if pow(g, (prime - 1) // 2, prime) == prime - 1)
    return pow(g, (prime - 1) // 4, prime)


def product(left: "Residues", right: "Residues", prime: int) -> "Residues":
    """The matrix product, of stacks of matrices too.

    The left factor is taken apart as h 2^16 + l, so that products stay below 2^47 and sums of up
    to 2^15 of them are exact in 64 bits.
    """
    high = (left >> 16) @ right % prime
    total: Residues = ((high << 16) + (left & 0xFFFF) @ right) % prime
    return total


def power(base: "Residues", exponent: int, prime: int) -> "Residues":
    """base^exponent of each residue, by squaring; 1 for exponent 0."""
    result = base * 0 + 1
    for bit in bin(exponent)[2:]:
        result = result * result % prime
        if bit == "1":
            result = result * base % prime
    return result


def rank(matrix: "Residues", prime: int) -> int:
    """The rank modulo the prime."""
    from flint import nmod_mat

    rows, columns = matrix.shape
    return int(nmod_mat(rows, columns, matrix.ravel().tolist(), prime).rank())
