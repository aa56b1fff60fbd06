"""The statistics bound for a vocabulary: all that counts is how often each token occurs."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, ln, ln_multiset, log3_from_ln
from archfit.theory.counting import (
    TooManyDigitsError,
    interaction_count,
    multiset,
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
    q = count_variables(depth, vocab, embedding_rank)
    candidates = [lambda: best_split(embedding_rank, q, interaction_count(depth))]
    if inside is not None:
        check_sizes(inside=inside)
        candidates.append(lambda: vocab * multiset(vocab, inside - 1))
    if outside is not None:
        check_sizes(outside=outside)
        candidates.append(lambda: multiset(vocab, outside))
    return _least_that_can_be_written(candidates)


def _least_that_can_be_written(candidates: list[Callable[[], int]]) -> int:
    """The least of the candidates; one with too many digits is not the least, if any has fewer."""
    written: list[int] = []
    too_long = None
    for candidate in candidates:
        try:
            written.append(candidate())
        except TooManyDigitsError as problem:
            too_long = problem
    if not written and too_long is not None:
        raise too_long
    return min(written)


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


def count_variables(depth: int, vocab: int, embedding_rank: int) -> int:
    """q = min(V, r(r+1)/2 + 1): independent counts, one more than the effective dimension."""
    check_sizes(depth=depth, vocab=vocab, embedding_rank=embedding_rank)
    if embedding_rank > vocab:
        raise ValueError(
            f"embedding_rank={embedding_rank} is not in 1..{vocab}; "
            f"a table of vocab={vocab} rows has no more rank"
        )
    return min(vocab, symmetric_entries(embedding_rank) + 1)
