"""Lower bounds for vocabulary and convolution embeddings: Wies et al., corollaries 1 and 2."""

from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, ln_multiset, log3_from_ln
from archfit.theory.counting import multiset
from archfit.theory.lower_bound import doubled_degree
from archfit.theory.sizes import check_heads_fit, check_sizes
from archfit.theory.veronese import smallest_full_rank_sphere

if TYPE_CHECKING:
    from flint import arb

_DEEPEST_SEARCH = 6  # degree 81


def vocabulary_lower_bound(depth: int, width: int, heads: int, embedding_rank: int) -> int:
    """Almost all weights reach at least this separation rank, if the vocabulary is large enough.

        multiset(floor((r - H) / 2), 3^(L-2)),   H < r <= d_x

    `vocabulary_needed` says how large; for convolutions the patch needs r dimensions.

    Source: Wies et al. 2021, corollary 1, lemmas 5 and 6.
    Status: proved, for L >= 2.
    """
    return multiset(*_terms(depth, width, heads, embedding_rank))


@Certified
def vocabulary_lower_bound_log3(depth: int, width: int, heads: int, embedding_rank: int) -> "arb":
    """Logarithm base 3 of the lower bound for vocabulary and convolution embeddings.

    Source: Wies et al. 2021, corollary 1, lemmas 5 and 6.
    Status: proved, for L >= 2.
    """
    n, lam = _terms(depth, width, heads, embedding_rank)
    if n == 0:
        raise ValueError(
            f"embedding_rank={embedding_rank} with heads={heads} gives the bound 0, which has no "
            f"logarithm; use embedding_rank >= {heads + 2}"
        )
    return log3_from_ln(ln_multiset(n, lam))


def vocabulary_needed(depth: int, width: int, heads: int, embedding_rank: int) -> int:
    """The vocabulary size from which the lower bound is proved, 2 multiset(...) + 1.

    Source: Wies et al. 2021, lemma 6.
    Status: proved, for L >= 2.
    """
    return 2 * vocabulary_lower_bound(depth, width, heads, embedding_rank) + 1


def long_sequence_lower_bound(depth: int, heads: int, embedding_rank: int) -> int:
    """Almost all weights reach this with a vocabulary of r tokens, if the sequence is long enough.

        multiset(d, 3^(L-2)),   d = floor((r - 1 - H) / 2)

    `positions_needed` says how long.

    Source: Wies et al. 2021, corollary 2, lemmas 7 and 8.
    Status: proved, for L >= 2.
    """
    return multiset(*_long_terms(depth, heads, embedding_rank))


@Certified
def long_sequence_lower_bound_log3(depth: int, heads: int, embedding_rank: int) -> "arb":
    """Logarithm base 3 of the lower bound for long sequences over r tokens.

    Source: Wies et al. 2021, corollary 2, lemmas 7 and 8.
    Status: proved, for L >= 2.
    """
    return log3_from_ln(ln_multiset(*_long_terms(depth, heads, embedding_rank)))


def positions_needed(depth: int, heads: int, embedding_rank: int) -> int:
    """The sequence length from which the lower bound for long sequences is proved.

        N = 2 d E,   d = floor((r - 1 - H) / 2)

    E is the largest entry of the integer points on the smallest sphere whose powers of degree
    3^(L-2) have full rank (`smallest_full_rank_sphere`).

    Source: Wies et al. 2021, lemmas 7 and 8, corollary 2.
    Status: proved, for L >= 2.
    """
    d, lam = _long_terms(depth, heads, embedding_rank)
    if depth > _DEEPEST_SEARCH:
        raise ValueError(
            f"depth={depth} needs powers of degree 3^(depth - 2), beyond this search; "
            f"use depth <= {_DEEPEST_SEARCH}"
        )
    return 2 * d * smallest_full_rank_sphere(d, lam).largest_entry


def _long_terms(depth: int, heads: int, embedding_rank: int) -> tuple[int, int]:
    check_sizes(heads=heads, embedding_rank=embedding_rank)
    d = (embedding_rank - 1 - heads) // 2
    if d < 1:
        raise ValueError(
            f"embedding_rank={embedding_rank} with heads={heads} leaves no coordinate; "
            f"use embedding_rank >= {heads + 3}"
        )
    return d, doubled_degree(depth)


def _terms(depth: int, width: int, heads: int, embedding_rank: int) -> tuple[int, int]:
    check_sizes(width=width, heads=heads, embedding_rank=embedding_rank)
    check_heads_fit(width=width, heads=heads)
    if not heads < embedding_rank <= width:
        raise ValueError(
            f"embedding_rank={embedding_rank} is not in {heads + 1}..{width}; this bound needs "
            f"more rank than heads={heads} and no more than width={width}"
        )
    return (embedding_rank - heads) // 2, doubled_degree(depth)
