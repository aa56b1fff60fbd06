"""The papers' upper bound for deep networks: theorem 2 of Levine et al., disputed.

Its proof gives all terms with equal powers of the input coordinates one common coefficient.
But the inputs enter through products of entries of S = X X^T, and different products have the
same powers (S_11 S_22 and S_12^2), so there are more groups than it counts. Explicit weights
exceed the formula (`archfit.theory.monomial_witness`). These functions return the formula;
`archfit.theory.upper_statistics` has the bound that is true.
"""

from fractions import Fraction
from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, ln, ln_multiset, log3, log3_from_ln
from archfit.theory.counting import interaction_count, multiset, power
from archfit.theory.sizes import check_sizes

if TYPE_CHECKING:
    from flint import arb


def deep_upper_formula(depth: int, width: int) -> Fraction:
    """The papers' formula for deep networks; not a bound.

        d_x (C + 1) multiset(d_x, 2C) (2C / d_x + 1)^d_x

    Source: supplementary of Levine et al. 2020, theorem 2 and eq. 8.
    Status: disputed (its proof has a gap).
    """
    check_sizes(depth=depth, width=width)
    d, C = width, interaction_count(depth)
    return d * (C + 1) * multiset(d, 2 * C) * Fraction(power(2 * C + d, d), power(d, d))


@Certified
def deep_upper_formula_log3(depth: int, width: int) -> "arb":
    """Logarithm base 3 of the papers' formula for deep networks; not a bound.

    Source: supplementary of Levine et al. 2020, theorem 2 and eq. 8.
    Status: disputed (its proof has a gap).
    """
    check_sizes(depth=depth, width=width)
    d, C = width, interaction_count(depth)
    return log3_from_ln(ln(d * (C + 1)) + ln_multiset(d, 2 * C) + ln(Fraction(2 * C + d, d)) * d)


@Certified
def deep_upper_closed_log3(depth: int, width: int) -> "arb":
    """The closed form the papers draw from it, above it only where 3^L > d_x.

        (2 d_x + 1) L + log3 d_x + 2 d_x (log3(2 sqrt(2e)) - log3 d_x)

    Source: supplementary of Levine et al. 2020, eq. 9, last line.
    Status: disputed (its proof has a gap).
    """
    from flint import arb

    check_sizes(depth=depth, width=width)
    L, d = depth, width
    log3_8e_halved = log3_from_ln(ln(8) + 1) / 2
    return arb((2 * d + 1) * L) + log3(d) + (log3_8e_halved - log3(d)) * (2 * d)


@Certified
def deep_upper_closed_preprint_log3(depth: int, width: int) -> "arb":
    """The preprint's closed form, with 2e where the supplementary has 2 sqrt(2e).

        (2 d_x + 1) L + log3 d_x - 2 d_x log3(d_x / 2e)

    Source: Levine et al. 2020 (preprint), eq. 7 and appendix A.3; superseded.
    Status: disputed (its proof has a gap).
    """
    from flint import arb

    check_sizes(depth=depth, width=width)
    L, d = depth, width
    return arb((2 * d + 1) * L) + log3(d) + (log3_from_ln(ln(2) + 1) - log3(d)) * (2 * d)
