"""A stronger lower bound than the papers', from a witness without complement halves."""

from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, ln_multiset, log3_from_ln
from archfit.theory.counting import multiset
from archfit.theory.lower_bound import doubled_degree
from archfit.theory.sizes import check_heads_fit, check_sizes

if TYPE_CHECKING:
    from flint import arb


def strong_lower_bound(
    depth: int, width: int, heads: int, embedding_rank: int | None = None
) -> int:
    """Almost all weights reach at least this separation rank; 0 when H = d_x says nothing.

        multiset(d_x - H, 3^(L-2)),   with a continuous embedding of rank r
        multiset(min(r - 1, d_x - H), 3^(L-2))

    Templates that may be complex need no complement halves, so all d_x - H coordinates that
    are not a head's constant carry the inner product (docs/theory.md).

    Source: derived here (docs/theory.md, "A stronger lower bound").
    Status: derived, for L >= 2, d_a >= 2 and a balanced partition.
    """
    return multiset(*_terms(depth, width, heads, embedding_rank))


@Certified
def strong_lower_bound_log3(
    depth: int, width: int, heads: int, embedding_rank: int | None = None
) -> "arb":
    """Logarithm base 3 of the stronger lower bound.

    Source: derived here (docs/theory.md, "A stronger lower bound").
    Status: derived, for L >= 2, d_a >= 2 and a balanced partition.
    """
    n, lam = _terms(depth, width, heads, embedding_rank)
    if n < 1:
        raise ValueError(
            f"heads={heads} in width={width} leave no free coordinate: the bound is 0 and has no "
            "logarithm; use fewer heads than width and an embedding_rank of at least 2"
        )
    return log3_from_ln(ln_multiset(n, lam))


def _terms(depth: int, width: int, heads: int, embedding_rank: int | None) -> tuple[int, int]:
    check_sizes(depth=depth, width=width, heads=heads)
    check_heads_fit(width=width, heads=heads)
    free = width - heads
    if embedding_rank is not None:
        check_sizes(embedding_rank=embedding_rank)
        free = min(free, embedding_rank - 1)
    return free, doubled_degree(depth)
