"""Bounds for continuous inputs: the papers' upper and lower ones, and a stronger lower one.

Theorem 1 of Levine et al. holds at every depth. Theorem 2, for deep networks, is disputed: its
proof gives all terms with equal powers of the input coordinates one common coefficient. But the
inputs enter through products of entries of S = X X^T, and different products have the same powers
(S_11 S_22 and S_12^2), so there are more groups than it counts. Explicit weights exceed the formula
(`archfit.theory.witness_formula`); `archfit.theory.statistics_bounds` has the bound that is true.

The lower bounds are for almost all weights: the papers', exact and relaxed, and a stronger one from
a witness without complement halves.
"""

from fractions import Fraction
from typing import TYPE_CHECKING

from archfit.spec.errors import InvalidValue
from archfit.theory.arithmetic import (
    Certified,
    interaction_count,
    ln,
    ln_multiset,
    log3,
    log3_from_ln,
    log3_of_one_plus,
    multiset,
    power,
)
from archfit.theory.quantities import Basis, catalogued, check_heads_fit

if TYPE_CHECKING:
    from flint import arb

_SUPPLEMENTARY = "supplementary of Levine et al. 2020"
_GAP = " (its proof has a gap)"
_BALANCED = ", for L >= 2 and a balanced partition"
_EVEN = ", for L >= 2, d_x - H even and a balanced partition"
THEOREM_1 = Basis("proved", "Levine et al. 2020, theorem 3; supplementary, theorem 1 and eq. 7")
THEOREM_2 = Basis("disputed", f"{_SUPPLEMENTARY}, theorem 2 and eq. 8", _GAP)
B2 = Basis("proved", f"{_SUPPLEMENTARY}, B.2", _BALANCED)
STRONGER = Basis(
    "derived",
    'derived here (docs/theory.md, "A stronger lower bound")',
    ", for L >= 2, d_a >= 2 and a balanced partition",
)


@catalogued("ub_thm1", THEOREM_1)
def every_depth_upper_bound(depth: int, width: int, heads: int, head_dim: int | None = None) -> int:
    """No network of this shape has a larger separation rank, for any partition and weights.

    (H (d_a + 1))^C(L),   which is (d_x + H)^C(L) when d_a = d_x / H
    """
    base = width + heads if head_dim is None else heads * (head_dim + 1)
    return power(base, interaction_count(depth))


@catalogued("ub_thm1_log3", THEOREM_1)
@Certified
def every_depth_upper_bound_log3(
    depth: int, width: int, heads: int, head_dim: int | None = None
) -> "arb":
    """Logarithm base 3 of the upper bound for every depth, C(L) log3(d_x + H)."""
    base = width + heads if head_dim is None else heads * (head_dim + 1)
    return log3(base) * interaction_count(depth)


@catalogued("ub_thm2", THEOREM_2)
def deep_upper_formula(depth: int, width: int) -> Fraction:
    """The papers' formula for deep networks; not a bound.

    d_x (C + 1) multiset(d_x, 2C) (2C / d_x + 1)^d_x
    """
    d, C = width, interaction_count(depth)
    return d * (C + 1) * multiset(d, 2 * C) * Fraction(power(2 * C + d, d), power(d, d))


@catalogued("ub_thm2_log3", THEOREM_2)
@Certified
def deep_upper_formula_log3(depth: int, width: int) -> "arb":
    """Logarithm base 3 of the papers' formula for deep networks; not a bound."""
    d, C = width, interaction_count(depth)
    return log3_from_ln(ln(d * (C + 1)) + ln_multiset(d, 2 * C) + ln(Fraction(2 * C + d, d)) * d)


@catalogued("ub_thm2_closed_log3", Basis("disputed", f"{_SUPPLEMENTARY}, eq. 9, last line", _GAP))
@Certified
def deep_upper_closed_log3(depth: int, width: int) -> "arb":
    """The closed form the papers draw from it, above it only where 3^L > d_x.

    (2 d_x + 1) L + log3 d_x + 2 d_x (log3(2 sqrt(2e)) - log3 d_x)
    """
    from flint import arb

    L, d = depth, width
    log3_8e_halved = log3_from_ln(ln(8) + 1) / 2
    return arb((2 * d + 1) * L) + log3(d) + (log3_8e_halved - log3(d)) * (2 * d)


@catalogued(
    "ub_thm2_closed_log3_preprint",
    Basis("disputed", "Levine et al. 2020 (preprint), eq. 7 and appendix A.3; superseded", _GAP),
)
@Certified
def deep_upper_closed_preprint_log3(depth: int, width: int) -> "arb":
    """The preprint's closed form, with 2e where the supplementary has 2 sqrt(2e).

    (2 d_x + 1) L + log3 d_x - 2 d_x log3(d_x / 2e)
    """
    from flint import arb

    L, d = depth, width
    return arb((2 * d + 1) * L) + log3(d) + (log3_from_ln(ln(2) + 1) - log3(d)) * (2 * d)


@catalogued("lb", B2)
def lower_bound(depth: int, width: int, heads: int) -> int:
    """Almost all weights reach at least this separation rank; 0 when H = d_x says nothing.

    multiset(n, 3^(L-2)),   n = floor((d_x - H) / 2)
    """
    return multiset(*_terms(depth, width, heads))


@catalogued("lb_log3", B2)
@Certified
def lower_bound_log3(depth: int, width: int, heads: int) -> "arb":
    """Logarithm base 3 of the lower bound."""
    return log3_from_ln(ln_multiset(*_terms(depth, width, heads, least=1)))


@catalogued(
    "lb_relaxA_log3", Basis("proved", f"{_SUPPLEMENTARY}, B.2, left of the maximum", _BALANCED)
)
@Certified
def lower_bound_wide_log3(depth: int, width: int, heads: int) -> "arb":
    """The relaxation that is better below the transition depth.

    lam log3((n - 1) / lam + 1),   lam = 3^(L-2)
    """
    n, lam = _terms(depth, width, heads, least=1)
    return log3_of_one_plus(Fraction(n - 1, lam)) * lam


@catalogued(
    "lb_relaxB_log3", Basis("proved", f"{_SUPPLEMENTARY}, B.2, right of the maximum", _BALANCED)
)
@Certified
def lower_bound_deep_log3(depth: int, width: int, heads: int) -> "arb":
    """The relaxation that is better above the transition depth.

    (n - 1) log3(lam / (n - 1) + 1),   lam = 3^(L-2), n > 1
    """
    n, lam = _terms(depth, width, heads, least=2)
    return log3_of_one_plus(Fraction(lam, n - 1)) * (n - 1)


@catalogued(
    "lb_thm1_closed_log3", Basis("proved", "Levine et al. 2020, eq. 6; author response", _EVEN)
)
@Certified
def lower_bound_wide_closed_log3(depth: int, width: int, heads: int) -> "arb":
    """The closed form of theorem 1; positive only when 3^L < 4.5 (d_x - H).

        3^(L-2) (log3(d_x - H) - L + 2 - log3 2)

    With d_x - H odd it may exceed log3 of the exact bound, whose n is rounded down.
    """
    _, lam = _terms(depth, width, heads, least=1)
    return log3(Fraction(width - heads, 2 * lam)) * lam


@catalogued("lb_thm2_closed_log3", Basis("proved", "Levine et al. 2020, eq. 7", _EVEN))
@Certified
def lower_bound_deep_closed_log3(depth: int, width: int, heads: int) -> "arb":
    """The closed form of theorem 2, lower part.

    d_x L / 2 - L (H / 2 + 1) - d_x (1 + log3((d_x - H) / 2) / 2)
    """
    from flint import arb

    _terms(depth, width, heads, least=2)
    L, d, H = depth, width, heads
    return arb(d * L - L * (H + 2) - 2 * d) / 2 - log3(Fraction(d - H, 2)) * d / 2


@catalogued("lb_strong", STRONGER)
def strong_lower_bound(
    depth: int, width: int, heads: int, embedding_rank: int | None = None
) -> int:
    """Almost all weights reach at least this separation rank; 0 when H = d_x says nothing.

        multiset(d_x - H, 3^(L-2)),   with a continuous embedding of rank r
        multiset(min(r - 1, d_x - H), 3^(L-2))

    Templates that may be complex need no complement halves, so all d_x - H coordinates that
    are not a head's constant carry the inner product (docs/theory.md).
    """
    return multiset(*_strong_terms(depth, width, heads, embedding_rank))


@catalogued("lb_strong_log3", STRONGER)
@Certified
def strong_lower_bound_log3(
    depth: int, width: int, heads: int, embedding_rank: int | None = None
) -> "arb":
    """Logarithm base 3 of the stronger lower bound."""
    n, lam = _strong_terms(depth, width, heads, embedding_rank)
    if n < 1:
        rule = f"in {{width}}={width} leave no free coordinate: the bound is 0, without logarithm"
        way_out = "use fewer heads than {width} and an {embedding_rank} of at least 2"
        raise InvalidValue("heads", heads, rule, way_out)
    return log3_from_ln(ln_multiset(n, lam))


def doubled_degree(depth: int) -> int:
    """lam = 3^(L-2), the power to which the witnesses raise an inner product."""
    if depth < 2:
        rule = "is too shallow for this lower bound"
        raise InvalidValue("depth", depth, rule, "use {depth} >= 2")
    return int(3 ** (depth - 2))


def _terms(depth: int, width: int, heads: int, *, least: int = 0) -> tuple[int, int]:
    """n and lam of the formulas, refused where n is below `least` and there is no logarithm."""
    check_heads_fit(heads, width=width)
    n = (width - heads) // 2
    if n < least:
        rule = (
            f"with {{heads}}={heads} leaves floor(({{width}} - {{heads}}) / 2) = {n}, and this "
            f"bound needs at least {least}"
        )
        raise InvalidValue("width", width, rule, f"use {{width}} >= {heads + 2 * least}")
    return n, doubled_degree(depth)


def _strong_terms(
    depth: int, width: int, heads: int, embedding_rank: int | None
) -> tuple[int, int]:
    check_heads_fit(heads, width=width)
    free = width - heads
    if embedding_rank is not None:
        free = min(free, embedding_rank - 1)
    return free, doubled_degree(depth)
