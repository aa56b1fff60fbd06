"""The lower bound of Levine et al. for almost all weights, exact and in its relaxations."""

from fractions import Fraction
from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, ln_multiset, log3, log3_from_ln, log3_of_one_plus
from archfit.theory.counting import multiset
from archfit.theory.sizes import check_heads_fit, check_sizes

if TYPE_CHECKING:
    from flint import arb


def lower_bound(depth: int, width: int, heads: int) -> int:
    """Almost all weights reach at least this separation rank; 0 when H = d_x says nothing.

        multiset(n, 3^(L-2)),   n = floor((d_x - H) / 2)

    Source: supplementary of Levine et al. 2020, B.2.
    Status: proved, for L >= 2 and a balanced partition.
    """
    return multiset(*_terms(depth, width, heads))


@Certified
def lower_bound_log3(depth: int, width: int, heads: int) -> "arb":
    """Logarithm base 3 of the lower bound.

    Source: supplementary of Levine et al. 2020, B.2.
    Status: proved, for L >= 2 and a balanced partition.
    """
    return log3_from_ln(ln_multiset(*_terms(depth, width, heads, least=1)))


@Certified
def lower_bound_wide_log3(depth: int, width: int, heads: int) -> "arb":
    """The relaxation that is better below the transition depth.

        lam log3((n - 1) / lam + 1),   lam = 3^(L-2)

    Source: supplementary of Levine et al. 2020, B.2, left of the maximum.
    Status: proved, for L >= 2 and a balanced partition.
    """
    from flint import fmpz

    n, lam = _terms(depth, width, heads, least=1)
    return log3_of_one_plus(Fraction(n - 1, lam)) * fmpz(lam)


@Certified
def lower_bound_deep_log3(depth: int, width: int, heads: int) -> "arb":
    """The relaxation that is better above the transition depth.

        (n - 1) log3(lam / (n - 1) + 1),   lam = 3^(L-2), n > 1

    Source: supplementary of Levine et al. 2020, B.2, right of the maximum.
    Status: proved, for L >= 2 and a balanced partition.
    """
    n, lam = _terms(depth, width, heads, least=2)
    return log3_of_one_plus(Fraction(lam, n - 1)) * (n - 1)


@Certified
def lower_bound_wide_closed_log3(depth: int, width: int, heads: int) -> "arb":
    """The closed form of theorem 1; positive only when 3^L < 4.5 (d_x - H).

        3^(L-2) (log3(d_x - H) - L + 2 - log3 2)

    With d_x - H odd it may exceed log3 of the exact bound, whose n is rounded down.

    Source: Levine et al. 2020, eq. 6; author response.
    Status: proved, for L >= 2, d_x - H even and a balanced partition.
    """
    from flint import fmpz

    _, lam = _terms(depth, width, heads, least=1)
    return log3(Fraction(width - heads, 2 * lam)) * fmpz(lam)


@Certified
def lower_bound_deep_closed_log3(depth: int, width: int, heads: int) -> "arb":
    """The closed form of theorem 2, lower part.

        d_x L / 2 - L (H / 2 + 1) - d_x (1 + log3((d_x - H) / 2) / 2)

    Source: Levine et al. 2020, eq. 7.
    Status: proved, for L >= 2, d_x - H even and a balanced partition.
    """
    from flint import arb

    _terms(depth, width, heads, least=2)
    L, d, H = depth, width, heads
    return arb(d * L - L * (H + 2) - 2 * d) / 2 - log3(Fraction(d - H, 2)) * d / 2


def doubled_degree(depth: int) -> int:
    """lam = 3^(L-2), the power to which the witnesses raise an inner product."""
    check_sizes(depth=depth)
    if depth < 2:
        raise ValueError(f"depth={depth} is too shallow for this lower bound; use depth >= 2")
    return int(3 ** (depth - 2))


def _terms(depth: int, width: int, heads: int, *, least: int = 0) -> tuple[int, int]:
    """n and lam of the formulas, refused where n is below `least` and there is no logarithm."""
    check_sizes(depth=depth, width=width, heads=heads)
    check_heads_fit(width=width, heads=heads)
    n = (width - heads) // 2
    if n < least:
        raise ValueError(
            f"width={width} with heads={heads} leaves floor((width - heads) / 2) = {n}, and this "
            f"bound needs at least {least}; use width >= {heads + 2 * least}"
        )
    return n, doubled_degree(depth)
