"""Counts against enumeration, digits against Python's decimal logarithm, refusals of neither."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product
from math import comb

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from archfit.spec.errors import InvalidValue
from archfit.theory.arithmetic import (
    TooManyDigitsError,
    interaction_count,
    multiset,
    multiset_log3,
    power,
    rough,
)
from archfit.theory.reals import digits, ln_multiset, log3, log3_of_one_plus

POSITIVE = st.integers(1, 10**60)


def _log3_by_decimal(x: Fraction, precision: int) -> Decimal:
    with localcontext() as context:
        context.prec = precision + 40
        value = (Decimal(x.numerator).ln() - Decimal(x.denominator).ln()) / Decimal(3).ln()
        context.prec = precision
        return +value


@given(POSITIVE, POSITIVE)
def test_all_twenty_digits_of_a_logarithm_are_right(p: int, q: int) -> None:
    x = Fraction(p, q)
    assert digits(lambda: log3(x)) == _log3_by_decimal(x, 20)


@given(st.integers(-40, 40))
def test_logarithms_of_powers_of_three_are_exact(power: int) -> None:
    ball = log3(Fraction(3) ** power)
    assert ball.is_exact()
    assert ball == power


@given(st.integers(1, 10**9), st.integers(1, 10**120))
def test_one_plus_a_tiny_number_keeps_its_digits(p: int, q: int) -> None:
    """ln(1 + x) lies between x - x^2/2 and x."""
    x = Fraction(p, q * 10**30)
    value = Fraction(digits(lambda: log3_of_one_plus(x))) * Fraction(Decimal(3).ln())
    assert abs(value - x) <= x**2 / 2 + x * Fraction(1, 10**19)


@given(st.integers(1, 10**40), st.integers(1, 60), st.sampled_from((30, 64, 200)))
def test_a_ball_holds_the_logarithm_of_its_binomial(extra: int, k: int, bits: int) -> None:
    """Both branches: log-gamma for small n, the expansion where n dwarfs k."""
    n = 2 * k + extra
    with ctx.workprec(bits):
        ball = ln_multiset(n - k + 1, k)
    with ctx.workprec(1000):
        assert ball.contains(arb(multiset(n - k + 1, k)).log())


def test_a_number_half_way_between_two_decimals_gets_one_digit_more() -> None:
    def nearly(tie: int) -> "arb":
        return arb(tie) + arb(0, arb(2) ** -ctx.prec)  # never enclosed on one side of the tie

    assert digits(lambda: nearly(12345678901234567890_5), 20) == 12345678901234567890_5


def test_zero_has_no_leading_digit_and_is_given_as_zero() -> None:
    assert digits(lambda: log3(1)) == 0


def test_digits_that_cannot_be_had_are_not_invented() -> None:
    with pytest.raises(ValueError, match="cannot be certified"):
        digits(lambda: arb(1, 0.01))


@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize("k", range(6))
def test_multiset_counts_ordered_sums(n: int, k: int) -> None:
    sums = [parts for parts in product(range(k + 1), repeat=n) if sum(parts) == k]
    assert multiset(n, k) == len(sums)


def test_multiset_of_a_negative_total_is_zero() -> None:
    assert multiset(3, -1) == 0


def test_interaction_counts_satisfy_their_recurrence() -> None:
    counts = [interaction_count(depth) for depth in range(1, 12)]
    assert counts[0] == 1
    assert all(after == 3 * before + 1 for before, after in pairwise(counts))


@pytest.mark.parametrize(("n", "k"), [(5000, 2400), (2**80, 2100), (10**6, 2500)])
def test_large_binomials_satisfy_pascals_rule(n: int, k: int) -> None:
    assert multiset(n - k + 1, k) == multiset(n - k + 1, k - 1) + multiset(n - k, k)


def test_a_million_digits_are_written_and_more_are_not() -> None:
    assert power(10, 10**6 - 1).bit_length() == 3_321_925
    with pytest.raises(ValueError, match=r"more than 1,000,000 digits.*_log3"):
        power(10, 10**6 + 1)
    with pytest.raises(ValueError, match="more than 1,000,000 digits"):
        multiset(10**9, 10**9)


@pytest.mark.parametrize("k", [1999, 2000, 2001])
@pytest.mark.parametrize("n", [4100, 2**63 - 1, 2**63])
def test_binomials_are_the_same_by_either_library(n: int, k: int) -> None:
    """FLINT takes over at 2,000 factors, and counts otherwise from 2^63 on."""
    assert multiset(n - k + 1, k) == comb(n, k)


def test_binomials_are_written_up_to_a_million_digits() -> None:
    """binom(2m, m) has about 2m log10(2) digits."""
    below, above = 1_660_965, 1_661_000
    assert len(str(multiset(1001, 1000))) == 601
    assert multiset(below + 1, below).bit_length() == 3_321_919
    with pytest.raises(ValueError, match=r"binom\(3322000, 1661000\) has more than 1,000,000"):
        multiset(above + 1, above)
    with pytest.raises(ValueError, match=r"binom\(about 10.30, 4000001\) has more"):
        multiset(10**30 - 4_000_000, 4_000_001)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (999_999_999_999_999, "999999999999999"),
        (10**15, "about 10^15"),
        (6 * 10**20, "about 10^21"),
    ],
)
def test_counts_are_rough_from_ten_to_the_fifteen_on(value: int, words: str) -> None:
    assert rough(value) == words


def test_powers_of_one_are_never_too_long() -> None:
    assert power(1, 10**30) == 1
    assert power(0, 5) == 0


@pytest.mark.parametrize(("n", "k"), [(1, 0), (1, 7), (7, 0), (2, 1), (30, 50), (50, 30)])
def test_logarithms_of_multisets_are_those_of_the_counts(n: int, k: int) -> None:
    assert digits(lambda: multiset_log3(n, k)) == digits(lambda: log3(comb(n + k - 1, k)))


@pytest.mark.parametrize(("n", "k"), [(0, 0), (0, 3), (3, -1), (-2, 4)])
def test_multisets_without_a_logarithm_are_refused(n: int, k: int) -> None:
    with pytest.raises(InvalidValue, match=f"n={n} with k={k} has no logarithm"):
        multiset_log3(n, k)


def test_counts_of_over_a_million_digits_are_refused_also_where_a_rough_look_lets_them_pass() -> (
    None
):
    """binom(5e200000, 5) has (n / k)^k = 1e1000000, the most, and is 26 times as large."""
    largest = 5 * 10**200_000 - 4
    with pytest.raises(TooManyDigitsError):
        multiset(largest, 5)
    assert multiset(largest // 10, 5) > 10**999_995
