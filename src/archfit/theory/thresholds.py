"""Depths at which the bounds change their growth."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, digits, log3, log3_from_ln
from archfit.theory.sizes import check_sizes

if TYPE_CHECKING:
    from flint import arb


@Certified
def depth_threshold(width: int) -> "arb":
    """log3(d_x), the depth up to which the papers say that depth beats width.

    Below it both bounds grow doubly exponentially in depth, which is proved. That depth stops
    paying above it rests on the upper bound of theorem 2, whose proof has a gap.

    Source: Levine et al. 2020, abstract.
    Status: disputed (as the point where depth stops paying; see corrected_depth_threshold).
    """
    check_sizes(width=width)
    return log3(width)


@Certified
def corrected_depth_threshold(width: int) -> "arb":
    """2 log3(d_x) + log3(2), up to which the proved upper bound grows doubly exponentially.

    There C(L) / 2 passes m = d(d+1)/2, that is 3^L = 2 d^2.

    Source: derived here (docs/theory.md, "What replaces it").
    Status: derived.
    """
    check_sizes(width=width)
    return log3(2 * width**2)


@Certified
def bound_transition_depth(width: int) -> "arb":
    """log3(d_x) + 2 - log3(2), where the two relaxations of the lower bound change places.

    Source: author response to the reviews of Levine et al. 2020 (which rounds 1.369 to 1.3).
    Status: proved.
    """
    check_sizes(width=width)
    return log3(Fraction(width, 2)) + 2


@dataclass(frozen=True, kw_only=True, slots=True)
class MinimalDepth:
    """The network of a given size whose depth is log3 of its width."""

    d_x: Decimal
    L_real: Decimal
    min_depth: int


def minimal_depth(size: int) -> MinimalDepth:
    """The depth that a network of `size` block parameters should at least have.

    The real d with 12 log3(d) d^2 = size, then floor(log3 d). With u = 2 ln d this reads
    u e^u = size ln 3 / 6, so u is a Lambert W.

    Source: Levine et al. 2020, table 1 (the rule that reproduces it; floor is our choice).
    Status: disputed (it uses the papers' threshold log3(d_x)).
    """
    check_sizes(size=size)
    depth = digits(lambda: log3_from_ln(_twice_ln_width(size) / 2))
    return MinimalDepth(
        d_x=digits(lambda: (_twice_ln_width(size) / 2).exp()),
        L_real=depth,
        min_depth=int(depth),
    )


def _twice_ln_width(size: int) -> "arb":
    from flint import arb

    return (arb(3).log() * size / 6).lambertw()
