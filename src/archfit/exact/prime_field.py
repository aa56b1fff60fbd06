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
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from archfit.theory.refusal import refuse_if

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    from numpy.typing import NDArray

    Residues = NDArray[np.int64]
else:
    from archfit.spec import lazy_numpy as np

Job = TypeVar("Job")
Done = TypeVar("Done")
Array: TypeAlias = Any  # numpy.ndarray or torch.Tensor; both index, slice and multiply alike

CACHED = 1 << 15  # numbers that stay in the cache
AT_ONCE = 512  # pieces of work that wait for a thread
SMALL_PRIME = 8_388_593  # the largest below 2^23
LIMB = float(1 << 16)
EXACT = (1 << 53) - (1 << 48)  # sums stay below it, with room for what is added to them
LARGEST = 1 << 31
WITNESS_PRIME = 2_147_483_629  # the largest p = 1 mod 4 below 2^31
_LEAST_WITNESS_PRIME = 1 << 20  # below, ranks fall by accident


class NumpyArrays:
    """What measuring asks of a library, on the CPU."""

    tile_numbers = CACHED  # of a matrix for all pairs at once; also below what malloc maps anew
    cached_numbers = 1 << 19  # of a matrix that is worked on a few rows at a time

    def array(self, values: "NDArray[np.generic]") -> Array:
        """A float64 array with these values."""
        return np.array(values, np.float64)

    def zeros(self, *shape: int) -> Array:
        """An array of zeros."""
        return np.zeros(shape)

    def numpy(self, array: Array) -> "NDArray[np.float64]":
        """The values on the host."""
        return np.asarray(array, np.float64)

    def copy(self, array: Array) -> Array:
        """An array that shares no memory with this one, laid out row by row."""
        return array.copy()

    def reduce_(self, array: Array, prime: int) -> Array:
        """The array itself, with every integer replaced by the nearest to zero of its class.

        In pieces that stay in the cache between the four passes.
        """
        rows = max(1, CACHED * len(array) // max(1, array.size))
        for first in range(0, len(array), rows):
            piece = array[first : first + rows]
            quotient = piece * (1.0 / prime)
            np.rint(quotient, out=quotient)
            quotient *= prime
            piece -= quotient
        return array

    def add_product_(self, total: Array, left: Array, right: Array) -> Array:
        """total + left * right, element by element with broadcasting, in place."""
        total += left * right
        return total

    def each(self, work: "Callable[[Job], Done]", jobs: "Sequence[Job]") -> "Iterator[Done]":
        """The results of independent pieces of work, in their order.

        On threads: numpy lets go of the interpreter while it works.
        """
        spread = _threads().map if len(jobs) > 1 else map
        for first in range(0, len(jobs), AT_ONCE):
            yield from spread(work, jobs[first : first + AT_ONCE])


@cache
def _threads() -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0)))


class TorchArrays:
    """The same on a device of torch."""

    def __init__(self, device: str) -> None:
        import torch

        self.torch = torch
        self.device = torch.device(device)
        is_gpu = self.device.type == "cuda"
        self.tile_numbers = 1 << (24 if is_gpu else 15)
        self.cached_numbers = 1 << (28 if is_gpu else 19)

    def array(self, values: "NDArray[np.generic]") -> Array:
        """A float64 tensor with these values, on the device."""
        return self.torch.from_numpy(np.array(values, np.float64)).to(self.device)

    def zeros(self, *shape: int) -> Array:
        """A tensor of zeros."""
        return self.torch.zeros(shape, dtype=self.torch.float64, device=self.device)

    def numpy(self, array: Array) -> "NDArray[np.float64]":
        """The values on the host."""
        values: NDArray[np.float64] = array.cpu().numpy()
        return values

    def copy(self, array: Array) -> Array:
        """A tensor that shares no memory with this one, laid out row by row."""
        return array.clone(memory_format=self.torch.contiguous_format)

    def reduce_(self, array: Array, prime: int) -> Array:
        """The tensor itself, with every integer replaced by the nearest to zero of its class."""
        quotient = (array * (1.0 / prime)).round_()
        return array.sub_(quotient, alpha=float(prime))

    def add_product_(self, total: Array, left: Array, right: Array) -> Array:
        """total + left * right, element by element with broadcasting, in place."""
        return total.addcmul_(left, right)

    def each(self, work: "Callable[[Job], Done]", jobs: "Sequence[Job]") -> "Iterator[Done]":
        """The results of independent pieces of work, in their order; the device is parallel."""
        return map(work, jobs)


Arrays: TypeAlias = NumpyArrays | TorchArrays


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
        """The array itself, reduced in place."""
        return self.arrays.reduce_(array, self.prime)

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


def residue_product(left: "Residues", right: "Residues", prime: int) -> "Residues":
    """The matrix product, of stacks of matrices too.

    The left factor is taken apart as h 2^16 + l, so that products stay below 2^47 and sums of up
    to 2^15 of them are exact in 64 bits.
    """
    high = (left >> 16) @ right % prime
    total: Residues = ((high << 16) + (left & 0xFFFF) @ right) % prime
    return total


def residue_power(base: "Residues", exponent: int, prime: int) -> "Residues":
    """base^exponent of each residue, by squaring; 1 for exponent 0."""
    result = base * 0 + 1
    for bit in bin(exponent)[2:]:
        result = result * result % prime
        if bit == "1":
            result = result * base % prime
    return result


def residue_rank(matrix: "Residues", prime: int) -> int:
    """The rank modulo the prime."""
    from flint import nmod_mat

    rows, columns = matrix.shape
    return int(nmod_mat(rows, columns, matrix.ravel().tolist(), prime).rank())
