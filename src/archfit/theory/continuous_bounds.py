"""Bounds for continuous inputs: the papers' upper and lower ones, and a stronger lower one.

Theorem 1 of Levine et al. holds at every depth. Theorem 2, for deep networks, is disputed: its
proof gives all terms with equal powers of the input coordinates one common coefficient. But the
inputs enter through products of entries of S = X X^T, and different products have the same powers
(S_11 S_22 and S_12^2), so there are more groups than it counts. Explicit weights exceed the formula
(`archfit.theory.witness_formula`); `archfit.theory.statistics_bounds` has the bound that is true.

With residual connections (appendix A.4 of the supplementary, and its repair) all upper bounds speak
of K = N d_x^4 / H, by which one layer can multiply the cube of a separation rank (lemma 2);
`statistics_bounds` holds unchanged and is far sharper. Lower bounds are for almost all weights.
"""

import math
from fractions import Fraction
from functools import lru_cache

from archfit.spec.errors import refusal, refuse_if
from archfit.theory.arithmetic import EXACT_DIGITS, Product, TooManyDigitsError, interaction_count
from archfit.theory.inputs import catalogued, certified, check_heads_fit, factored
from archfit.theory.reals import Ball, flint, ln, log3, log3_from_ln, log3_of_one_plus

_RECURSION_STEPS = 12  # by then R is so large that R + K R^3 = K R^3 to half a million bits


@factored("ub_thm1")
def every_depth_upper_bound(
    depth: int, width: int, heads: int, head_dim: int | None = None
) -> Product:
    """No network of this shape has a larger separation rank, for any partition and weights.

    (H (d_a + 1))^C(L),   which is (d_x + H)^C(L) when d_a = d_x / H
    """
    base = width + heads if head_dim is None else heads * (head_dim + 1)
    return Product(powers=[(base, interaction_count(depth))])


@factored("ub_thm2")
def deep_upper_formula(depth: int, width: int) -> Product:
    """The papers' formula for deep networks; not a bound.

    d_x (C + 1) multiset(d_x, 2C) (2C / d_x + 1)^d_x
    """
    d, C = width, interaction_count(depth)
    powers = (d * (C + 1), 1), (Fraction(2 * C + d, d), d)
    return Product(powers=powers, multisets=[(d, 2 * C)])


@certified("ub_thm2_closed_log3")
def deep_upper_closed_log3(depth: int, width: int) -> Ball:
    """The closed form the papers draw from it, above it only where 3^L > d_x.

    (2 d_x + 1) L + log3 d_x + 2 d_x (log3(2 sqrt(2e)) - log3 d_x)
    """
    L, d = depth, width
    log3_8e_halved = log3_from_ln(ln(8) + 1) / 2
    return (2 * d + 1) * L + log3(d) + (log3_8e_halved - log3(d)) * (2 * d)


@certified("ub_thm2_closed_log3_preprint")
def deep_upper_closed_preprint_log3(depth: int, width: int) -> Ball:
    """The preprint's closed form, with 2e where the supplementary has 2 sqrt(2e).

    (2 d_x + 1) L + log3 d_x - 2 d_x log3(d_x / 2e)
    """
    L, d = depth, width
    return (2 * d + 1) * L + log3(d) + (log3_from_ln(ln(2) + 1) - log3(d)) * (2 * d)


@factored("lb")
def lower_bound(depth: int, width: int, heads: int) -> Product:
    """Almost all weights reach at least this separation rank; 0 when H = d_x says nothing.

    multiset(n, 3^(L-2)),   n = floor((d_x - H) / 2)
    """
    zero = _too_narrow(width, heads, 1)
    return Product(multisets=[_terms(depth, width, heads)], if_zero=zero)


@certified("lb_relaxA_log3")
def lower_bound_wide_log3(depth: int, width: int, heads: int) -> Ball:
    """The relaxation that is better below the transition depth.

    lam log3((n - 1) / lam + 1),   lam = 3^(L-2)
    """
    n, lam = _terms(depth, width, heads, least=1)
    return log3_of_one_plus(Fraction(n - 1, lam)) * lam


@certified("lb_relaxB_log3")
def lower_bound_deep_log3(depth: int, width: int, heads: int) -> Ball:
    """The relaxation that is better above the transition depth.

    (n - 1) log3(lam / (n - 1) + 1),   lam = 3^(L-2), n > 1
    """
    n, lam = _terms(depth, width, heads, least=2)
    return log3_of_one_plus(Fraction(lam, n - 1)) * (n - 1)


@certified("lb_thm1_closed_log3")
def lower_bound_wide_closed_log3(depth: int, width: int, heads: int) -> Ball:
    """The closed form of theorem 1; positive only when 3^L < 4.5 (d_x - H).

        3^(L-2) (log3(d_x - H) - L + 2 - log3 2)

    With d_x - H odd it may exceed log3 of the exact bound, whose n is rounded down.
    """
    _, lam = _terms(depth, width, heads, least=1)
    return log3(Fraction(width - heads, 2 * lam)) * lam


@certified("lb_thm2_closed_log3")
def lower_bound_deep_closed_log3(depth: int, width: int, heads: int) -> Ball:
    """The closed form of theorem 2, lower part.

    d_x L / 2 - L (H / 2 + 1) - d_x (1 + log3((d_x - H) / 2) / 2)
    """
    _terms(depth, width, heads, least=2)
    L, d, H = depth, width, heads
    return (d * L - L * (H + 2) - 2 * d - log3(Fraction(d - H, 2)) * d) / 2


@factored("lb_strong")
def strong_lower_bound(
    depth: int, width: int, heads: int, embedding_rank: int | None = None
) -> Product:
    """Almost all weights reach at least this separation rank; 0 when H = d_x says nothing.

        multiset(d_x - H, 3^(L-2)),   with a continuous embedding of rank r
        multiset(min(r - 1, d_x - H), 3^(L-2))

    Templates that may be complex need no complement halves, so all d_x - H coordinates that
    are not a head's constant carry the inner product (docs/theory.md).
    """
    terms = _strong_terms(depth, width, heads, embedding_rank)
    return Product(multisets=[terms], if_zero=refusal("no-free-coordinate", heads, width=width))


@factored("lb_sphere")
def sphere_lower_bound(
    depth: int, width: int, heads: int, embedding_rank: int | None = None
) -> Product:
    """Almost all weights reach this with any mask or none, wherever the output sees both sides.

        multiset(n + 1, lam) + multiset(n + 1, lam - 1),   n = d_x - H, lam = 3^(L-2)

    With a continuous embedding of rank r, n = min(r - 1, d_x - H). The witness of lb_strong gives
    polynomials in |a|^2, <a, b> and |b|^2 that have every monomial of degree lam.
    """
    n, lam = _strong_terms(depth, width, heads, embedding_rank)
    refuse_if(n < 1, "no-free-coordinate", heads, width=width)
    # The second multiset is lam / (n + lam) of the first.
    return Product(powers=[(1 + Fraction(lam, n + lam), 1)], multisets=[(n + 1, lam)])


@lru_cache(maxsize=8, typed=True)  # many digits, which several bounds need
def doubled_degree(depth: int) -> int:
    """lam = 3^(L-2), the power to which the witnesses raise an inner product."""
    refuse_if(depth < 2, "too-shallow", depth)
    return int(3 ** (depth - 2))


def _terms(depth: int, width: int, heads: int, *, least: int = 0) -> tuple[int, int]:
    """n and lam of the formulas, refused where n is below `least` and there is no logarithm."""
    check_heads_fit(heads, width=width)
    n = (width - heads) // 2
    if n < least:
        raise _too_narrow(width, heads, least)
    return n, doubled_degree(depth)


def _too_narrow(width: int, heads: int, least: int) -> ValueError:
    n, enough = (width - heads) // 2, heads + 2 * least
    return refusal("too-narrow", width, heads=heads, n=n, least=least, enough=enough)


def _strong_terms(
    depth: int, width: int, heads: int, embedding_rank: int | None
) -> tuple[int, int]:
    """The coordinates that are free for the vectors, and lam."""
    check_heads_fit(heads, width=width)
    return min(width - heads, (embedding_rank or width) - 1), doubled_degree(depth)


def _layer_growth(width: int, heads: int, positions: int) -> Fraction:
    """K = N d_x^4 / H: a layer turns separation rank s into at most K s^3.

    Proved as lemma 2 of the supplementary of Levine et al. 2020, its term count repaired here.
    """
    check_heads_fit(heads, width=width)
    return Fraction(positions * width**4, heads)


@catalogued("ub_residual_recursion")
def residual_recursion(depth: int, width: int, heads: int, positions: int) -> Fraction:
    """No residual network of this shape has a larger separation rank.

    R_L,   R_0 = 1,   R_l = R_(l-1) + K R_(l-1)^3
    """
    K = _layer_growth(width, heads, positions)
    if interaction_count(depth) > EXACT_DIGITS / math.log10(K):
        raise TooManyDigitsError(f"R_{depth}")
    R = Fraction(1)
    for _ in range(depth):
        R += K * R**3
    return R


@certified("ub_residual_recursion_log3")
def residual_recursion_log3(depth: int, width: int, heads: int, positions: int) -> Ball:
    """Logarithm base 3 of the residual recursion.

    Once R is astronomic the added R_(l-1) is a ball of almost no radius, and the rest of the
    recursion, ln R_l = ln K + 3 ln R_(l-1), has a closed form.
    """
    ln_K = ln(_layer_growth(width, heads, positions))
    ln_R = flint.arb(0)
    for _ in range(min(depth, _RECURSION_STEPS)):
        ln_R = ln_K + ln_R * 3 + (-ln_K - ln_R * 2).exp().log1p()
    left = depth - min(depth, _RECURSION_STEPS)
    tripled = 3**left
    neglected = flint.arb(0, (-ln_R * 2).exp().upper()) if left else flint.arb(0)
    return log3_from_ln((ln_R + neglected) * tripled + ln_K * ((tripled - 1) // 2))


@certified("ub_residual_product_paper_log3")
def residual_product_paper_log3(depth: int, width: int, heads: int, positions: int) -> Ball:
    """Logarithm base 3 of the product as printed, which its own recursion can exceed.

        log3((L + 1)!) + C(L) log3 K

    With K = 2 the recursion gives R_3 = 370443, the product 196608.
    """
    growth = _ln_growth(depth, width, heads, positions)
    return log3_from_ln(flint.arb(depth + 2).lgamma() + growth)


@certified("ub_residual_closed_paper_log3")
def residual_closed_paper_log3(depth: int, width: int, heads: int, positions: int) -> Ball:
    """Logarithm base 3 of the closed form as printed.

        L log3 L + (4 log3 d_x + log3 N - log3 H) C(L)

    It covers the printed product only for L >= 3, and never the corrected one.
    """
    return log3_from_ln(ln(depth) * depth + _ln_growth(depth, width, heads, positions))


@certified("ub_residual_product_corrected_log3")
def residual_product_corrected_log3(depth: int, width: int, heads: int, positions: int) -> Ball:
    """Logarithm base 3 of the product that the recursion does give.

    log3(L + 1) + sum_{l=2..L} 3^(L-l+1) log3 l + C(L) log3 K
    """
    growth = _ln_growth(depth, width, heads, positions)
    return log3_from_ln(ln(depth + 1) + _cubed_layer_factors(depth) + growth)


def _ln_growth(depth: int, width: int, heads: int, positions: int) -> Ball:
    """C(L) ln K, the growth of all layers together."""
    return ln(_layer_growth(width, heads, positions)) * interaction_count(depth)


def _cubed_layer_factors(depth: int) -> Ball:
    """sum_{l=2..L} 3^(L-l+1) ln l, cut where the rest is below the working precision.

    The rest after l = c is at most 3^(L+1) sum_{l>c} l 3^-l = 3^(L+1) 3^-c (c/2 + 3/4).
    """
    cut = min(depth, flint.ctx.prec)
    factors = (ln(layer) * 3 ** (cut - layer + 1) for layer in range(2, cut + 1))
    total = sum(factors, flint.arb(0))
    if cut == depth:
        return total
    rest = flint.arb(cut + 2) * 3
    total += flint.arb(rest / 2, rest / 2)
    return total * int(3 ** (depth - cut))


@certified("ub_residual_doubled_log3")
def residual_doubled_log3(depth: int, width: int, heads: int) -> Ball:
    """2^L times the bound of theorem 1, which the author response announces without a proof.

    L log3 2 + C(L) log3(d_x + H)
    """
    return log3(2) * depth + every_depth_upper_bound(depth, width, heads).log3()


@factored("ub_residual_thm4")
def residual_deep_formula(depth: int, width: int) -> Product:
    """The papers' formula for deep residual networks; not a bound.

    d_x (C + 1)^2 multiset(d_x, 2C) (2C / d_x + 1)^d_x
    """
    d, C = width, interaction_count(depth)
    powers = (d * (C + 1) ** 2, 1), (Fraction(2 * C + d, d), d)
    return Product(powers=powers, multisets=[(d, 2 * C)])
