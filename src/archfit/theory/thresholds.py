"""Where depth stops paying: thresholds of depth, the width that replaces depth, and sizes."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from archfit.spec.errors import check_choice, refuse_if
from archfit.theory import continuous_bounds as continuous
from archfit.theory.arithmetic import Product, interaction_count
from archfit.theory.inputs import catalogued, certified, check_heads_fit
from archfit.theory.reals import Ball, digits, flint, ln, ln_multiset, log3, log3_from_ln
from archfit.theory.statistics_bounds import Split, statistics_upper_bound

_LOWER: dict[str, Callable[[int, int, int], Ball]] = {
    "closed": continuous.lower_bound_wide_closed_log3,
    "relaxA": continuous.lower_bound_wide_log3,
    "exact": lambda depth, width, heads: continuous.lower_bound(depth, width, heads).log3(),
}
_UPPER: dict[str, Callable[[int, int], Product | Split]] = {
    "paper": continuous.deep_upper_formula,
    "stat": statistics_upper_bound,
}
_DEEPEST_EXACT = 7  # up to here both sides are short enough to be compared exactly


@certified("depth_threshold")
def depth_threshold(width: int) -> Ball:
    """log3(d_x), the depth up to which the papers say that depth beats width.

    Below it both bounds grow doubly exponentially in depth, which is proved. That depth stops
    paying above it rests on the upper bound of theorem 2, whose proof has a gap.
    """
    return log3(width)


@certified("depth_threshold_corrected")
def corrected_depth_threshold(width: int) -> Ball:
    """2 log3(d_x) + log3(2), up to which the proved upper bound grows doubly exponentially.

    There C(L) / 2 passes m = d(d+1)/2, that is 3^L = 2 d^2.
    """
    return log3(2 * width**2)


@certified("bound_transition_depth")
def bound_transition_depth(width: int) -> Ball:
    """log3(d_x) + 2 - log3(2), where the two relaxations of the lower bound change places."""
    return log3(Fraction(width, 2)) + 2


@catalogued("min_depth")
def minimal_depth(size: int) -> dict[str, Decimal | int]:
    """The depth that a network of `size` block parameters should at least have.

    The real d with 12 log3(d) d^2 = size, then floor(log3 d). With u = 2 ln d this reads
    u e^u = size ln 3 / 6, so u is a Lambert W.
    """

    def ln_width() -> Ball:
        return (ln(3) * size / 6).lambertw() / 2

    depth = digits(lambda: log3_from_ln(ln_width()))
    width = digits(lambda: ln_width().exp())
    return {"d_x": width, "L_real": depth, "min_depth": int(depth)}


@certified("required_width")
def required_width(
    deep_depth: int, deep_width: int, heads: int, shallow_depth: int, lower: str
) -> Ball:
    """The width below which a shallow network cannot reach the deep one's separation rank.

        (w + H)^C(L_shallow) = 3^lower,   lower = log3 of the deep network's lower bound

    The paper's printed 2e17 and 2e5 (d = 1000, H = 16, L = 6 against 2 and 3) are `relaxA`.
    """
    check_choice(list(_LOWER), lower=lower)
    deep = _LOWER[lower](deep_depth, deep_width, heads)
    exponent = deep / interaction_count(shallow_depth)
    width = (exponent * ln(3)).expm1() - (heads - 1)
    if width.contains(0) and max(deep_depth, shallow_depth) <= _DEEPEST_EXACT:
        n, lam = (deep_width - heads) // 2, continuous.doubled_degree(deep_depth)
        bases = {
            "closed": Fraction(deep_width - heads, 2 * lam) ** lam,
            "relaxA": (1 + Fraction(n - 1, lam)) ** lam,
            "exact": continuous.lower_bound(deep_depth, deep_width, heads).exact(),
        }
        if bases[lower] == heads ** interaction_count(shallow_depth):
            return ln(1)
    return width


@catalogued("required_width_int")
def required_width_integer(deep_depth: int, deep_width: int, heads: int, shallow_depth: int) -> int:
    """The least whole width w >= 0 with (w + H)^C(L_shallow) >= the deep lower bound, exactly."""
    deep = int(continuous.lower_bound(deep_depth, deep_width, heads))
    return max(0, _root_above(deep, interaction_count(shallow_depth)) - heads)


def _root_above(value: int, degree: int) -> int:
    """The least x >= 0 with x^degree >= value."""
    if value <= 1:
        return value
    if degree >= value.bit_length():
        return 2
    return int(flint.fmpz(value - 1).root(degree)) + 1


@catalogued("corollary2_beta")
def shallow_equivalent(deep_width: int, heads: int, deep_depth: int, upper: str) -> dict[str, int]:
    """The least beta2 >= 0 whose shallow network has a lower bound above the deep one's upper.

        L_s = ceil(log3 d + beta2) >= 2,   d_s = 3^beta2 d,
        log3 multiset(floor((d_s - H)/2), 3^(L_s - 2)) > UB(deep)

    UB is the smaller of theorem 1 and the papers' formula for deep networks (`paper`) or the
    bound of docs/theory.md (`stat`). It is asymptotic: in small cases L_s exceeds L_deep. At widths
    that no network has the lower bound may say nothing (0).
    """
    check_heads_fit(heads, deep_width=deep_width)
    check_choice(list(_UPPER), upper=upper)
    threshold = next(t for t in range(deep_width + 1) if 3**t >= deep_width)
    is_shallow = 3**deep_depth <= deep_width
    refuse_if(is_shallow, "below-threshold", deep_depth, width=deep_width, least=threshold + 1)

    def limit() -> Ball:
        every_depth = continuous.every_depth_upper_bound(deep_depth, deep_width, heads)
        return every_depth.log3().min(_UPPER[upper](deep_depth, deep_width).log3())

    def lower_log3(depth: int, width: int) -> Decimal:
        n = (width - heads) // 2
        return digits(lambda: log3_from_ln(ln_multiset(n, 3 ** (depth - 2)))) if n else Decimal(0)

    upper_log3, beta2 = digits(limit), max(0, 2 - threshold)
    while not lower_log3(threshold + beta2, 3**beta2 * deep_width) > upper_log3:
        beta2 += 1
    return {"beta2": beta2, "d_shallow": 3**beta2 * deep_width, "L_shallow": threshold + beta2}


@catalogued("params_12")
def standard_parameters(depth: int, width: int) -> int:
    """12 L d_x^2: a standard Transformer without its embeddings."""
    return 12 * depth * width**2


@catalogued("params_analysed")
def analysed_parameters(depth: int, width: int, heads: int, head_dim: int | None = None) -> int:
    """4 L H d_a d_x: the analysed network, attention only; 4 L d_x^2 when d_a = d_x / H."""
    if head_dim is None:
        check_heads_fit(heads, width=width)
        return 4 * depth * width**2
    return 4 * depth * heads * head_dim * width
