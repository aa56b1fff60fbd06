"""Arithmetic modulo a prime in float64: every result is exact.

A residue is the integer nearest to zero of its class, |x| <= p/2. With p < 2^24 a product is below
2^46 and 64 of them, or with p < 2^23 256, add up exactly. Larger primes, up to 2^31, take two
products: x = h 2^16 + l with |h|, |l| <= 2^15, and h y + l y are brought together modulo p.
"""

from dataclasses import dataclass

from archfit.exact.arrays import Array, Arrays

SMALL_PRIME = 8_388_593  # the largest below 2^23
LIMB = float(1 << 16)
EXACT = (1 << 53) - (1 << 48)  # sums stay below it, with room for what is added to them
LARGEST = 1 << 31


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
        high = self.arrays.high_part(array, LIMB)
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
    if not 3 <= prime < LARGEST or not is_prime(prime):
        raise ValueError(
            f"prime={prime} is not an odd prime below 2^31; use {SMALL_PRIME}, or leave it out"
        )


def is_prime(number: int) -> bool:
    """Miller and Rabin's test with bases that are enough below 3.4 * 10^14."""
    bases = (2, 3, 5, 7, 11, 13, 17)
    if number < 2 or any(number % base == 0 for base in bases):
        return number in bases
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(number, base, odd, twos) for base in bases)


def _passes(number: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False
