"""The upper bound for every depth: theorem 1 of Levine et al."""

from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, log3
from archfit.theory.counting import interaction_count, power
from archfit.theory.sizes import check_sizes

if TYPE_CHECKING:
    from flint import arb


def every_depth_upper_bound(depth: int, width: int, heads: int, head_dim: int | None = None) -> int:
    """No network of this shape has a larger separation rank, for any partition and weights.

        (H (d_a + 1))^C(L),   which is (d_x + H)^C(L) when d_a = d_x / H

    Source: Levine et al. 2020, theorem 3; supplementary, theorem 1 and eq. 7.
    Status: proved.
    """
    return power(_base(depth, width, heads, head_dim), interaction_count(depth))


@Certified
def every_depth_upper_bound_log3(
    depth: int, width: int, heads: int, head_dim: int | None = None
) -> "arb":
    """Logarithm base 3 of the upper bound for every depth, C(L) log3(d_x + H).

    Source: Levine et al. 2020, theorem 3; supplementary, theorem 1 and eq. 7.
    Status: proved.
    """
    from flint import fmpz

    return log3(_base(depth, width, heads, head_dim)) * fmpz(interaction_count(depth))


def _base(depth: int, width: int, heads: int, head_dim: int | None) -> int:
    check_sizes(depth=depth, width=width, heads=heads)
    if head_dim is None:
        return width + heads
    check_sizes(head_dim=head_dim)
    return heads * (head_dim + 1)
