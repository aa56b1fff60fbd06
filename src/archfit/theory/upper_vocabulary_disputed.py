"""The papers' upper bounds for vocabulary and convolution embeddings: Wies et al., disputed.

Theorems 3 and 4 count groups of terms as theorem 2 of Levine et al. does, and have its gap
(`archfit.theory.upper_deep_disputed`). For small vocabularies the formulas are nevertheless
true, because the bound of `archfit.theory.upper_statistics` lies far below them.
"""

from fractions import Fraction
from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, ln, ln_multiset, log3_from_ln
from archfit.theory.counting import multiset, power
from archfit.theory.sizes import check_sizes

if TYPE_CHECKING:
    from flint import arb


def vocabulary_formula(depth: int, embedding_rank: int, position_rank: int) -> int:
    """The formula of the statement; not a bound.

        multiset(r + r_e, T) multiset(4, T) (T + 1)^(r + r_e),   T = 3^L

    Source: Wies et al. 2021, theorems 3 and 4 (eqs. 9 and 11).
    Status: disputed (its proof has a gap).
    """
    T, total = _terms(depth, embedding_rank, position_rank)
    return multiset(total, T) * multiset(4, T) * power(T + 1, total)


@Certified
def vocabulary_formula_log3(depth: int, embedding_rank: int, position_rank: int) -> "arb":
    """Logarithm base 3 of the formula of the statement; not a bound.

    Source: Wies et al. 2021, theorems 3 and 4 (eqs. 9 and 11).
    Status: disputed (its proof has a gap).
    """
    T, total = _terms(depth, embedding_rank, position_rank)
    return log3_from_ln(ln_multiset(total, T) + ln_multiset(4, T) + ln(T + 1) * total)


def vocabulary_proof_formula(depth: int, embedding_rank: int, position_rank: int) -> Fraction:
    """The tighter formula at the end of the proof; not a bound.

        multiset(r + r_e, T) multiset(4, T) (T/r + 1)^r (T/r_e + 1)^r_e,   T = 3^L

    The last factor is 1 when r_e = 0.

    Source: Wies et al. 2021, last display of the proofs of theorems 3 and 4.
    Status: disputed (its proof has a gap).
    """
    T, total = _terms(depth, embedding_rank, position_rank)
    value = Fraction(multiset(total, T) * multiset(4, T))
    for rank in (embedding_rank, position_rank):
        if rank > 0:
            value *= Fraction(power(T + rank, rank), power(rank, rank))
    return value


@Certified
def vocabulary_proof_formula_log3(depth: int, embedding_rank: int, position_rank: int) -> "arb":
    """Logarithm base 3 of the tighter formula at the end of the proof; not a bound.

    Source: Wies et al. 2021, last display of the proofs of theorems 3 and 4.
    Status: disputed (its proof has a gap).
    """
    T, total = _terms(depth, embedding_rank, position_rank)
    value = ln_multiset(total, T) + ln_multiset(4, T)
    for rank in (embedding_rank, position_rank):
        if rank > 0:
            value += ln(Fraction(T, rank) + 1) * rank
    return log3_from_ln(value)


def _terms(depth: int, embedding_rank: int, position_rank: int) -> tuple[int, int]:
    check_sizes(depth=depth, embedding_rank=embedding_rank, position_rank=position_rank)
    return int(3**depth), embedding_rank + position_rank
