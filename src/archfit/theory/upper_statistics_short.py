"""The statistics bound for short sequences, where the second moments have low rank.

With n < d vectors S = X X^T is a symmetric matrix of rank n, and fewer of its polynomials are
independent. Those of degree j decompose into irreducible representations of GL(d), one for
each partition of j into at most n parts, doubled; their dimensions are Weyl's product.
"""

from collections.abc import Iterator
from math import comb, prod

from archfit.theory.counting import interaction_count, multiset, symmetric_entries
from archfit.theory.sizes import check_sizes
from archfit.theory.upper_statistics import statistics_upper_bound

_MOST_FACTORS = 20_000_000  # of Weyl products: seconds

Partition = tuple[int, ...]


def statistics_upper_bound_short(depth: int, width: int, inside: int, outside: int) -> int:
    """No network on n_P + n_Q positions, the output among the n_P, has a larger separation rank.

        sum_{k=0..C} min( D_P(k), D_Q(C - k) )

    D_Q(j) counts independent polynomials of degree j in S_Q, D_P(k) those of degree k in S_P
    times one coordinate of the output's own vector.

    Source: derived here (docs/theory.md, "What replaces it").
    Status: derived, with and without residual.
    """
    check_sizes(depth=depth, width=width, inside=inside, outside=outside)
    if min(inside, outside) >= width:
        return statistics_upper_bound(depth, width)
    return sum(degree_upper_bounds(depth, width, inside, outside))


def degree_upper_bounds(depth: int, width: int, inside: int, outside: int) -> tuple[int, ...]:
    """min( D_P(k), D_Q(C - k) ) for k = 0..C: bounds on the part of degree k in S_P.

    Without residual connections the parts have ranks of their own, which add up.

    Source: derived here (docs/theory.md, "What replaces it").
    Status: derived.
    """
    check_sizes(depth=depth, width=width, inside=inside, outside=outside)
    C = interaction_count(depth)
    _refuse_too_much_work(C, width, [n for n in (inside, outside) if n < width])
    return tuple(
        min(_with_own_vector(width, inside, k), _without(width, outside, C - k))
        for k in range(C + 1)
    )


def _without(d: int, n: int, j: int) -> int:
    """D_Q(j): the sum over partitions of j into at most n parts of dim S_{2 la}."""
    if n >= d:
        return multiset(symmetric_entries(d), j)
    return sum(_weyl_dimension(tuple(2 * part for part in la), d) for la in _partitions(j, n, j))


def _with_own_vector(d: int, n: int, k: int) -> int:
    """D_P(k): the same for 2 la with one box more in any row t <= n that keeps it a partition."""
    if n >= d:
        return d * multiset(symmetric_entries(d), k)
    return sum(_weyl_dimension(mu, d) for la in _partitions(k, n, k) for mu in _one_box_more(la, n))


def _one_box_more(la: Partition, rows: int) -> Iterator[Partition]:
    filled = min(rows, len(la) + 1)  # a box can only go one row below the last filled one
    doubled = [2 * part for part in la] + [0] * (filled - len(la))
    for row in range(filled):
        if row == 0 or doubled[row - 1] > doubled[row]:
            yield tuple(part + (index == row) for index, part in enumerate(doubled))


def _partitions(total: int, parts: int, largest: int) -> Iterator[Partition]:
    """Partitions of `total` into at most `parts` parts of at most `largest`."""
    if total == 0:
        yield ()
    elif parts > 0:
        at_least = -(-total // parts)  # the largest part is no less than the mean
        for first in range(min(total, largest), at_least - 1, -1):
            for rest in _partitions(total - first, parts - 1, first):
                yield (first, *rest)


def _weyl_dimension(mu: Partition, d: int) -> int:
    """dim S_mu(C^d) = prod_{i<j<=d} (mu_i - mu_j + j - i) / (j - i).

    With the empty rows divided out it reads, for k filled rows counted from 0:
        prod_i binom(d - 1 - i + mu_i, mu_i) prod_{i<j<k} (mu_i - mu_j + j - i)
                                                   / prod_i (mu_i + 1) ... (mu_i + k - 1 - i)
    """
    rows = [part for part in mu if part > 0]
    k = len(rows)
    above = prod(comb(d - 1 - i + part, part) for i, part in enumerate(rows))
    above *= prod(rows[i] - rows[j] + j - i for i in range(k) for j in range(i + 1, k))
    return above // prod(part + t for i, part in enumerate(rows) for t in range(1, k - i))


def _refuse_too_much_work(total: int, width: int, short_sides: list[int]) -> None:
    factors = sum(min(n * width, 2 * total + 1) * _partition_count(total, n) for n in short_sides)
    if factors > _MOST_FACTORS:
        raise ValueError(
            f"a side of {min(short_sides)} positions, shorter than width={width}, makes this sum "
            "over partitions too long at this depth; use ub_stat, which holds for every length"
        )


def _partition_count(total: int, parts: int) -> int:
    """Partitions of 0..total into at most `parts` parts, counted by their conjugates."""
    parts = min(parts, total)
    if parts * total > _MOST_FACTORS:
        return _MOST_FACTORS
    counts = [1] + [0] * total
    for part in range(1, parts + 1):
        for size in range(part, total + 1):
            counts[size] += counts[size - part]
    return sum(counts)
