"""Counts that every formula is made of, as exact integers."""

import math

from archfit.theory.sizes import check_sizes, shown

EXACT_DIGITS = 10**6  # longer integers help nobody; their logarithms do
_FLINT_FROM = 2000  # factors; below, math.comb is as fast and needs no library


class TooManyDigitsError(ValueError):
    """An exact integer that nobody would read; its logarithm is there instead."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} has more than {EXACT_DIGITS:,} digits and is not written out; "
            "ask for the quantity whose name ends in _log3"
        )


def interaction_count(depth: int) -> int:
    """C(L) = (3^L - 1) / 2, the number of attention products in a network of this depth.

    Source: Levine et al. 2020, lemma 1.
    Status: proved (a count).
    """
    check_sizes(depth=depth)
    return int((3**depth - 1) // 2)


def symmetric_entries(d: int) -> int:
    """m(d) = d (d + 1) / 2, the free entries of a symmetric d x d matrix."""
    return d * (d + 1) // 2


def multiset(n: int, k: int) -> int:
    """Ways to write k as an ordered sum of n nonnegative integers, binom(n + k - 1, k).

    1 for k = 0 (also when n = 0), 0 for k < 0, and 0 for n = 0 < k.

    Source: Levine et al. 2020, appendix A.3.
    Status: proved (a count).
    """
    if n < 0:
        raise ValueError(f"n={n} is negative; multiset(n, k) counts sums of n >= 0 terms")
    if k <= 0 or n == 0:
        return int(k == 0)
    return binomial(n + k - 1, min(k, n - 1))


def binomial(n: int, k: int) -> int:
    """binom(n, k) for 0 <= k <= n / 2, refused where it has over a million digits."""
    if k > 4 * EXACT_DIGITS or k * _log10_ratio(n, k) > EXACT_DIGITS:
        raise TooManyDigitsError(f"binom({shown(n)}, {shown(k)})")
    value = math.comb(n, k) if k < _FLINT_FROM else _binomial_by_flint(n, k)
    return within_a_million_digits(value, f"binom({shown(n)}, {shown(k)})")


def power(base: int, exponent: int) -> int:
    """base^exponent, refused where it has over a million digits."""
    if base > 1 and exponent > EXACT_DIGITS / math.log10(base):
        raise TooManyDigitsError(f"{shown(base)}^({shown(exponent)})")
    return int(base**exponent)


def within_a_million_digits(value: int, what: str) -> int:
    """`value`, or the refusal to print it."""
    if value.bit_length() * math.log10(2) > EXACT_DIGITS + 1:
        raise TooManyDigitsError(what)
    return value


def _log10_ratio(n: int, k: int) -> float:
    return math.log10(n) - math.log10(k) if k else 0.0


def _binomial_by_flint(n: int, k: int) -> int:
    from flint import fmpz

    if n < 2**63:
        return int(fmpz.bin_uiui(n, k))
    return int(fmpz(n - k + 1).rising(k) // fmpz.fac_ui(fmpz(k)))
