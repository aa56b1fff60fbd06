"""The analysed network with random weights modulo a prime, run on all pairs of samples.

A layer maps Y to (Y +) sum_h A_h Y Y^T B_h Y with A = W^O W^V and B = (W^K)^T W^Q. The sum is
linear in the symmetric matrix G = Y Y^T, or in what stands in its place: its entries (row by row)
are a constant matrix times the upper triangle of G, whatever the number of heads. Each layer is
kept as that matrix, its `mix`.

Without a mask the inputs enter only through S = S_P + S_Q and the vector x at the output's own
position: with F_0 = I and F_(l+1) = (F_l +) mix(F_l S F_l^T) F_l the output is row p of F_L times
x. So a pair costs the same for any number of positions and heads. Under a causal mask each
position has an S of its own, the sum over the positions up to it, and all are kept.

Shapes: matrices stand in front, samples behind: (rows, columns, P side, Q side).
"""

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from archfit.exact.arrays import Array
from archfit.exact.prime_field import PrimeField
from archfit.spec.errors import check_at_least

if TYPE_CHECKING:
    import numpy as np
else:
    from archfit.spec import lazy_numpy as np


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalysedNetwork:
    """Which network is measured: linear attention alone, without norms or feed-forward layers."""

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
        """How many products of residues the output of one pair takes without a mask."""
        d = self.width
        moments = d * (d + 1) // 2
        layer = 2 * d**3 + d * moments + d * d * moments // 5  # the last is a product by BLAS
        return d * d + (self.depth - 1) * layer


def upper_triangle(width: int) -> tuple[list[int], list[int]]:
    """Rows and columns of the entries of a symmetric matrix, each once."""
    rows, columns = zip(*combinations_with_replacement(range(width), 2), strict=True)
    return list(rows), list(columns)


def random_mixes(network: AnalysedNetwork, field: PrimeField, seed: int) -> list[Array]:
    """For each layer the (width^2 x width(width+1)/2) matrix that stands for its heads."""
    draws = np.random.default_rng(seed)
    return [_mix(network, field, draws) for _ in range(network.depth)]


def _mix(network: AnalysedNetwork, field: PrimeField, draws: "np.random.Generator") -> Array:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluator:
    """A network with its weights, ready to be run on pairs."""

    network: AnalysedNetwork
    field: PrimeField
    mixes: list[Array]
    entry: int  # p, the coordinate of the output

    def unmasked(self, s: Array, x: Array) -> Array:
        """Outputs for moments `s` (entries of the upper triangle first) and own vectors `x`."""
        field, network = self.field, self.network
        square, moments, f = _square(s, network.width), s, None  # F_0 = I
        for layer in range(network.depth - 1):
            grown = self._mixed(layer, moments)
            if f is not None:
                grown = product(field, grown, f)
                f = field.reduced(grown + f) if network.has_residual else grown
            else:  # the first layer is linear
                f = grown
                for i in range(network.width if network.has_residual else 0):
                    f[i, i] += 1
            moments = self._moments(f, square)
        own = x[:, None] if f is None else product(field, f, x[:, None])
        row = self._mixed(network.depth - 1, moments, self.entry)
        output = product(field, row, own)[0, 0]
        return field.reduced(output + own[self.entry, 0]) if network.has_residual else output

    def causal(self, columns: list[Array]) -> Array:
        """Outputs at the last of the positions whose vectors are given."""
        field = self.field
        for layer in range(self.network.depth):
            is_last = layer == self.network.depth - 1
            sums, new = None, []
            for place, y in enumerate(columns):
                outer = product(field, y[:, None], y[None])[upper_triangle(self.network.width)]
                sums = outer if sums is None else field.reduced(sums + outer)
                if is_last and place < len(columns) - 1:
                    continue
                mixed = product(field, self._mixed(layer, sums), y[:, None])[:, 0]
                new.append(field.reduced(mixed + y) if self.network.has_residual else mixed)
            columns = new
        return columns[-1][self.entry]

    def _moments(self, f: Array, s: Array) -> Array:
        """The upper triangle of F S F^T."""
        fs = product(self.field, f, s)
        rows, columns = upper_triangle(self.network.width)
        return dot(self.field, fs[rows], f[columns])

    def _mixed(self, layer: int, moments: Array, row: int | None = None) -> Array:
        """sum_h A_h G B_h of a layer, or one row of it."""
        width, mix = self.network.width, self.mixes[layer]
        if row is not None:
            mix = mix[row * width : (row + 1) * width]
        shape = tuple(moments.shape[1:])
        result = self.field.matmul(mix, moments.reshape(moments.shape[0], -1))
        return result.reshape(-1, width, *shape)


def product(field: PrimeField, left: Array, right: Array) -> Array:
    """The product of small matrices (i, k, ...) and (k, j, ...) for all pairs behind them."""
    return dot(field, left[:, :, None], right[None])


def dot(field: PrimeField, left: Array, right: Array) -> Array:
    """Sums over the second axis of left * right, for all pairs behind."""
    sums = []
    for limb in field.limbs(left):
        total = limb[:, 0] * right[:, 0]
        for k in range(1, limb.shape[1]):
            total = field.arrays.add_product_(total, limb[:, k], right[:, k])
        sums.append(total)
    return field.joined(tuple(sums))


def _square(s: Array, width: int) -> Array:
    """The symmetric matrix of which the upper triangle is given."""
    places = {pair: index for index, pair in enumerate(zip(*upper_triangle(width), strict=True))}
    order = [places[min(i, j), max(i, j)] for i in range(width) for j in range(width)]
    return s[order].reshape(width, width, *s.shape[1:])
