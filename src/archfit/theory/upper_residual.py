"""Upper bounds with residual connections: appendix A.4 of the supplementary, and its repair.

All speak of K = N d_x^4 / H, by which one layer can multiply the cube of a separation rank
(lemma 2). `archfit.theory.upper_statistics` holds unchanged with residuals and is far sharper.
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, ln, log3_from_ln
from archfit.theory.counting import EXACT_DIGITS, TooManyDigitsError, interaction_count
from archfit.theory.sizes import check_heads_fit, check_sizes
from archfit.theory.upper_deep_disputed import deep_upper_formula, deep_upper_formula_log3

if TYPE_CHECKING:
    from flint import arb

_RECURSION_STEPS = 12  # by then R is so large that R + K R^3 = K R^3 to half a million bits


def layer_growth(width: int, heads: int, positions: int) -> Fraction:
    """K = N d_x^4 / H: a layer turns separation rank s into at most K s^3.

    Source: supplementary of Levine et al. 2020, lemma 2 (its term count repaired here).
    Status: proved.
    """
    check_sizes(width=width, heads=heads, positions=positions)
    check_heads_fit(width=width, heads=heads)
    return Fraction(positions * width**4, heads)


def residual_recursion(depth: int, width: int, heads: int, positions: int) -> Fraction:
    """No residual network of this shape has a larger separation rank.

        R_L,   R_0 = 1,   R_l = R_(l-1) + K R_(l-1)^3

    Source: supplementary of Levine et al. 2020, lemma 2, iterated here.
    Status: derived.
    """
    check_sizes(depth=depth)
    K = layer_growth(width, heads, positions)
    if interaction_count(depth) > EXACT_DIGITS / math.log10(K):
        raise TooManyDigitsError(f"R_{depth}")
    R = Fraction(1)
    for _ in range(depth):
        R += K * R**3
    return R


@Certified
def residual_recursion_log3(depth: int, width: int, heads: int, positions: int) -> "arb":
    """Logarithm base 3 of the residual recursion.

    Once R is astronomic the added R_(l-1) is a ball of almost no radius, and the rest of the
    recursion, ln R_l = ln K + 3 ln R_(l-1), has a closed form.

    Source: supplementary of Levine et al. 2020, lemma 2, iterated here.
    Status: derived.
    """
    from flint import arb, fmpz

    check_sizes(depth=depth)
    ln_K = ln(layer_growth(width, heads, positions))
    ln_R = arb(0)
    for _ in range(min(depth, _RECURSION_STEPS)):
        ln_R = ln_K + ln_R * 3 + (-ln_K - ln_R * 2).exp().log1p()
    left = depth - min(depth, _RECURSION_STEPS)
    tripled = fmpz(3**left)
    neglected = arb(0, (-ln_R * 2).exp().upper()) if left else arb(0)
    return log3_from_ln((ln_R + neglected) * tripled + ln_K * ((tripled - 1) // 2))


@Certified
def residual_product_paper_log3(depth: int, width: int, heads: int, positions: int) -> "arb":
    """Logarithm base 3 of the product as printed, which its own recursion can exceed.

        log3((L + 1)!) + C(L) log3 K

    With K = 2 the recursion gives R_3 = 370443, the product 196608.

    Source: supplementary of Levine et al. 2020, proof of theorem 3.
    Status: disputed (the factor of a layer is cubed at every later one, which it misses).
    """
    from flint import arb, fmpz

    check_sizes(depth=depth)
    ln_K = ln(layer_growth(width, heads, positions))
    return log3_from_ln(arb(depth + 2).lgamma() + ln_K * fmpz(interaction_count(depth)))


@Certified
def residual_product_corrected_log3(depth: int, width: int, heads: int, positions: int) -> "arb":
    """Logarithm base 3 of the product that the recursion does give.

        log3(L + 1) + sum_{l=2..L} 3^(L-l+1) log3 l + C(L) log3 K

    Source: derived here from the recursion of the supplementary, lemma 2.
    Status: derived.
    """
    from flint import fmpz

    check_sizes(depth=depth)
    ln_K = ln(layer_growth(width, heads, positions))
    return log3_from_ln(
        ln(depth + 1) + _cubed_layer_factors(depth) + ln_K * fmpz(interaction_count(depth))
    )


@Certified
def residual_closed_paper_log3(depth: int, width: int, heads: int, positions: int) -> "arb":
    """Logarithm base 3 of the closed form as printed.

        L log3 L + (4 log3 d_x + log3 N - log3 H) C(L)

    It covers the printed product only for L >= 3, and never the corrected one.

    Source: supplementary of Levine et al. 2020, theorem 3.
    Status: disputed (it closes a product that misses factors).
    """
    from flint import fmpz

    check_sizes(depth=depth)
    ln_K = ln(layer_growth(width, heads, positions))
    return log3_from_ln(ln(depth) * depth + ln_K * fmpz(interaction_count(depth)))


def residual_deep_formula(depth: int, width: int) -> Fraction:
    """The papers' formula for deep residual networks; not a bound.

        d_x (C + 1)^2 multiset(d_x, 2C) (2C / d_x + 1)^d_x

    Source: supplementary of Levine et al. 2020, theorem 4.
    Status: disputed (its proof has a gap).
    """
    return (interaction_count(depth) + 1) * deep_upper_formula(depth, width)


@Certified
def residual_deep_formula_log3(depth: int, width: int) -> "arb":
    """Logarithm base 3 of the papers' formula for deep residual networks; not a bound.

    Source: supplementary of Levine et al. 2020, theorem 4.
    Status: disputed (its proof has a gap).
    """
    extra_factor = log3_from_ln(ln(interaction_count(depth) + 1))
    return extra_factor + deep_upper_formula_log3.ball(depth, width)


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
