"""Integer points on a sphere whose powers are independent: lemma 8 of Wies et al. as a search."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, count

from archfit.theory.counting import multiset
from archfit.theory.sizes import check_sizes

_MOST_MONOMIALS = 250  # exact elimination beyond this takes minutes
_MOST_STEPS = 3_000_000  # of the enumeration: seconds
_MOST_POINTS = 20_000
_PRIME = 2**61 - 1

Point = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sphere:
    """The smallest sphere with full rank, and the first of its points that span."""

    squared_norm: int
    points: tuple[Point, ...]

    @property
    def largest_entry(self) -> int:
        """E of lemma 7."""
        return max(max(point) for point in self.points)


def smallest_squared_norm(dimension: int, degree: int) -> int:
    """The least c such that the points of squared norm c have full Veronese rank.

    Source: Wies et al. 2021, lemma 8, by search.
    Status: proved (each rank is exact).
    """
    return smallest_full_rank_sphere(dimension, degree).squared_norm


def smallest_full_rank_sphere(dimension: int, degree: int) -> Sphere:
    """The smallest c, and points of norm c whose degree-lambda monomials have full rank.

    For c = 1, 2, ...: all nonnegative integer points with squared norm c, in lexicographic
    order; full rank means multiset(dimension, degree); points that raise the rank are kept.

    Source: Wies et al. 2021, lemma 8, made algorithmic here.
    Status: proved (each rank is exact).
    """
    check_sizes(dimension=dimension, degree=degree)
    wanted = multiset(dimension, degree)
    if wanted > _MOST_MONOMIALS:
        raise ValueError(
            f"dimension={dimension}, degree={degree} has {wanted} monomials, over the "
            f"{_MOST_MONOMIALS} that this search takes; use a smaller dimension or degree"
        )
    for squared_norm in _affordable_norms(dimension):
        points = list(points_of_squared_norm(dimension, squared_norm))
        if wanted <= len(points) <= _MOST_POINTS:
            kept = _points_that_raise_the_rank(points, degree)
            if len(kept) == wanted:
                return Sphere(squared_norm=squared_norm, points=kept)
    raise ValueError(
        f"dimension={dimension}, degree={degree} has no full-rank sphere that a search of seconds "
        "reaches; use a smaller degree"
    )


def _affordable_norms(dimension: int) -> Iterator[int]:
    """1, 2, 3, ... until listing the points of all of them has taken too many steps."""
    steps = 0
    for squared_norm in count(1):
        steps += (math.isqrt(squared_norm) + 1) ** (dimension - 1)
        if steps > _MOST_STEPS:
            return
        yield squared_norm


def points_of_squared_norm(dimension: int, squared_norm: int) -> Iterator[Point]:
    """All nonnegative integer points with this squared norm, in lexicographic order."""
    if dimension == 1:
        root = math.isqrt(squared_norm)
        if root * root == squared_norm:
            yield (root,)
        return
    for first in range(math.isqrt(squared_norm) + 1):
        for rest in points_of_squared_norm(dimension - 1, squared_norm - first * first):
            yield (first, *rest)


def _points_that_raise_the_rank(points: list[Point], degree: int) -> tuple[Point, ...]:
    """The points, in order, whose monomials are independent of those before; () if too few.

    A rank mod a prime is never too large, so a full one is proof that the kept points span; a
    deficient one is asked again over the integers before the sphere is given up.
    """
    from flint import fmpz_mat, nmod_mat

    monomials = fmpz_mat([_monomials(point, degree) for point in points]).transpose()
    reduced, rank = nmod_mat(monomials, _PRIME).rref()
    if rank < monomials.nrows() and monomials.rank() < monomials.nrows():
        return ()
    pivots = (
        next(col for col in range(len(points)) if int(reduced[row, col]) != 0)
        for row in range(rank)
    )
    return tuple(points[pivot] for pivot in pivots)


def _monomials(point: Point, degree: int) -> list[int]:
    """All products of `degree` coordinates of the point, with repetition."""
    return [math.prod(chosen) for chosen in combinations_with_replacement(point, degree)]
