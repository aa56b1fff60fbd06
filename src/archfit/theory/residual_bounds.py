"""Upper bounds with residual connections: appendix A.4 of the supplementary, and its repair.

All speak of K = N d_x^4 / H, by which one layer can multiply the cube of a separation rank
(lemma 2). `archfit.theory.statistics_bounds` holds unchanged with residuals and is far sharper.
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from archfit.theory.arithmetic import (
    EXACT_DIGITS,
    Certified,
    TooManyDigitsError,
    interaction_count,
    ln,
    log3_from_ln,
)
from archfit.theory.continuous_bounds import deep_upper_formula, deep_upper_formula_log3
from archfit.theory.quantities import Basis, catalogued, check_heads_fit

if TYPE_CHECKING:
    from flint import arb

_RECURSION_STEPS = 12  # by then R is so large that R + K R^3 = K R^3 to half a million bits

_SUPPLEMENTARY = "supplementary of Levine et al. 2020"
THEOREM_4 = Basis("disputed", f"{_SUPPLEMENTARY}, theorem 4", " (its proof has a gap)")
RECURSION = Basis("derived", f"{_SUPPLEMENTARY}, lemma 2, iterated here")


def layer_growth(width: int, heads: int, positions: int) -> Fraction:
    """K = N d_x^4 / H: a layer turns separation rank s into at most K s^3.

    Proved as lemma 2 of the supplementary of Levine et al. 2020, its term count repaired here.
    """
    check_heads_fit(heads, width=width)
    return Fraction(positions * width**4, heads)


@catalogued("ub_residual_recursion", RECURSION)
def residual_recursion(depth: int, width: int, heads: int, positions: int) -> Fraction:
    """No residual network of this shape has a larger separation rank.

    R_L,   R_0 = 1,   R_l = R_(l-1) + K R_(l-1)^3
    """
    K = layer_growth(width, heads, positions)
    if interaction_count(depth) > EXACT_DIGITS / math.log10(K):
        raise TooManyDigitsError(f"R_{depth}")
    R = Fraction(1)
    for _ in range(depth):
        R += K * R**3
    return R


@catalogued("ub_residual_recursion_log3", RECURSION)
@Certified
def residual_recursion_log3(depth: int, width: int, heads: int, positions: int) -> "arb":
    """Logarithm base 3 of the residual recursion.

    Once R is astronomic the added R_(l-1) is a ball of almost no radius, and the rest of the
    recursion, ln R_l = ln K + 3 ln R_(l-1), has a closed form.
    """
    from flint import arb, fmpz

    ln_K = ln(layer_growth(width, heads, positions))
    ln_R = arb(0)
    for _ in range(min(depth, _RECURSION_STEPS)):
        ln_R = ln_K + ln_R * 3 + (-ln_K - ln_R * 2).exp().log1p()
    left = depth - min(depth, _RECURSION_STEPS)
    tripled = fmpz(3**left)
    neglected = arb(0, (-ln_R * 2).exp().upper()) if left else arb(0)
    return log3_from_ln((ln_R + neglected) * tripled + ln_K * ((tripled - 1) // 2))


@catalogued(
    "ub_residual_product_paper_log3",
    Basis(
        "disputed",
        f"{_SUPPLEMENTARY}, proof of theorem 3",
        " (the factor of a layer is cubed at every later one, which it misses)",
    ),
)
@Certified
def residual_product_paper_log3(depth: int, width: int, heads: int, positions: int) -> "arb":
    """Logarithm base 3 of the product as printed, which its own recursion can exceed.

        log3((L + 1)!) + C(L) log3 K

    With K = 2 the recursion gives R_3 = 370443, the product 196608.
    """
    from flint import arb

    growth = _ln_growth(depth, width, heads, positions)
    return log3_from_ln(arb(depth + 2).lgamma() + growth)


@catalogued(
    "ub_residual_closed_paper_log3",
    Basis("disputed", f"{_SUPPLEMENTARY}, theorem 3", " (it closes a product that misses factors)"),
)
@Certified
def residual_closed_paper_log3(depth: int, width: int, heads: int, positions: int) -> "arb":
    """Logarithm base 3 of the closed form as printed.

        L log3 L + (4 log3 d_x + log3 N - log3 H) C(L)

    It covers the printed product only for L >= 3, and never the corrected one.
    """
    return log3_from_ln(ln(depth) * depth + _ln_growth(depth, width, heads, positions))


@catalogued(
    "ub_residual_product_corrected_log3",
    Basis("derived", "derived here from the recursion of the supplementary, lemma 2"),
)
@Certified
def residual_product_corrected_log3(depth: int, width: int, heads: int, positions: int) -> "arb":
    """Logarithm base 3 of the product that the recursion does give.

    log3(L + 1) + sum_{l=2..L} 3^(L-l+1) log3 l + C(L) log3 K
    """
    growth = _ln_growth(depth, width, heads, positions)
    return log3_from_ln(ln(depth + 1) + _cubed_layer_factors(depth) + growth)


def _ln_growth(depth: int, width: int, heads: int, positions: int) -> "arb":
    """C(L) ln K, the growth of all layers together."""
    return ln(layer_growth(width, heads, positions)) * interaction_count(depth)


def _cubed_layer_factors(depth: int) -> "arb":
    """sum_{l=2..L} 3^(L-l+1) ln l, cut where the rest is below the working precision.

    The rest after l = c is at most 3^(L+1) sum_{l>c} l 3^-l = 3^(L+1) 3^-c (c/2 + 3/4).
    """
    from flint import arb, ctx, fmpz

    cut = min(depth, ctx.prec)
    total = sum((ln(layer) * fmpz(3 ** (cut - layer + 1)) for layer in range(2, cut + 1)), arb(0))
    if cut == depth:
        return total
    rest = arb(cut + 2) * 3
    return (total + arb(rest / 2, rest / 2)) * fmpz(3 ** (depth - cut))


@catalogued("ub_residual_thm4", THEOREM_4)
def residual_deep_formula(depth: int, width: int) -> Fraction:
    """The papers' formula for deep residual networks; not a bound.

    d_x (C + 1)^2 multiset(d_x, 2C) (2C / d_x + 1)^d_x
    """
    return (interaction_count(depth) + 1) * deep_upper_formula(depth, width)


@catalogued("ub_residual_thm4_log3", THEOREM_4)
@Certified
def residual_deep_formula_log3(depth: int, width: int) -> "arb":
    """Logarithm base 3 of the papers' formula for deep residual networks; not a bound."""
    extra_factor = log3_from_ln(ln(interaction_count(depth) + 1))
    return extra_factor + deep_upper_formula_log3.ball(depth, width)
