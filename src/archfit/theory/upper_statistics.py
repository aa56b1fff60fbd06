"""The upper bound that is true at every depth: count the statistics that one side can send.

The output is sum_a x_{i,a} f_a(S_P + S_Q), with f of degree C(L) in the second moments
S_P = X_P X_P^T and S_Q of the two sides. Split each term by its degree k in S_P. Terms with
k <= k0 lie in a space of (P-side polynomials of degree <= k0), the others in one of (Q-side
polynomials of degree <= C - 1 - k0); the separation rank is at most the sum of the two
dimensions, for every k0. A residual connection only adds terms of lower degree, so the same
numbers hold with it.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from archfit.spec.search import first_whole
from archfit.theory.certified import Certified, ln, ln_multiset, log3_from_ln
from archfit.theory.counting import interaction_count, multiset, symmetric_entries
from archfit.theory.sizes import check_sizes

if TYPE_CHECKING:
    from flint import arb


def statistics_upper_bound(depth: int, width: int) -> int:
    """No network of this shape has a larger separation rank, for any N, partition and weights.

        min_{k0 = -1..C} [ d multiset(m + 1, k0) + multiset(m + 1, C - 1 - k0) ],   m = d(d+1)/2

    With a continuous embedding of rank r and no positions, r takes the place of d.

    Source: derived here (docs/theory.md, "What replaces it").
    Status: derived, with and without residual.
    """
    check_sizes(depth=depth, width=width)
    return best_split(width, symmetric_entries(width) + 1, interaction_count(depth))


@Certified
def statistics_upper_bound_log3(depth: int, width: int) -> "arb":
    """Logarithm base 3 of the same with the split in the middle, k0 = floor((C - 1) / 2).

    Source: derived here (docs/theory.md, "What replaces it").
    Status: derived, with and without residual.
    """
    check_sizes(depth=depth, width=width)
    return middle_split_log3(width, symmetric_entries(width) + 1, interaction_count(depth))


def statistics_upper_bound_positions(depth: int, embedding_rank: int, position_rank: int) -> int:
    """No network with a rank-r embedding and positions of rank r_e has a larger separation rank.

        min_{k0} [ (r+1) multiset(m'+1, k0) + multiset(m'+1, C-1-k0) ],   m' = r(r+1)/2 + r r_e

    The bound for the full width holds too; take the smaller.

    Source: derived here (docs/theory.md, "What replaces it").
    Status: derived, with and without residual.
    """
    r, variables = _with_positions(depth, embedding_rank, position_rank)
    return best_split(r + 1, variables, interaction_count(depth))


@Certified
def statistics_upper_bound_positions_log3(
    depth: int, embedding_rank: int, position_rank: int
) -> "arb":
    """Logarithm base 3 of the bound with positions, split in the middle.

    Source: derived here (docs/theory.md, "What replaces it").
    Status: derived, with and without residual.
    """
    r, variables = _with_positions(depth, embedding_rank, position_rank)
    return middle_split_log3(r + 1, variables, interaction_count(depth))


def best_split(factor: int, variables: int, total: int) -> int:
    """min over k0 in -1..C of factor multiset(v, k0) + multiset(v, C - 1 - k0).

    Both terms are convex in k0, so the first k0 at which one more step no longer pays is the
    best. A step from k0 adds factor multiset(v - 1, k0 + 1) and saves multiset(v - 1, C - 1 - k0).
    """
    if variables == 1:  # a single count, which the length fixes: nothing can be sent
        return 1

    def pays(k: int) -> bool:
        added = factor * multiset(variables - 1, k + 1)
        return added < multiset(variables - 1, total - 1 - k)

    k = _first_that_does_not(pays, _split_guess(factor, variables, total), total)
    return factor * multiset(variables, k) + multiset(variables, total - 1 - k)


def _first_that_does_not(pays: Callable[[int], bool], guess: int, last: int) -> int:
    """The first k in -1..last where `pays` turns false, looked for around the guess."""
    reach = 1
    while guess - reach > -1 and not pays(guess - reach):
        reach *= 2
    low, reach = max(guess - reach, -1), 1
    while guess + reach < last and pays(guess + reach):
        reach *= 2
    high = min(guess + reach, last)
    return first_whole(lambda k: not pays(k), low, high)


def _split_guess(factor: int, variables: int, total: int) -> int:
    """C / (1 + factor^(1/(v-2))), where the leading powers of the two steps are equal."""
    if variables <= 2:
        return -1
    if total < 2**50:
        return int(total / (1 + math.exp(math.log(factor) / (variables - 2))))
    from flint import arb, ctx, fmpz

    with ctx.workprec(total.bit_length() + 64):
        root = arb(factor).root(variables - 2)
        return int((arb(fmpz(total)) / (root + 1)).mid().floor().unique_fmpz() or 0)


def middle_split_log3(factor: int, variables: int, total: int) -> "arb":
    """log3 of factor multiset(v, k) + multiset(v, C - 1 - k) at k = floor((C - 1) / 2).

    The two multisets are equal when C is odd, and neighbours otherwise, so that their ratio is
    a small fraction.
    """
    k = (total - 1) // 2
    other_over_this = Fraction(1) if total % 2 else Fraction(variables + k, k + 1)
    return log3_from_ln(ln_multiset(variables, k) + ln(factor + other_over_this))


def _with_positions(depth: int, embedding_rank: int, position_rank: int) -> tuple[int, int]:
    check_sizes(depth=depth, embedding_rank=embedding_rank, position_rank=position_rank)
    if position_rank < 1:
        raise ValueError(
            "position_rank=0 is no positional embedding; use position_rank >= 1, or the bound "
            "without positions"
        )
    moments = symmetric_entries(embedding_rank) + embedding_rank * position_rank
    return embedding_rank, moments + 1
