"""How wide a shallow network must be to match a deep one: corollary 1 of Levine et al."""

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from archfit.theory.certified import Certified
from archfit.theory.counting import interaction_count
from archfit.theory.lower_bound import (
    doubled_degree,
    lower_bound,
    lower_bound_log3,
    lower_bound_wide_closed_log3,
    lower_bound_wide_log3,
)
from archfit.theory.sizes import check_sizes

if TYPE_CHECKING:
    from flint import arb

Lower = Literal["closed", "relaxA", "exact"]
_LOWER = {
    "closed": lower_bound_wide_closed_log3,
    "relaxA": lower_bound_wide_log3,
    "exact": lower_bound_log3,
}
_MOST_EXPONENT = 10**15
_DEEPEST_EXACT = 7  # up to here both sides are short enough to be compared exactly


@Certified
def required_width(
    deep_depth: int, deep_width: int, heads: int, shallow_depth: int, lower: Lower
) -> "arb":
    """The width below which a shallow network cannot reach the deep one's separation rank.

        (w + H)^C(L_shallow) = 3^lower,   lower = log3 of the deep network's lower bound

    The paper's printed 2e17 and 2e5 (d = 1000, H = 16, L = 6 against 2 and 3) are `relaxA`.

    Source: Levine et al. 2020, corollary 1.
    Status: proved.
    """
    from flint import arb, fmpz

    check_sizes(shallow_depth=shallow_depth)
    if lower not in _LOWER:
        raise ValueError(f"lower={lower!r} is not one of {', '.join(_LOWER)}")
    deep = _LOWER[lower].ball(deep_depth, deep_width, heads)
    exponent = deep / fmpz(interaction_count(shallow_depth))
    if exponent > _MOST_EXPONENT:
        raise ValueError(
            f"shallow_depth={shallow_depth} needs a width over 3^(10^15) to match "
            f"deep_depth={deep_depth}; bring the depths closer together"
        )
    width = (exponent * arb(3).log()).expm1() - (heads - 1)
    if width.contains(0) and max(deep_depth, shallow_depth) <= _DEEPEST_EXACT:
        n, lam = (deep_width - heads) // 2, doubled_degree(deep_depth)
        bases = {
            "closed": Fraction(deep_width - heads, 2 * lam) ** lam,
            "relaxA": (1 + Fraction(n - 1, lam)) ** lam,
            "exact": Fraction(lower_bound(deep_depth, deep_width, heads)),
        }
        if bases[lower] == heads ** interaction_count(shallow_depth):
            return arb(0)
    return width


def required_width_integer(deep_depth: int, deep_width: int, heads: int, shallow_depth: int) -> int:
    """The least whole width w >= 0 with (w + H)^C(L_shallow) >= the deep lower bound, exactly.

    Source: Levine et al. 2020, corollary 1.
    Status: proved.
    """
    check_sizes(shallow_depth=shallow_depth)
    deep = lower_bound(deep_depth, deep_width, heads)
    return max(0, _root_above(deep, interaction_count(shallow_depth)) - heads)


def _root_above(value: int, degree: int) -> int:
    """The least x >= 0 with x^degree >= value."""
    from flint import fmpz

    if value <= 1:
        return value
    if degree >= value.bit_length():
        return 2
    below = int(fmpz(value).root(degree))
    return below if below**degree == value else below + 1
