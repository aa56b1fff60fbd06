"""A witness: weights and inputs, what they promise, and the lower bound that they reach."""

import random
from dataclasses import dataclass

from archfit.exact.residues import check_witness_prime
from archfit.exact.witness_inputs import Inputs
from archfit.exact.witness_network import Matrix, Network, NetworkShape
from archfit.exact.witness_promise import Promise
from archfit.theory.arithmetic import multiset, rough
from archfit.theory.continuous import doubled_degree

MOST_ROWS = 2000  # of the matrix: elimination takes seconds
MOST_MULTIPLICATIONS = 3 * 10**9  # of all runs: 10 to 25 s
MOST_RUN_MULTIPLICATIONS = 2 * 10**7  # of one run, so that 150 of them fit
MOST_DEPTH = 60  # a width of 2 is left the rank 1 there, and others fit far less
_SEED = 20
_DEEPEST_COUNTED = 12  # two coordinates make over MOST_ROWS rows from depth 9 on


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """Weights and inputs modulo a prime whose matrix of outputs has the expected rank.

    Entry (a, b) of the matrix is output coordinate `entry` at position 0 for sample a inside and
    sample b outside.
    """

    kind: str
    shape: NetworkShape
    prime: int
    network: Network
    inside: Inputs
    outside: Inputs
    promise: Promise
    entry: int
    expected_rank: int
    expected_embedding_rank: int | None  # None: the inputs are vectors already
    bound_id: str
    bound: int

    def __post_init__(self) -> None:
        check_witness_prime(self.prime)


def unit_rows(rows: int, dimension: int, prime: int) -> Matrix:
    """Random points of the unit sphere with rational coordinates, modulo the prime.

    The line from the north pole through (t, 0) meets the sphere again in (2 t, q - 1) / (q + 1)
    with q = <t, t>: no square root and no search is needed. A form of degree lambda that is zero
    on a sphere is zero, so multiset(dimension, lambda) random points have independent powers,
    up to bad luck that a measured rank would show.
    """
    chance = random.Random(_SEED)
    points: list[tuple[int, ...]] = []
    while len(points) < rows:
        t = [chance.randrange(prime) for _ in range(dimension - 1)]
        q = sum(x * x for x in t) % prime
        if q != prime - 1:
            scale = pow(q + 1, -1, prime)
            points.append(tuple(x * scale % prime for x in (*(2 * x for x in t), q - 1)))
    return tuple(points)


def check_fits(shape: NetworkShape, dimension: int) -> None:
    """Refuse a witness whose multiset(dimension, 3^(depth-2)) rows or runs take too long."""
    rows = _rows(shape.depth, dimension)
    if rows > MOST_ROWS:
        depths = range(2, min(shape.depth, _DEEPEST_COUNTED))
        fitting = [depth for depth in depths if _rows(depth, dimension) <= MOST_ROWS]
        free = f"depth <= {fitting[-1]}, or fewer" if fitting else f"{MOST_ROWS} or fewer"
        raise ValueError(
            f"depth={shape.depth} with {dimension} coordinates free for the vectors makes a matrix "
            f"of {rough(rows)} rows or more, over the {MOST_ROWS} that are built; "
            f"use {free} free coordinates (less width, less rank or more heads)"
        )
    check_run(shape)


def _rows(depth: int, dimension: int) -> int:
    """multiset(dimension, 3^(depth-2)), or a smaller number that is too large already."""
    return multiset(min(dimension, MOST_ROWS + 1), 3 ** (min(depth, _DEEPEST_COUNTED) - 2))


def check_depth(shape: NetworkShape) -> None:
    """Refuse fewer layers than inner products need, and more than a witness is built of."""
    doubled_degree(shape.depth)
    _check_not_too_deep(shape)


def _check_not_too_deep(shape: NetworkShape) -> None:
    if shape.depth > MOST_DEPTH:
        raise ValueError(
            f"depth={shape.depth} is over the {MOST_DEPTH} layers that a witness is built of; "
            f"use depth <= {MOST_DEPTH}"
        )


def check_run(shape: NetworkShape) -> None:
    """Refuse a network of which a single run takes too long."""
    _check_not_too_deep(shape)
    if shape.multiplications > MOST_RUN_MULTIPLICATIONS:
        raise ValueError(
            f"depth={shape.depth}, width={shape.width} and positions={shape.positions} take "
            f"{rough(shape.multiplications)} multiplications (about "
            f"{shape.multiplications / 10**8:.1g} s) for one entry of the matrix, over the "
            f"{MOST_RUN_MULTIPLICATIONS:,} allowed; use less of the three"
        )
