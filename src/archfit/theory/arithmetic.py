"""Exact integers, and products whose logarithms have proved digits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from archfit.spec.errors import refuse_if
from archfit.theory.inputs import catalogued, certified
from archfit.theory.reals import Ball, flint, ln_multiset, log3, log3_from_ln

EXACT_DIGITS = 10**6  # longer integers help nobody; their logarithms do
_FLINT_FROM = 2000  # factors; below, math.comb is as fast and needs no library


class TooManyDigitsError(ValueError):
    """An exact integer that nobody would read; its logarithm is there instead."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} has more than {EXACT_DIGITS:,} digits and is not written out; "
            "ask for the quantity whose name ends in _log3"
        )


@catalogued("C")
@lru_cache(maxsize=8, typed=True)  # many digits, which several bounds need
def interaction_count(depth: int) -> int:
    """C(L) = (3^L - 1) / 2, the number of attention products in a network of this depth."""
    return int((3**depth - 1) // 2)


def symmetric_entries(d: int) -> int:
    """m(d) = d (d + 1) / 2, the free entries of a symmetric d x d matrix."""
    return d * (d + 1) // 2


@catalogued("multiset")
def multiset(n: int, k: int) -> int:
    """Ways to write k as an ordered sum of n nonnegative integers, binom(n + k - 1, k).

    1 for k = 0 (also when n = 0), 0 for k < 0, and 0 for n = 0 < k.
    """
    refuse_if(n < 0, "negative-terms", n)
    if k <= 0 or n == 0:
        return int(k == 0)
    n, k = n + k - 1, min(k, n - 1)
    what = f"binom({rough(n)}, {rough(k)})"
    log10_ratio = math.log10(n) - math.log10(k) if k else 0.0
    if k > 4 * EXACT_DIGITS or k * log10_ratio > EXACT_DIGITS:
        raise TooManyDigitsError(what)
    if k < _FLINT_FROM:
        value = math.comb(n, k)
    else:
        fmpz = flint.fmpz
        is_short, factors = n < 2**63, fmpz(n - k + 1)
        value = int(fmpz.bin_uiui(n, k) if is_short else factors.rising(k) // fmpz.fac_ui(fmpz(k)))
    if value.bit_length() * math.log10(2) > EXACT_DIGITS + 1:
        raise TooManyDigitsError(what)
    return value


def power(base: int, exponent: int) -> int:
    """base^exponent, refused where it has over a million digits."""
    if base > 1 and exponent > EXACT_DIGITS / math.log10(base):
        raise TooManyDigitsError(f"{rough(base)}^({rough(exponent)})")
    return int(base**exponent)


def rough(value: int) -> str:
    """A count as a person wants to read it in a sentence: from 10^15 on by its power of ten."""
    return str(value) if value < 10**15 else f"about 10^{math.log10(value):.0f}"


@certified("multiset_log3")
def multiset_log3(n: int, k: int) -> Ball:
    """Logarithm base 3 of multiset(n, k), for n >= 1 and k >= 0."""
    refuse_if(n < 1 or k < 0, "no-logarithm", n, k=k)
    return log3_from_ln(ln_multiset(n, k))


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """base^exponent for each of the powers, times multiset(n, k) for each of the multisets."""

    powers: Sequence[tuple[int | Fraction, int]] = ()
    multisets: Sequence[tuple[int, int]] = ()
    if_zero: ValueError | None = None  # why there is no logarithm where n = 0

    def exact(self) -> int | Fraction:
        """The product itself, refused where a factor has over a million digits."""
        bits = sum(base.numerator.bit_length() * times for base, times in self.powers)
        if bits * math.log10(2) > 2 * EXACT_DIGITS:  # each may be short, and there may be many
            raise TooManyDigitsError("the product")
        above = math.prod(multiset(n, k) for n, k in self.multisets)
        below = math.prod(power(base.denominator, times) for base, times in self.powers)
        above *= math.prod(power(base.numerator, times) for base, times in self.powers)
        value = Fraction(above, below)
        return value.numerator if value.denominator == 1 else value

    def __int__(self) -> int:
        return int(self.exact())

    def log3(self) -> Ball:
        """Its logarithm base 3."""
        if self.if_zero is not None and not all(n for n, _ in self.multisets):
            raise self.if_zero
        powers = (log3(base) * times for base, times in self.powers)
        multisets = (log3_from_ln(ln_multiset(n, k)) for n, k in self.multisets)
        return sum((*powers, *multisets), flint.arb(0))
