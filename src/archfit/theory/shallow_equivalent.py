"""Corollary 2 of Levine et al., made computable: beyond log3(d) width can replace depth."""

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from archfit.theory.certified import digits, ln_multiset, log3_from_ln
from archfit.theory.sizes import check_heads_fit, check_sizes
from archfit.theory.upper_deep_disputed import deep_upper_formula_log3
from archfit.theory.upper_every_depth import every_depth_upper_bound_log3
from archfit.theory.upper_statistics import statistics_upper_bound_log3

if TYPE_CHECKING:
    from flint import arb

Upper = Literal["paper", "stat"]
_UPPER = {"paper": deep_upper_formula_log3, "stat": statistics_upper_bound_log3}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShallowEquivalent:
    """A network of depth log3(d) + beta2 that provably beats the deep one."""

    beta2: int
    d_shallow: int
    L_shallow: int


def shallow_equivalent(
    deep_width: int, heads: int, deep_depth: int, upper: Upper
) -> ShallowEquivalent:
    """The least beta2 >= 0 whose shallow network has a lower bound above the deep one's upper.

        L_s = ceil(log3 d + beta2) >= 2,   d_s = 3^beta2 d,
        log3 multiset(floor((d_s - H)/2), 3^(L_s - 2)) > UB(deep)

    UB is the smaller of theorem 1 and the papers' formula for deep networks (`paper`) or the
    bound of docs/theory.md (`stat`). It is asymptotic: in small cases L_s exceeds L_deep.

    Source: Levine et al. 2020, corollary 2, made computable here.
    Status: derived with upper=stat; disputed with upper=paper.
    """
    check_sizes(deep_width=deep_width, heads=heads, deep_depth=deep_depth)
    check_heads_fit(width=deep_width, heads=heads)
    if upper not in _UPPER:
        raise ValueError(f"upper={upper!r} is not one of {', '.join(_UPPER)}")
    threshold = _ceil_log3(deep_width)
    if 3**deep_depth <= deep_width:
        raise ValueError(
            f"deep_depth={deep_depth} is not above log3(deep_width={deep_width}), where the "
            f"corollary speaks; use deep_depth >= {threshold + 1}"
        )
    limit = digits(lambda: _deep_limit(deep_depth, deep_width, heads, upper))
    beta2 = max(0, 2 - threshold)
    while not _lower_log3(threshold + beta2, 3**beta2 * deep_width, heads) > limit:
        beta2 += 1
    return ShallowEquivalent(
        beta2=beta2, d_shallow=3**beta2 * deep_width, L_shallow=threshold + beta2
    )


def _lower_log3(depth: int, width: int, heads: int) -> Decimal:
    """log3 of the lower bound, at widths that no network has; 0 where it says nothing."""
    n = (width - heads) // 2
    return digits(lambda: log3_from_ln(ln_multiset(n, 3 ** (depth - 2)))) if n else Decimal(0)


def _deep_limit(depth: int, width: int, heads: int, upper: Upper) -> "arb":
    every_depth = every_depth_upper_bound_log3.ball(depth, width, heads)
    return every_depth.min(_UPPER[upper].ball(depth, width))


def _ceil_log3(width: int) -> int:
    """The least t with 3^t >= width."""
    t = 0
    while 3**t < width:
        t += 1
    return t
