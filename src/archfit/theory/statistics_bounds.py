"""The upper bound that is true at every depth: count the statistics that one side can send.

The output is sum_a x_{i,a} f_a(S_P + S_Q), with f of degree C(L) in the second moments
S_P = X_P X_P^T and S_Q of the two sides. Terms of degree k <= k0 in S_P lie in a space of P-side
polynomials of degree <= k0, the others in one of Q-side polynomials of degree <= C - 1 - k0; the
separation rank is at most the sum of the two dimensions, for every k0. A residual connection only
adds terms of lower degree, so the same numbers hold with it.

On short sequences the second moments have low rank: with n < d vectors S = X X^T is a symmetric
matrix of rank n, and fewer of its polynomials are independent. Those of degree j decompose into
irreducible representations of GL(d), one for each partition of j into at most n parts, doubled;
their dimensions are Weyl's product. Over a vocabulary all that counts is how often each token
occurs.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from archfit.spec.errors import refusal, refuse_if
from archfit.spec.search import first_whole
from archfit.theory.arithmetic import Product, interaction_count, multiset, symmetric_entries
from archfit.theory.inputs import catalogued, factored
from archfit.theory.reals import Ball, flint, ln, ln_multiset, log3_from_ln

_MOST_FACTORS = 20_000_000  # of Weyl products: seconds
_WIDEST_LIMITED_BY_Q = 12  # up to here d multiset(m, 6) >= multiset(m, 7)


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """factor multiset(v, k0) + multiset(v, C - 1 - k0), or the ways to fill a side with tokens."""

    factor: int
    variables: int  # v
    total: int  # C
    fillings: tuple[Product, ...] = ()

    def exact(self) -> int:
        """At the best k0, or the least filling."""
        fillings, q, C = [], self.variables, self.total
        for ways in self.fillings:
            with suppress(ValueError):  # too many digits: something smaller must be found anyway
                fillings.append(int(ways.exact()))
        # Whether even the best split is larger is seen from logarithms, for its integers may be
        # huge: one below the middle leaves multiset(q, k) with k = floor((C - 1) / 2) or more on
        # one side, one above on the other; and binom(n, j) >= (n / j)^j.
        k = (C - 1) // 2
        n, j = q + k - 1, min(k, q - 1)
        if fillings and j > 0 and j * (math.log(n) - math.log(j)) > math.log(min(fillings)):
            return min(fillings)
        return min([best_split(self.factor, q, C), *fillings])

    def __int__(self) -> int:
        return self.exact()

    def log3(self) -> Ball:
        """Its logarithm base 3, with the split in the middle, k0 = floor((C - 1) / 2).

        The two multisets are equal when C is odd, and neighbours otherwise, so that their ratio is
        a small fraction.
        """
        v, k = self.variables, (self.total - 1) // 2
        other_over_this = Fraction(1) if self.total % 2 else Fraction(v + k, k + 1)
        best = log3_from_ln(ln_multiset(v, k) + ln(self.factor + other_over_this))
        for ways in self.fillings:
            best = best.min(ways.log3())
        return best


@factored("ub_stat", "ub_stat_simple_log3")
def statistics_upper_bound(depth: int, width: int) -> Split:
    """No network of this shape has a larger separation rank, for any N, partition and weights.

        min_{k0 = -1..C} [ d multiset(m + 1, k0) + multiset(m + 1, C - 1 - k0) ],   m = d(d+1)/2

    With a continuous embedding of rank r and no positions, r takes the place of d.
    """
    variables = symmetric_entries(width) + 1
    return Split(factor=width, variables=variables, total=interaction_count(depth))


def best_split(factor: int, variables: int, total: int) -> int:
    """min over k0 in -1..C of factor multiset(v, k0) + multiset(v, C - 1 - k0).

    Both terms are convex in k0, so the first k0 at which one more step no longer pays is the
    best. A step from k0 adds factor multiset(v - 1, k0 + 1) and saves multiset(v - 1, C - 1 - k0).
    """
    if variables == 1:  # a single count, which the length fixes: nothing can be sent
        return 1

    def is_past_the_best(k: int) -> bool:
        added = factor * multiset(variables - 1, k + 1)
        return added >= multiset(variables - 1, total - 1 - k)

    k = _first_near(is_past_the_best, _split_guess(factor, variables, total), total)
    return factor * multiset(variables, k) + multiset(variables, total - 1 - k)


def _first_near(holds: Callable[[int], bool], guess: int, last: int) -> int:
    """The first k in -1..last that holds, looked for around the guess."""
    reach = 1
    while guess - reach > -1 and holds(guess - reach):
        reach *= 2
    low, reach = max(guess - reach, -1), 1
    while guess + reach < last and not holds(guess + reach):
        reach *= 2
    return first_whole(holds, low, min(guess + reach, last))


def _split_guess(factor: int, variables: int, total: int) -> int:
    """C / (1 + factor^(1/(v-2))), where the leading powers of the two steps are equal."""
    if variables <= 2:
        return -1
    if total < 2**50:
        return int(total / (1 + math.exp(math.log(factor) / (variables - 2))))
    with flint.ctx.workprec(total.bit_length() + 64):
        root = flint.arb(factor).root(variables - 2)
        return int((flint.arb(total) / (root + 1)).mid().floor().unique_fmpz() or 0)


@catalogued("ub_stat_N")
def statistics_upper_bound_short(depth: int, width: int, inside: int, outside: int) -> int:
    """No network on n_P + n_Q positions, the output among the n_P, has a larger separation rank.

        sum_{k=0..C} min( D_P(k), D_Q(C - k) )

    D_Q(j) counts independent polynomials of degree j in S_Q, D_P(k) those of degree k in S_P
    times one coordinate of the output's own vector.
    """
    if min(inside, outside) >= width:
        return int(statistics_upper_bound(depth, width))
    return sum(degree_upper_bounds(depth, width, inside, outside))


def degree_upper_bounds(
    depth: int, width: int, inside: int, outside: int, *, one_head: bool = False
) -> tuple[int, ...]:
    """min( D_P(k), D_Q(C - k) ) for k = 0..C: bounds on the part of degree k in S_P.

    Without residual connections the parts have ranks of their own, which add up; those of three
    layers and one head miss the isotropic deficit.
    """
    C = interaction_count(depth)
    short_sides = [n for n in (inside, outside) if n < width]
    factors = sum(min(n * width, 2 * C + 1) * _partition_count(C, n) for n in short_sides)
    if factors > _MOST_FACTORS:
        raise refusal("partitions-too-many", side=min(short_sides), width=width)
    missing = _deficit(width) if one_head and depth == 3 else 0
    of_inside = [_with_own_vector(width, inside, k) for k in range(C + 1)]
    of_outside = [_without(width, outside, C - k) - missing * (k == 6) for k in range(C + 1)]
    return tuple(map(min, of_inside, of_outside))


def _without(d: int, n: int, j: int) -> int:
    """D_Q(j): the sum over partitions of j into at most n parts of dim S_{2 la}."""
    if n >= d:
        return multiset(symmetric_entries(d), j)
    return sum(_weyl_dimension(tuple(2 * part for part in la), d) for la in _partitions(j, n, j))


def _with_own_vector(d: int, n: int, k: int) -> int:
    """D_P(k): the same for 2 la with one box more, in any row up to n (Pieri's rule)."""
    everywhere = d * _without(d, n, k)
    if n >= d:
        return everywhere
    full = (la for la in _partitions(k, n, k) if len(la) == n)  # a box can go below them, too
    below = (_weyl_dimension((*(2 * part for part in la), 1), d) for la in full)
    return everywhere - sum(below)


def _partitions(total: int, parts: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Partitions of `total` into at most `parts` parts of at most `largest`."""
    if total == 0:
        yield ()
    elif parts > 0:
        at_least = -(-total // parts)  # the largest part is no less than the mean
        for first in range(min(total, largest), at_least - 1, -1):
            for rest in _partitions(total - first, parts - 1, first):
                yield (first, *rest)


def _weyl_dimension(mu: tuple[int, ...], d: int) -> int:
    """dim S_mu(C^d) = prod_{i<j<=d} (mu_i - mu_j + j - i) / (j - i).

    With the empty rows divided out it reads, for k filled rows counted from 0:
        prod_i binom(d - 1 - i + mu_i, mu_i) prod_{i<j<k} (mu_i - mu_j + j - i)
                                                   / prod_i (mu_i + 1) ... (mu_i + k - 1 - i)
    """
    rows = [part for part in mu if part > 0]
    k = len(rows)
    above = math.prod(math.comb(d - 1 - i + part, part) for i, part in enumerate(rows))
    above *= math.prod(rows[i] - rows[j] + j - i for i in range(k) for j in range(i + 1, k))
    return above // math.prod(part + t for i, part in enumerate(rows) for t in range(1, k - i))


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


@catalogued("isotropic_deficit")
def isotropic_deficit(width: int) -> int:
    """What three layers of one head miss, at least, of the part of degree 6 in S_P and 7 in S_Q.

        [t^14] (1 + t)^2 / (1 - t)^(d-3)

    Forms v v^T with u v = b(v, v) = D(v, v) = 0 kill that part, as long as Q limits it.
    """
    most = _WIDEST_LIMITED_BY_Q
    refuse_if(width > most, "limited-by-other-side", width, most=most)
    return _deficit(width)


def _deficit(d: int) -> int:
    n = max(0, d - 3)
    return multiset(n, 14) + 2 * multiset(n, 13) + multiset(n, 12)


@catalogued("ub_stat_one_head_depth3")
def one_head_upper_bound(width: int) -> int:
    """No network of three layers and one head has a larger separation rank.

    ub_stat with the part of degree 7 in S_Q lowered by the isotropic deficit
    """
    return sum(degree_upper_bounds(3, width, width, width, one_head=True))


@factored("ub_stat_vocab")
def statistics_upper_bound_vocabulary(
    depth: int,
    vocab: int,
    embedding_rank: int,
    inside: int | None = None,
    outside: int | None = None,
) -> Split:
    """No network over V tokens without positions has a larger separation rank.

        min( min_{k0} [ r multiset(q, k0) + multiset(q, C - 1 - k0) ],
             V multiset(V, n_P - 1),  multiset(V, n_Q) ),   q = min(V, r(r+1)/2 + 1)

    The second moment of one side depends on its token counts alone, whose total is fixed. The
    last two count the ways to fill a side; without n_P and n_Q the bound holds for every N.
    """
    refuse_if(embedding_rank > vocab, "rank-over-vocabulary", embedding_rank, vocab=vocab)
    fillings = []
    if inside is not None:
        fillings.append(Product(powers=[(vocab, 1)], multisets=[(vocab, inside - 1)]))
    if outside is not None:
        fillings.append(Product(multisets=[(vocab, outside)]))
    # Independent counts are one more than the effective dimension.
    q, C = min(vocab, symmetric_entries(embedding_rank) + 1), interaction_count(depth)
    return Split(factor=embedding_rank, variables=q, total=C, fillings=tuple(fillings))


@factored("ub_fill")
def filling_upper_bound(vocab: int, positions: int) -> Product:
    """No function of N tokens has a larger separation rank: the ways to fill the smaller side.

    V^floor(N / 2),   for a balanced partition
    """
    return Product(powers=[(vocab, positions // 2)])


@factored("ub_stat_pos")
def statistics_upper_bound_positions(depth: int, embedding_rank: int, position_rank: int) -> Split:
    """No network with a rank-r embedding and positions of rank r_e has a larger separation rank.

        min_{k0} [ (r+1) multiset(m'+1, k0) + multiset(m'+1, C-1-k0) ],   m' = r(r+1)/2 + r r_e

    m' counts the second moments in which inputs have a part. The bound for the full width holds
    too; take the smaller.
    """
    refuse_if(position_rank < 1, "no-positions", position_rank)
    variables = symmetric_entries(embedding_rank) + embedding_rank * position_rank + 1
    return Split(factor=embedding_rank + 1, variables=variables, total=interaction_count(depth))
