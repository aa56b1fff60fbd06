"""Arithmetic modulo a prime, exact: in float64 for measuring, in 64-bit integers for witnesses.

Float64 holds integers exactly up to 2^53, and its matrix products run at full speed on a CPU and on
a GPU: numpy and torch stand behind the same few functions. A residue is the integer nearest to zero
of its class, |x| <= p/2. With p < 2^24 a product is below 2^46 and 64 of them, or with p < 2^23
256, add up exactly. Larger primes, up to 2^31, take two products: x = h 2^16 + l with
|h|, |l| <= 2^15, and h y + l y are brought together modulo p.

A witness uses whole numbers, 1/N and the imaginary unit. All of them exist modulo a prime
p = 1 mod 4, where J is a square root of -1, and adding and multiplying modulo p is what is left of
adding and multiplying the complex numbers. A rank modulo p is therefore never above the true one.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from archfit.spec import lazy_numpy as np
from archfit.spec.errors import refuse_if
from archfit.spec.lazy_numpy import NDArray

Array: TypeAlias = Any  # numpy.ndarray or torch.Tensor; both index, slice and multiply alike
Residues: TypeAlias = "NDArray[np.int64]"

CACHED = 1 << 15  # numbers that stay in the cache
AT_ONCE = 512  # pieces of work that wait for a thread
SMALL_PRIME = 8_388_593  # the largest below 2^23
LIMB = float(1 << 16)
EXACT = (1 << 53) - (1 << 48)  # sums stay below it, with room for what is added to them
LARGEST = 1 << 31
WITNESS_PRIME = 2_147_483_629  # the largest p = 1 mod 4 below 2^31
_LEAST_WITNESS_PRIME = 1 << 20  # below, ranks fall by accident


class Arrays:
    """What measuring asks of a library: of numpy, or of torch on a device."""

    def __init__(self, torch_device: str | None = None) -> None:
        self.is_torch, self.device = torch_device is not None, torch_device or "cpu"
        self.library: Any = import_module("torch") if self.is_torch else np
        # of a matrix for all pairs at once; also below what malloc maps anew
        self.tile_numbers = 1 << (15 if self.device == "cpu" else 24)
        # of a matrix that is worked on a few rows at a time
        self.cached_numbers = 1 << (19 if self.device == "cpu" else 28)

    def array(self, values: "NDArray[np.generic]") -> Array:
        """A float64 array with these values, on the device."""
        return self.library.asarray(np.array(values, np.float64), device=self.device)

    def zeros(self, *shape: int) -> Array:
        """An array of zeros."""
        return self.library.zeros(shape, dtype=self.library.float64, device=self.device)

    def numpy(self, array: Array) -> "NDArray[np.float64]":
        """The values on the host."""
        return np.asarray(array.cpu() if self.is_torch else array)

    def copy(self, array: Array) -> Array:
        """An array that shares no memory with this one, laid out row by row."""
        fresh = self.zeros(*array.shape)
        fresh[...] = array
        return fresh

    def add_product_(self, total: Array, left: Array, right: Array) -> Array:
        """total + left * right, element by element with broadcasting, in place."""
        if self.is_torch:
            return total.addcmul_(left, right)
        total += left * right
        return total

    def each(self, work: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterator[Any]:
        """The results of independent pieces of work, in their order; a device is parallel itself.

        Else on threads: numpy lets go of the interpreter while it works.
        """
        spread = _threads().map if len(jobs) > 1 and not self.is_torch else map
        for first in range(0, len(jobs), AT_ONCE):
            yield from spread(work, jobs[first : first + AT_ONCE])


@cache
def _threads() -> Any:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0)))


@dataclass(frozen=True, kw_only=True, slots=True)
class PrimeField:
    """The integers modulo `prime`, in the arrays of one library."""

    prime: int
    arrays: Arrays

    def __post_init__(self) -> None:
        check_prime(self.prime)

    @property
    def has_two_limbs(self) -> bool:
        """Whether a product needs two multiplications."""
        return self.prime >= 1 << 24

    @property
    def longest_sum(self) -> int:
        """Products that can be added up before they are reduced."""
        half = self.prime // 2 + 1
        return EXACT // (half * (int(LIMB) // 2 if self.has_two_limbs else half))

    def reduced(self, array: Array) -> Array:
        """The array itself, with every integer replaced by the nearest to zero of its class.

        On a CPU in pieces that stay in the cache between the four passes.
        """
        prime = self.prime
        if self.arrays.is_torch:
            return array.sub_((array * (1.0 / prime)).round_(), alpha=float(prime))
        rows = max(1, CACHED * len(array) // max(1, array.size))
        for first in range(0, len(array), rows):
            piece = array[first : first + rows]
            quotient = piece * (1.0 / prime)
            np.rint(quotient, out=quotient)
            quotient *= prime
            piece -= quotient
        return array

    def limbs(self, array: Array) -> tuple[Array, ...]:
        """The parts of a left factor: itself, or its high and low half."""
        if not self.has_two_limbs:
            return (array,)
        high = (array * (1.0 / LIMB)).round()
        return high, array - high * LIMB

    def joined(self, sums: tuple[Array, ...]) -> Array:
        """The residue of a sum of products, from those of the parts of its left factors."""
        if len(sums) == 1:
            return self.reduced(sums[0])
        high, low = sums
        low += self.reduced(high) * LIMB
        return self.reduced(low)

    def matmul(self, left: Array, right: Array) -> Array:
        """The product of two matrices, or of stacks of them."""
        length, longest = left.shape[-1], self.longest_sum
        total = None
        for first in range(0, max(1, length), longest):
            piece = left[..., first : first + longest]
            rows = right[..., first : first + longest, :]
            part = self.joined(tuple(limb @ rows for limb in self.limbs(piece)))
            total = part if total is None else self.reduced(total + part)
        return total

    def subtract_product(self, array: Array, left: Array, right: Array) -> None:
        """array - left @ right, in place."""
        longest = self.longest_sum
        for first in range(0, left.shape[1], longest):
            columns = left[:, first : first + longest]
            *high, low = (limb @ right[first : first + longest] for limb in self.limbs(columns))
            for part in high:
                array -= self.reduced(part) * LIMB
            array -= low
            self.reduced(array)


def check_prime(prime: int) -> None:
    """Refuse what is no odd prime below 2^31."""
    is_good = 3 <= prime < LARGEST and is_prime(prime)
    refuse_if(not is_good, "not-odd-prime", prime, small=SMALL_PRIME)


@cache
def is_prime(number: int) -> bool:
    """Whether it has no factor, by trying all: milliseconds below 2^31."""
    return number > 1 and all(number % factor for factor in range(2, math.isqrt(number) + 1))


def check_witness_prime(prime: int) -> None:
    """Refuse a number that is no prime, has no root of -1 or is out of range."""
    in_range = _LEAST_WITNESS_PRIME < prime < LARGEST
    refuse_if(not in_range, "witness-prime-out-of-range", prime, usual=WITNESS_PRIME)
    refuse_if(not is_prime(prime), "witness-prime-composite", prime, usual=WITNESS_PRIME)
    refuse_if(prime % 4 != 1, "witness-prime-without-root", prime, usual=WITNESS_PRIME)


def root_of_minus_one(prime: int) -> int:
    """J with J^2 = -1: g^((p-1)/4) for the smallest g that is no square."""
    g = next(g for g in range(2, prime) if pow(g, (prime - 1) // 2, prime) == prime - 1)
    return pow(g, (prime - 1) // 4, prime)


def residue_product(left: Residues, right: Residues, prime: int) -> Residues:
    """The matrix product, of stacks of matrices too.

    The left factor is taken apart as h 2^16 + l, so that products stay below 2^47 and sums of up
    to 2^15 of them are exact in 64 bits.
    """
    high = (left >> 16) @ right % prime
    total: Residues = ((high << 16) + (left & 0xFFFF) @ right) % prime
    return total


def residue_power(base: Residues, exponent: int, prime: int) -> Residues:
    """base^exponent of each residue, by squaring; 1 for exponent 0."""
    result = base * 0 + 1
    for bit in bin(exponent)[2:]:
        result = result * result % prime
        if bit == "1":
            result = result * base % prime
    return result
