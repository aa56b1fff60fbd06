"""Counts against enumeration, and the refusal of integers nobody would read."""

from itertools import pairwise, product

import pytest

from archfit.theory.arithmetic import binomial, interaction_count, multiset, power


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
    assert binomial(n, k) == binomial(n - 1, k - 1) + binomial(n - 1, k)


def test_a_million_digits_are_written_and_more_are_not() -> None:
    assert power(10, 10**6 - 1).bit_length() == 3_321_925
    with pytest.raises(ValueError, match=r"more than 1,000,000 digits.*_log3"):
        power(10, 10**6 + 1)
    with pytest.raises(ValueError, match="more than 1,000,000 digits"):
        multiset(10**9, 10**9)
