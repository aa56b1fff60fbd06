"""The analysed network with random weights modulo a prime.

A layer maps Y to (Y +) sum_h A_h Y Y^T B_h Y with A = W^O W^V and B = (W^K)^T W^Q. The sum is
linear in the symmetric matrix G = Y Y^T, or in what stands in its place: its entries (row by row)
are a constant matrix times the upper triangle of G, whatever the number of heads. Each layer is
kept as that matrix, its `mix`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.exact.arrays import Array
from archfit.exact.prime_field import PrimeField
from archfit.spec.checks import check_at_least

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """Which network is measured."""

    depth: int
    width: int
    heads: int
    head_dim: int
    has_residual: bool
    is_causal: bool

    def __post_init__(self) -> None:
        check_at_least(
            1, depth=self.depth, width=self.width, heads=self.heads, head_dim=self.head_dim
        )

    @property
    def multiplications(self) -> int:
        """Of residues, for the output of one pair without a mask."""
        d = self.width
        moments = d * (d + 1) // 2
        layer = 2 * d**3 + d * moments + d * d * moments // 5  # the last is a product by BLAS
        return d * d + (self.depth - 1) * layer


def upper_triangle(width: int) -> tuple[list[int], list[int]]:
    """Rows and columns of the entries of a symmetric matrix, each once."""
    pairs = [(row, column) for row in range(width) for column in range(row, width)]
    return [row for row, _ in pairs], [column for _, column in pairs]


def random_mixes(network: Network, field: PrimeField, seed: int) -> list[Array]:
    """For each layer the (width^2 x width(width+1)/2) matrix that stands for its heads."""
    import numpy as np

    draws = np.random.default_rng(seed)
    return [_mix(network, field, draws) for _ in range(network.depth)]


def _mix(network: Network, field: PrimeField, draws: "np.random.Generator") -> Array:
    import numpy as np

    width = network.width
    shape = (network.heads, network.head_dim, width)
    keys, queries, values = (draws.integers(0, field.prime, shape) for _ in range(3))
    outputs = draws.integers(0, field.prime, (network.heads, width, network.head_dim))
    k, q, v, o = (field.reduced(field.arrays.array(w)) for w in (keys, queries, values, outputs))
    a = field.matmul(o, v)
    b = field.matmul(k.swapaxes(1, 2), q)
    # (A G B)[i, j] = sum_{s,t} A[i, s] B[t, j] G[s, t]: all heads in one product
    left = a.reshape(network.heads, width * width)
    right = b.reshape(network.heads, width * width)
    outer = field.matmul(left.swapaxes(0, 1), right)  # (i s), (t j)
    full = field.arrays.numpy(outer).reshape(width, width, width, width).transpose(0, 3, 1, 2)
    rows, columns = upper_triangle(width)
    both = full[:, :, rows, columns] + full[:, :, columns, rows]
    diagonal = np.array(rows) == np.array(columns)
    both[:, :, diagonal] /= 2  # counted twice
    return field.reduced(field.arrays.array(both.reshape(width * width, len(rows))))
