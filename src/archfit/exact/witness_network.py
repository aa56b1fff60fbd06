"""Weights of witnesses modulo a prime, and the run of a network that has them.

**Base**: the weights of Levine et al. 2020, lemma 4, with their misprints corrected. Each head of
odd dimension d_a = 2 hd + 1 is a row half (coordinates s < hd), a column half (hd <= s < 2 hd) and
a constant. Layer 1 attends to every position alike and leaves w = v_a + J v_b in the row half and
1 - w in the column half; layer 2 turns each head's constant into its share of
<w, w> = 2 J <v_a, v_b>, for the vectors have equal norms; each later layer sums the shares over the
heads and cubes the sum; the last adds all heads into every coordinate.
**Simplified**: without halves, for heads of any dimension from 2. Every coordinate but the heads'
constants carries the vectors: v_a inside and J v_b outside, all of norm 1. Layer 1 leaves
w = v_a + J v_b, layer 2 the shares of <w, w>, later ones cube their sum.
**Sphere**: the simplified weights without 1/N, on any vectors a and b, with a mask or without. All
monomials of degree 3^(L-2) in |a|^2, <a, b> and |b|^2 occur, with positive coefficients.
**Causal chain**: heads of dimension 1 whose coordinates are a (nonzero in the prefix), b (after it,
before the last position), and c, 1 and 2 (at the last position): a' = a S_aa, b' = b S_bb,
c' = c S_cc, 2' = c (S_aa + S_bb) and 1' = 1 S_12. Further layers multiply chains by threes.
**Monomial**: head h works on coordinate h by its pair of the plan (`theory.witness_formula`).
All but the first are derived in docs/theory.md.

Shape letters of the arrays: B samples, D width, N positions; tokens are columns.
"""

import random
from dataclasses import dataclass
from typing import TypeAlias

from archfit.exact.prime_field import Residues, residue_product, root_of_minus_one
from archfit.spec import lazy_numpy as np
from archfit.spec.errors import refusal, refuse_if
from archfit.theory.arithmetic import multiset, rough
from archfit.theory.continuous_bounds import doubled_degree
from archfit.theory.inputs import check_sizes
from archfit.theory.witness_formula import Plan, chain_layers

MOST_ROWS = 2000  # of the matrix: elimination takes seconds
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
            least = -(-self.width // self.heads) * self.heads
            raise refusal("unequal-heads", self.heads, width=self.width, least=least)
        is_odd = self.positions % 2 == 1
        refuse_if(is_odd, "unequal-sides", self.positions, even=self.positions + 1)
        refuse_if(self.depth > MOST_DEPTH, "witness-too-deep", self.depth, most=MOST_DEPTH)

    @property
    def head_dim(self) -> int:
        """d_a = d_x / H."""
        return self.width // self.heads

    @property
    def half(self) -> int:
        """hd = (d_a - 1) / 2."""
        return (self.head_dim - 1) // 2

    @property
    def side(self) -> int:
        """Positions of one side; those inside come first."""
        return self.positions // 2

    @property
    def multiplications(self) -> int:
        """What one run takes: four projections, the scores and their sum, in every layer."""
        return self.depth * self.positions * 2 * self.width * (2 * self.width + self.positions)

    def places(self, first: int, last: int) -> list[int]:
        """Coordinates first..last-1 of every head, one head after the other."""
        return [h * self.head_dim + s for h in range(self.heads) for s in range(first, last)]

    def check_run(self) -> None:
        """Refuse a run that takes too long."""
        work, most = self.multiplications, MOST_RUN_MULTIPLICATIONS
        sizes = {"width": self.width, "positions": self.positions, "most": f"{most:,}"}
        takes = {"count": rough(work), "seconds": f"{work / 10**8:.1g}"}
        refuse_if(work > most, "run-too-long", self.depth, **sizes, **takes)

    def check_fits(self, dimension: int) -> None:
        """Refuse a witness whose multiset(dimension, 3^(depth-2)) rows or runs take too long."""

        def rows(depth: int) -> int:
            """The rows, or a smaller number that is too large already."""
            return multiset(min(dimension, MOST_ROWS + 1), 3 ** (min(depth, _DEEPEST_COUNTED) - 2))

        depths = range(2, min(self.depth, _DEEPEST_COUNTED))
        fitting = [depth for depth in depths if rows(depth) <= MOST_ROWS]
        free = f"depth <= {fitting[-1]}, or fewer" if fitting else f"{MOST_ROWS} or fewer"
        way_out = f"use {free} free coordinates (less width, less rank or more heads)"
        what = f"with {dimension} coordinates free for the vectors"
        self.check_rows(rows(self.depth), what, way_out)
        self.check_run()

    def check_rows(self, rows: int, what: str, way_out: str) -> None:
        """Refuse a matrix of more rows than are built."""
        said = {"what": what, "rows": rough(rows), "most": MOST_ROWS, "instead": way_out}
        refuse_if(rows > MOST_ROWS, "matrix-too-large", self.depth, **said)

    def check_halves(self) -> None:
        """Refuse heads that do not split into two halves and a constant."""
        doubled_degree(self.depth)
        is_bad, a = self.head_dim % 2 == 0 or self.head_dim < 3, self.head_dim
        sizes = {"heads": self.heads, "head_dim": a, "enough": self.heads * max(3, a + 1)}
        refuse_if(is_bad, "heads-without-halves", self.width, **sizes)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadWeights:
    """W^K, W^Q, W^V (head_dim x width) and W^O (width x head_dim) of one head."""

    keys: Residues
    queries: Residues
    values: Residues
    output: Residues


WitnessNetwork: TypeAlias = tuple[tuple[HeadWeights, ...], ...]  # the heads of each layer


def run(network: WitnessNetwork, x_BDN: Residues, prime: int, *, causal: bool) -> Residues:
    """Y_L of Y <- sum_h W^O W^V Y Y^T (W^K)^T W^Q Y, with all N x N scores: no shortcut.

    A causal mask leaves out the scores of later keys.
    """
    y_BDN = x_BDN
    for layer in network:
        new_BDN = np.zeros_like(y_BDN)
        for head in layer:
            keys, queries, values = (
                residue_product(weights, y_BDN, prime)
                for weights in (head.keys, head.queries, head.values)
            )
            scores_BNN = residue_product(keys.transpose(0, 2, 1), queries, prime)
            scores_BNN = np.triu(scores_BNN) if causal else scores_BNN  # (key, query)
            mixed = residue_product(values, scores_BNN, prime)
            new_BDN = (new_BDN + residue_product(head.output, mixed, prime)) % prime
        y_BDN = new_BDN
    return y_BDN


def base_network(shape: NetworkShape, prime: int) -> WitnessNetwork:
    """The base weights: layer 1 leaves w, 1 - w and 1; later scores square the sum over halves."""
    J, hd = root_of_minus_one(prime), shape.half
    one = np.eye(hd, dtype=np.int64)
    first = np.zeros((shape.head_dim, shape.head_dim), np.int64)
    first[:hd, : 2 * hd] = np.hstack([one, J * one])
    first[hd : 2 * hd, : 2 * hd] = prime - first[:hd, : 2 * hd]
    first[hd:, -1] = pow(shape.positions, -1, prime)
    return _network(shape, first % prime, hd, shape.places(0, shape.head_dim - 1), J)


def simplified_network(shape: NetworkShape, prime: int, *, share: bool = True) -> WitnessNetwork:
    """The simplified weights: blocks are read as they are; later scores add the constants.

    The first layer takes the mean of the constants, or with no `share` their sum.
    """
    a = shape.head_dim
    first = np.eye(a, dtype=np.int64)
    first[-1, -1] = pow(shape.positions, -1, prime) if share else 1
    return _network(shape, first, a - 1, shape.places(a - 1, a), 1)


def _network(
    shape: NetworkShape, first: Residues, scored: int, summed: list[int], factor: int
) -> WitnessNetwork:
    """Layers whose scores are 1, then <w, w> over the first `scored` of a head, then a square.

    It is that of the sum over the coordinates `summed`. Values of layer 1 are `first` times the
    head's block; later heads read their block as it is and write it back, and the last layer adds
    `factor` times each head's constant to every coordinate.
    """
    a = shape.head_dim

    def head(number: int, h: int) -> HeadWeights:
        block, one = slice(h * a, h * a + a), np.eye(a, dtype=np.int64)
        keys, values, written = np.zeros((3, a, shape.width), np.int64)
        if number == 2:
            keys[:scored, block] = one[:scored]
        else:
            keys[0, a - 1 if number == 1 else summed] = 1
        if number == shape.depth:
            values[0, block.stop - 1] = factor
            written[0] = 1
        else:
            values[:, block] = first if number == 1 else one
            written[:, block] = one
        return HeadWeights(keys=keys, queries=keys, values=values, output=written.T)

    layers = range(1, shape.depth + 1)
    return tuple(tuple(head(number, h) for h in range(shape.heads)) for number in layers)


def monomial_network(shape: NetworkShape, plan: Plan) -> WitnessNetwork:
    """The weights of all layers; the plan's last one is repeated up to the depth."""
    layers = [*plan, *[plan[-1]] * (shape.depth - len(plan))]
    return tuple(
        tuple(_unit_head(shape, h, h, [p], [q]) for h, (p, q) in enumerate(layer))
        for layer in layers
    )


def _unit_head(
    shape: NetworkShape, written: int, asked: int, values: list[int], keys: list[int]
) -> HeadWeights:
    """One coordinate times the moment of two sums of coordinates, written to a coordinate."""
    k, q, v, o = np.zeros((4, shape.head_dim, shape.width), np.int64)
    k[0, keys] = q[0, asked] = v[0, values] = o[0, written] = 1
    return HeadWeights(keys=k, queries=q, values=v, output=o.T)


def chain_network(shape: NetworkShape, chains: int) -> WitnessNetwork:
    """The weights of chains over coordinates c = 0 and 1 + 4k.. for a, b, 1 and 2 of chain k."""
    firsts = [1 + 4 * k for k in range(chains)]
    growing = [_unit_head(shape, 0, 0, [0], [0])]
    for a in firsts:
        b, one, two = a + 1, a + 2, a + 3
        growing += [_unit_head(shape, a, a, [a], [a]), _unit_head(shape, b, b, [b], [b])]
        growing.append(_unit_head(shape, one, one, [one], [two]))
        growing.append(_unit_head(shape, two, 0, [a, b], [a, b]))  # a b = 0 at every position
    alive = [a + 2 for a in firsts]
    layers = [tuple(growing)] * chain_layers(shape.depth, chains)
    while len(layers) < shape.depth:
        joined = [[*alive, 0, 0][at : at + 3] for at in range(0, len(alive), 3)]
        heads = [_unit_head(shape, x, x, [y], [z]) for x, y, z in joined]
        layers.append((growing[0], *heads))
        alive = alive[::3]
    return tuple(layers)


def templates(shape: NetworkShape, vectors: Residues, places: list[int]) -> Residues:
    """For each vector 1 in every constant, and its entries in the first of these places."""
    found = np.zeros((len(vectors), shape.width), np.int64)
    found[:, shape.places(shape.head_dim - 1, shape.head_dim)] = 1
    found[:, places[: vectors.shape[1]]] = vectors
    return found


def filler(shape: NetworkShape) -> Residues:
    """The template without a vector, as a column."""
    return templates(shape, np.zeros((1, 0), np.int64), []).T


def unit_rows(rows: int, dimension: int, prime: int) -> Residues:
    """Random points of the unit sphere with rational coordinates, modulo the prime.

    The line from the north pole through (t, 0) meets the sphere again in (2 t, q - 1) / (q + 1)
    with q = <t, t>: no square root and no search is needed. A form of degree lambda that is zero
    on a sphere is zero, so multiset(dimension, lambda) random points have independent powers,
    up to bad luck that a measured rank would show.
    """
    chance = random.Random(_SEED)
    points: list[list[int]] = []
    while len(points) < rows:
        t = [chance.randrange(prime) for _ in range(dimension - 1)]
        q = sum(x * x for x in t) % prime
        if q != prime - 1:
            scale = pow(q + 1, -1, prime)
            points.append([x * scale % prime for x in (*(2 * x for x in t), q - 1)])
    return np.array(points)


def unit_vectors(shape: NetworkShape, dimension: int, prime: int) -> Residues:
    """As many as there are forms of degree 3^(L-2) in so many variables: the expected rank."""
    return unit_rows(multiset(dimension, doubled_degree(shape.depth)), dimension, prime)


def both_halves(shape: NetworkShape, vectors: Residues) -> list[Residues]:
    """The templates with these vectors in the row halves, and those in the column halves."""
    hd = shape.half
    return [templates(shape, vectors, shape.places(at, at + hd)) for at in (0, hd)]


def side(shape: NetworkShape, chosen: Residues) -> Residues:
    """Samples (B, D, N): one of the chosen vectors first, the filler at all other positions."""
    samples = np.tile(filler(shape), (len(chosen), 1, shape.side))
    samples[:, :, 0] = chosen
    return samples
