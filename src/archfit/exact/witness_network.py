"""The analysed network with weights given entry by entry, run as the papers define it.

Shape letters of the arrays: B samples, D width, N positions; tokens are columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from archfit.exact.residues import product
from archfit.theory.quantities import check_sizes

if TYPE_CHECKING:
    from archfit.exact.residues import Residues

Vector: TypeAlias = tuple[int, ...]
Matrix: TypeAlias = tuple[Vector, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """W^K, W^Q, W^V (head_dim x width) and W^O (width x head_dim) of one head."""

    keys: Matrix
    queries: Matrix
    values: Matrix
    output: Matrix


Layer: TypeAlias = tuple[Head, ...]
Network: TypeAlias = tuple[Layer, ...]


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
            least = -(-self.width // self.heads) * self.heads
            raise ValueError(
                f"heads={self.heads} do not divide width={self.width}, and a witness needs heads "
                f"of equal size; use width={least}"
            )
        if self.positions % 2:
            raise ValueError(
                f"positions={self.positions} is odd, and the two sides of the partition have as "
                f"many; use {self.positions + 1}"
            )

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


def matrix(rows: int, columns: int, entries: Mapping[tuple[int, int], int]) -> Matrix:
    """The matrix with these entries and zeros elsewhere."""
    return tuple(
        tuple(entries.get((row, column), 0) for column in range(columns)) for row in range(rows)
    )


def run(network: Network, x_BDN: "Residues", prime: int) -> "Residues":
    """Y_L of Y <- sum_h W^O W^V Y Y^T (W^K)^T W^Q Y, with all N x N scores: no shortcut."""
    import numpy as np

    y_BDN = x_BDN
    for layer in network:
        new_BDN = np.zeros_like(y_BDN)
        for head in layer:
            keys, queries, values = (
                product(np.array(weights), y_BDN, prime)
                for weights in (head.keys, head.queries, head.values)
            )
            scores_BNN = product(keys.transpose(0, 2, 1), queries, prime)
            mixed = product(values, scores_BNN, prime)
            new_BDN = (new_BDN + product(np.array(head.output), mixed, prime)) % prime
        y_BDN = new_BDN
    return y_BDN
