"""A witness: weights and inputs modulo a prime, what they promise, and the bound that they reach.

The network has its weights given entry by entry and is run as the papers define it. What a witness
promises is evaluated without the network. Shape letters of the arrays: B samples, D width,
N positions; tokens are columns.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, TypeAlias

from archfit.exact.prime_field import (
    check_witness_prime,
    residue_power,
    residue_product,
    residue_rank,
)
from archfit.spec.errors import InvalidValue
from archfit.theory.arithmetic import multiset, rough
from archfit.theory.continuous_bounds import doubled_degree
from archfit.theory.quantities import check_sizes

if TYPE_CHECKING:
    import numpy as np

    from archfit.exact.prime_field import Residues
else:
    from archfit.spec import lazy_numpy as np

Vector: TypeAlias = tuple[int, ...]
Matrix: TypeAlias = tuple[Vector, ...]

MOST_ROWS = 2000  # of the matrix: elimination takes seconds
MOST_MULTIPLICATIONS = 3 * 10**9  # of all runs: 10 to 25 s
MOST_RUN_MULTIPLICATIONS = 2 * 10**7  # of one run, so that 150 of them fit
MOST_DEPTH = 60  # a width of 2 is left the rank 1 there, and others fit far less
_SEED = 20
_DEEPEST_COUNTED = 12  # two coordinates make over MOST_ROWS rows from depth 9 on


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkShape:
    """The sizes of a network whose heads share its width, on two sides of equal length."""

    depth: int
    width: int
    heads: int
    positions: int

    def __post_init__(self) -> None:
        check_sizes(depth=self.depth, width=self.width, heads=self.heads, positions=self.positions)
        if self.width % self.heads:
            rule = f"do not divide {{width}}={self.width}, and a witness needs heads of equal size"
            least = -(-self.width // self.heads) * self.heads
            raise InvalidValue("heads", self.heads, rule, f"use {{width}}={least}")
        if self.positions % 2:
            rule = "is odd, and the two sides of the partition have as many"
            raise InvalidValue("positions", self.positions, rule, f"use {self.positions + 1}")

    @property
    def head_dim(self) -> int:
        """d_a = d_x / H."""
        return self.width // self.heads

    @property
    def side(self) -> int:
        """Positions of one side; those inside come first."""
        return self.positions // 2

    @property
    def multiplications(self) -> int:
        """What one run takes: four projections, the scores and their sum, in every layer."""
        return self.depth * self.positions * 2 * self.width * (2 * self.width + self.positions)

    def check_run(self) -> None:
        """Refuse more layers than a witness is built of, and a run that takes too long."""
        self._check_not_too_deep()
        if self.multiplications > MOST_RUN_MULTIPLICATIONS:
            rule = (
                f"with {{width}}={self.width} and {{positions}}={self.positions} takes "
                f"{rough(self.multiplications)} multiplications (about "
                f"{self.multiplications / 10**8:.1g} s) for one entry of the matrix, over the "
                f"{MOST_RUN_MULTIPLICATIONS:,} allowed"
            )
            raise InvalidValue("depth", self.depth, rule, "use less of the three")

    def check_fits(self, dimension: int) -> None:
        """Refuse a witness whose multiset(dimension, 3^(depth-2)) rows or runs take too long."""

        def rows(depth: int) -> int:
            """The rows, or a smaller number that is too large already."""
            return multiset(min(dimension, MOST_ROWS + 1), 3 ** (min(depth, _DEEPEST_COUNTED) - 2))

        if rows(self.depth) > MOST_ROWS:
            depths = range(2, min(self.depth, _DEEPEST_COUNTED))
            fitting = [depth for depth in depths if rows(depth) <= MOST_ROWS]
            free = f"depth <= {fitting[-1]}, or fewer" if fitting else f"{MOST_ROWS} or fewer"
            rule = (
                f"with {dimension} coordinates free for the vectors makes a matrix of "
                f"{rough(rows(self.depth))} rows or more, over the {MOST_ROWS} that are built"
            )
            way_out = f"use {free} free coordinates (less width, less rank or more heads)"
            raise InvalidValue("depth", self.depth, rule, way_out)
        self.check_run()

    def check_depth(self) -> None:
        """Refuse fewer layers than inner products need, and more than a witness is built of."""
        doubled_degree(self.depth)
        self._check_not_too_deep()

    def _check_not_too_deep(self) -> None:
        if self.depth > MOST_DEPTH:
            rule = f"is over the {MOST_DEPTH} layers that a witness is built of"
            raise InvalidValue("depth", self.depth, rule, f"use {{depth}} <= {MOST_DEPTH}")


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadWeights:
    """W^K, W^Q, W^V (head_dim x width) and W^O (width x head_dim) of one head."""

    keys: Matrix
    queries: Matrix
    values: Matrix
    output: Matrix


WitnessNetwork: TypeAlias = tuple[tuple[HeadWeights, ...], ...]  # the heads of each layer


def matrix(rows: int, columns: int, entries: Mapping[tuple[int, int], int]) -> Matrix:
    """The matrix with these entries and zeros elsewhere."""
    return tuple(
        tuple(entries.get((row, column), 0) for column in range(columns)) for row in range(rows)
    )


def run(network: WitnessNetwork, x_BDN: "Residues", prime: int) -> "Residues":
    """Y_L of Y <- sum_h W^O W^V Y Y^T (W^K)^T W^Q Y, with all N x N scores: no shortcut."""
    y_BDN = x_BDN
    for layer in network:
        new_BDN = np.zeros_like(y_BDN)
        for head in layer:
            keys, queries, values = (
                residue_product(np.array(weights), y_BDN, prime)
                for weights in (head.keys, head.queries, head.values)
            )
            scores_BNN = residue_product(keys.transpose(0, 2, 1), queries, prime)
            mixed = residue_product(values, scores_BNN, prime)
            new_BDN = (new_BDN + residue_product(np.array(head.output), mixed, prime)) % prime
        y_BDN = new_BDN
    return y_BDN


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorSamples:
    """Continuous inputs: one vector a position, taken as it is."""

    samples: tuple[tuple[Vector, ...], ...]

    def embedded(self, prime: int) -> "Residues":
        """The columns of each sample, (B, D, N)."""
        return np.array(self.samples).transpose(0, 2, 1) % prime


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenSamples:
    """One token a position, whose column of the table M_V (width x vocab) is its vector."""

    samples: tuple[tuple[int, ...], ...]
    table: Matrix

    def embedded(self, prime: int) -> "Residues":
        """The columns of each sample, (B, D, N)."""
        columns: Residues = np.array(self.table)[:, np.array(self.samples)] % prime  # D, B, N
        return columns.transpose(1, 0, 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchSamples:
    """k raw vectors a position, summed through the taps W_1 .. W_k (width x channels) each."""

    samples: tuple[tuple[Vector, ...], ...]  # k N raw vectors
    taps: tuple[Matrix, ...]

    def embedded(self, prime: int) -> "Residues":
        """The columns of each sample, (B, D, N)."""
        raw = np.array(self.samples).transpose(0, 2, 1)
        size = len(self.taps)
        parts = [
            residue_product(np.array(tap), raw[..., place::size], prime)
            for place, tap in enumerate(self.taps)
        ]
        total: Residues = np.sum(parts, axis=0) % prime
        return total


WitnessInputs: TypeAlias = VectorSamples | TokenSamples | PatchSamples


def embedding_rank(inputs: WitnessInputs, prime: int) -> int | None:
    """The rank of the table or of the whole kernel; None where vectors come as they are."""
    if isinstance(inputs, VectorSamples):
        return None
    parts = [inputs.table] if isinstance(inputs, TokenSamples) else list(inputs.taps)
    return residue_rank(np.concatenate([np.array(part) for part in parts], axis=1) % prime, prime)


def first_then_filler(chosen: Sequence[Vector], filler: Vector, length: int) -> VectorSamples:
    """Samples that hold one of the chosen vectors first and the filler at all other positions."""
    return VectorSamples(samples=tuple((vector, *[filler] * (length - 1)) for vector in chosen))


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


@dataclass(frozen=True, kw_only=True, slots=True)
class InnerProductPower:
    """The promise of constant <v_a, v_b>^exponent, at every coordinate and position."""

    formula: str
    constant: int
    exponent: int
    vectors: Matrix  # v_a

    def matrix(self, prime: int) -> "Residues":
        """The promised values of all pairs (a, b), a row at a time."""
        rows = np.array(self.vectors)
        return np.stack([self._values(row, rows, prime) for row in rows])

    def outputs(self, pairs: "Residues", x_BDN: "Residues", prime: int) -> "Residues":
        """The promised output at the pairs (B, 2)."""
        rows = np.array(self.vectors)
        values = self._values(rows[pairs[:, 0]], rows[pairs[:, 1]], prime)
        return np.broadcast_to(values[:, None, None], x_BDN.shape)

    def _values(self, left: "Residues", right: "Residues", prime: int) -> "Residues":
        inner = (left * right % prime).sum(axis=-1) % prime
        return self.constant * residue_power(inner, self.exponent, prime) % prime


@dataclass(frozen=True, kw_only=True, slots=True)
class MomentMonomial:
    """The promise of x_{i,h} prod_{a<=b} S_ab^E_ab at coordinate h < heads, and of 0 beyond."""

    formula: str
    exponents: tuple[tuple[int, ...], ...]  # of each head, for the pairs a <= b in order

    def outputs(self, pairs: "Residues", x_BDN: "Residues", prime: int) -> "Residues":  # noqa: ARG002  # all is in the inputs
        """The promised output for these inputs, from their second moments."""
        moments = residue_product(x_BDN, x_BDN.transpose(0, 2, 1), prime)
        indices = list(combinations_with_replacement(range(len(self.exponents)), 2))
        outputs = np.zeros_like(x_BDN)
        for head, exponents in enumerate(self.exponents):
            outputs[:, head] = x_BDN[:, head]
            for (a, b), exponent in zip(indices, exponents, strict=True):
                factor = residue_power(moments[:, a, b], exponent, prime)
                outputs[:, head] = outputs[:, head] * factor[:, None] % prime
        return outputs


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """Weights and inputs modulo a prime whose matrix of outputs has the expected rank.

    Entry (a, b) of the matrix is output coordinate `entry` at position 0 for sample a inside and
    sample b outside.
    """

    kind: str
    shape: NetworkShape
    prime: int
    network: WitnessNetwork
    inside: WitnessInputs
    outside: WitnessInputs
    promise: InnerProductPower | MomentMonomial
    expected_rank: int
    bound_id: str
    bound: int
    entry: int = 0
    expected_embedding_rank: int | None = None  # None: the inputs are vectors already

    def __post_init__(self) -> None:
        check_witness_prime(self.prime)
