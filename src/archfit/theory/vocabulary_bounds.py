"""The papers' bounds for vocabulary and convolution embeddings: Wies et al.

Their upper bounds (theorems 3 and 4) count groups of terms as theorem 2 of Levine et al. does, and
have its gap (`archfit.theory.continuous_bounds`): they are disputed. For small vocabularies the
formulas are nevertheless true, because the bound of `archfit.theory.statistics_bounds` lies far
below them. Their lower bounds (corollaries 1 and 2) are proved; lemma 8 is a search for integer
points on a sphere whose powers are independent.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, count

from archfit.spec.errors import refusal, refuse_if
from archfit.theory.arithmetic import Product, multiset
from archfit.theory.continuous_bounds import doubled_degree
from archfit.theory.inputs import catalogued, check_heads_fit, check_sizes, factored
from archfit.theory.reals import flint

_DEEPEST_SEARCH = 6  # degree 81
_MOST_MONOMIALS = 250  # exact elimination beyond this takes minutes
_MOST_STEPS = 3_000_000  # of the enumeration: seconds
_MOST_POINTS = 20_000
_PRIME = 2**61 - 1

Point = tuple[int, ...]


@factored("ub_vocab_statement")
def vocabulary_formula(depth: int, embedding_rank: int, position_rank: int) -> Product:
    """The formula of the statement; not a bound.

    multiset(r + r_e, T) multiset(4, T) (T + 1)^(r + r_e),   T = 3^L
    """
    T, total = int(3**depth), embedding_rank + position_rank
    return Product(powers=[(T + 1, total)], multisets=[(total, T), (4, T)])


@factored("ub_vocab_proof")
def vocabulary_proof_formula(depth: int, embedding_rank: int, position_rank: int) -> Product:
    """The tighter formula at the end of the proof; not a bound.

        multiset(r + r_e, T) multiset(4, T) (T/r + 1)^r (T/r_e + 1)^r_e,   T = 3^L

    The last factor is 1 when r_e = 0.
    """
    T, ranks = int(3**depth), [rank for rank in (embedding_rank, position_rank) if rank]
    powers = [(Fraction(T, rank) + 1, rank) for rank in ranks]
    return Product(powers=powers, multisets=[(sum(ranks), T), (4, T)])


@factored("lb_vocab")
def vocabulary_lower_bound(depth: int, width: int, heads: int, embedding_rank: int) -> Product:
    """Almost all weights reach at least this separation rank, if the vocabulary is large enough.

        multiset(floor((r - H) / 2), 3^(L-2)),   H < r <= d_x

    `vocabulary_needed` says how large; for convolutions the patch needs r dimensions.
    """
    check_heads_fit(heads, width=width)
    is_outside, ends = not heads < embedding_rank <= width, {"heads": heads, "least": heads + 1}
    refuse_if(is_outside, "rank-outside-heads-and-width", embedding_rank, width=width, **ends)
    zero = refusal("rank-zero", embedding_rank, heads=heads, least=heads + 2)
    terms = (embedding_rank - heads) // 2, doubled_degree(depth)
    return Product(multisets=[terms], if_zero=zero)


@factored("lb_vocab_long")
def long_sequence_lower_bound(depth: int, heads: int, embedding_rank: int) -> Product:
    """Almost all weights reach this with a vocabulary of r tokens, if the sequence is long enough.

        multiset(d, 3^(L-2)),   d = floor((r - 1 - H) / 2)

    `positions_needed` says how long.
    """
    return Product(multisets=[_long_terms(depth, heads, embedding_rank)])


@catalogued("lb_vocab_min_V")
def vocabulary_needed(depth: int, width: int, heads: int, embedding_rank: int) -> int:
    """The vocabulary size from which the lower bound is proved, 2 multiset(...) + 1."""
    return 2 * int(vocabulary_lower_bound(depth, width, heads, embedding_rank)) + 1


@catalogued("lemma7_N")
def positions_needed(depth: int, heads: int, embedding_rank: int) -> int:
    """The sequence length from which the lower bound for long sequences is proved.

        N = 2 d E,   d = floor((r - 1 - H) / 2)

    E is the largest entry of the integer points on the smallest sphere whose powers of degree
    3^(L-2) have full rank (`smallest_full_rank_sphere`).
    """
    d, lam = _long_terms(depth, heads, embedding_rank)
    refuse_if(depth > _DEEPEST_SEARCH, "degree-too-large", depth, most=_DEEPEST_SEARCH)
    return 2 * d * max(map(max, smallest_full_rank_sphere(d, lam)))


def _long_terms(depth: int, heads: int, embedding_rank: int) -> tuple[int, int]:
    d = (embedding_rank - 1 - heads) // 2
    refuse_if(d < 1, "no-coordinate", embedding_rank, heads=heads, least=heads + 3)
    return d, doubled_degree(depth)


@catalogued("lemma8_smallest_c")
def smallest_squared_norm(dimension: int, degree: int) -> int:
    """The least c such that the points of squared norm c have full Veronese rank."""
    return sum(x * x for x in smallest_full_rank_sphere(dimension, degree)[0])


def smallest_full_rank_sphere(dimension: int, degree: int) -> tuple[Point, ...]:
    """Points of the smallest squared norm c whose degree-lambda monomials have full rank.

    For c = 1, 2, ...: all nonnegative integer points with squared norm c, in lexicographic
    order; full rank means multiset(dimension, degree); points that raise the rank are kept.
    It is lemma 8 of Wies et al. 2021, made algorithmic here.
    """
    check_sizes(dimension=dimension, degree=degree)
    wanted, most = multiset(dimension, degree), _MOST_MONOMIALS
    if wanted > most:
        raise refusal("too-many-monomials", dimension, degree=degree, wanted=wanted, most=most)
    steps = 0
    for squared_norm in count(1):
        steps += (math.isqrt(squared_norm) + 1) ** (dimension - 1)
        if steps > _MOST_STEPS:  # listing the points of all of them takes too long
            break
        points = list(points_of_squared_norm(dimension, squared_norm))
        if wanted <= len(points) <= _MOST_POINTS:
            kept = _points_that_raise_the_rank(points, degree)
            if len(kept) == wanted:
                return kept
    raise refusal("no-sphere", dimension, degree=degree)


def points_of_squared_norm(dimension: int, squared_norm: int) -> Iterator[Point]:
    """All nonnegative integer points with this squared norm, in lexicographic order."""
    if dimension == 1:
        root = math.isqrt(squared_norm)
        if root * root == squared_norm:
            yield (root,)
        return
    for first in range(math.isqrt(squared_norm) + 1):
        for rest in points_of_squared_norm(dimension - 1, squared_norm - first * first):
            yield (first, *rest)


def _points_that_raise_the_rank(points: list[Point], degree: int) -> tuple[Point, ...]:
    """The points, in order, whose monomials are independent of those before; () if too few.

    A rank mod a prime is never too large, so a full one is proof that the kept points span; a
    deficient one is asked again over the integers before the sphere is given up.
    """
    powers = [
        [math.prod(chosen) for chosen in combinations_with_replacement(point, degree)]
        for point in points
    ]
    monomials = flint.fmpz_mat(powers).transpose()
    reduced, rank = flint.nmod_mat(monomials, _PRIME).rref()
    if rank < monomials.nrows() and monomials.rank() < monomials.nrows():
        return ()
    return tuple(
        next(point for col, point in enumerate(points) if int(reduced[row, col]) != 0)
        for row in range(rank)
    )
