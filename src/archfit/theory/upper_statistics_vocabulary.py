"""The statistics bound for a vocabulary: all that counts is how often each token occurs."""

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, ln, ln_multiset, log3, log3_from_ln
from archfit.theory.counting import (
    TooManyDigitsError,
    interaction_count,
    multiset,
    power,
    symmetric_entries,
)
from archfit.theory.sizes import check_sizes
from archfit.theory.upper_statistics import best_split, middle_split_log3

if TYPE_CHECKING:
    from flint import arb


def statistics_upper_bound_vocabulary(
    depth: int,
    vocab: int,
    embedding_rank: int,
    inside: int | None = None,
    outside: int | None = None,
) -> int:
    """No network over V tokens without positions has a larger separation rank.

        min( min_{k0} [ r multiset(q, k0) + multiset(q, C - 1 - k0) ],
             V multiset(V, n_P - 1),  multiset(V, n_Q) ),   q = min(V, r(r+1)/2 + 1)

    The second moment of one side depends on its token counts alone, whose total is fixed. The
    last two count the ways to fill a side; without n_P and n_Q the bound holds for every N.

    Source: derived here (docs/theory.md, "What replaces it").
    Status: derived, with and without residual.
    """
    q, C = count_variables(depth, vocab, embedding_rank), interaction_count(depth)
    fillings = list(_ways_to_fill_a_side(vocab, inside, outside))
    if fillings and _any_split_exceeds(min(fillings), q, C):
        return min(fillings)
    return min([best_split(embedding_rank, q, C), *fillings])


def _ways_to_fill_a_side(vocab: int, inside: int | None, outside: int | None) -> Iterator[int]:
    """Token counts of each side, the output's own token apart; those of over a million digits
    are left out, since something smaller must be found anyway.
    """
    with suppress(TooManyDigitsError):
        if inside is not None:
            check_sizes(inside=inside)
            yield vocab * multiset(vocab, inside - 1)
    with suppress(TooManyDigitsError):
        if outside is not None:
            check_sizes(outside=outside)
            yield multiset(vocab, outside)


def _any_split_exceeds(value: int, q: int, C: int) -> bool:
    """Whether even the best split is larger, seen from logarithms: its integers may be huge.

    A split below the middle leaves multiset(q, k) with k = floor((C - 1) / 2) or more on one
    side, one above on the other; and binom(n, j) >= (n / j)^j.
    """
    k = (C - 1) // 2
    n, j = q + k - 1, min(k, q - 1)
    return j > 0 and j * (math.log(n) - math.log(j)) > math.log(value)


@Certified
def statistics_upper_bound_vocabulary_log3(
    depth: int,
    vocab: int,
    embedding_rank: int,
    inside: int | None = None,
    outside: int | None = None,
) -> "arb":
    """Logarithm base 3 of the bound for a vocabulary, split in the middle.

    Source: derived here (docs/theory.md, "What replaces it").
    Status: derived, with and without residual.
    """
    q = count_variables(depth, vocab, embedding_rank)
    best = middle_split_log3(embedding_rank, q, interaction_count(depth))
    if inside is not None:
        check_sizes(inside=inside)
        best = best.min(log3_from_ln(ln(vocab) + ln_multiset(vocab, inside - 1)))
    if outside is not None:
        check_sizes(outside=outside)
        best = best.min(log3_from_ln(ln_multiset(vocab, outside)))
    return best


def filling_upper_bound(vocab: int, positions: int) -> int:
    """No function of N tokens has a larger separation rank: the ways to fill the smaller side.

        V^floor(N / 2),   for a balanced partition

    Source: derived here (a matrix has no more rank than rows or columns).
    Status: derived, for every network and positional embedding.
    """
    check_sizes(vocab=vocab, positions=positions)
    return power(vocab, positions // 2)


@Certified
def filling_upper_bound_log3(vocab: int, positions: int) -> "arb":
    """Logarithm base 3 of the ways to fill the smaller side.

    Source: derived here (a matrix has no more rank than rows or columns).
    Status: derived, for every network and positional embedding.
    """
    check_sizes(vocab=vocab, positions=positions)
    return log3(vocab) * (positions // 2)


def count_variables(depth: int, vocab: int, embedding_rank: int) -> int:
    """q = min(V, r(r+1)/2 + 1): independent counts, one more than the effective dimension."""
    check_sizes(depth=depth, vocab=vocab, embedding_rank=embedding_rank)
    if embedding_rank > vocab:
        raise ValueError(
            f"embedding_rank={embedding_rank} is not in 1..{vocab}; "
            f"a table of vocab={vocab} rows has no more rank"
        )
    return min(vocab, symmetric_entries(embedding_rank) + 1)
