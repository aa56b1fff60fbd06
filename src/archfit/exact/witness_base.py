"""The witness of Levine et al., with the misprints of its weights corrected.

Each head of odd dimension d_a = 2 hd + 1 is a row half (coordinates s < hd), a column half
(hd <= s < 2 hd) and a constant. Layer 1 attends to every position alike and leaves
w = v_a + J v_b in the row half and 1 - w in the column half; layer 2 turns each head's constant
into its share of <w, w> = 2 J <v_a, v_b>, for the vectors have equal norms; each later layer sums
the shares over the heads and cubes the sum; the last adds all heads into every coordinate.

Source: Levine et al. 2020, lemma 4 (supplementary: lemma 6).
"""

from dataclasses import dataclass

from archfit.exact.residues import root_of_minus_one
from archfit.exact.witness_blocks import (
    block_output,
    block_values,
    constant_values,
    output_to_all,
)
from archfit.exact.witness_inputs import first_then_filler
from archfit.exact.witness_network import Head, Matrix, Network, NetworkShape, Vector, matrix
from archfit.exact.witness_parts import Witness, check_depth, check_fits, unit_rows
from archfit.exact.witness_promise import InnerProductPower
from archfit.theory.arithmetic import multiset
from archfit.theory.continuous import doubled_degree, lower_bound


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """The base witness of one network; it reaches `lb`."""

    shape: NetworkShape

    def __post_init__(self) -> None:
        check_halves(self.shape)
        check_fits(self.shape, self.shape.heads * half(self.shape))


def check_halves(shape: NetworkShape) -> None:
    """Refuse heads that do not split into two halves and a constant."""
    check_depth(shape)
    if shape.head_dim % 2 == 0 or shape.head_dim < 3:
        more = shape.heads * max(3, shape.head_dim + 1)
        raise ValueError(
            f"width={shape.width} with heads={shape.heads} makes heads of dimension "
            f"{shape.head_dim}, and this witness splits each into two halves and a constant; "
            f"use width={more}, or the simplified kind"
        )


def half(shape: NetworkShape) -> int:
    """hd = (d_a - 1) / 2."""
    return (shape.head_dim - 1) // 2


def build_base(recipe: Base, prime: int) -> Witness:
    """The weights, and one template a row and column."""
    shape = recipe.shape
    n, degree = shape.heads * half(shape), doubled_degree(shape.depth)
    rows = multiset(n, degree)
    vectors = unit_rows(rows, n, prime)
    filler = base_template(shape, (), column=False)
    inside = [base_template(shape, vector, column=False) for vector in vectors]
    outside = [base_template(shape, vector, column=True) for vector in vectors]
    return Witness(
        kind="base",
        shape=shape,
        prime=prime,
        network=base_network(shape, prime),
        inside=first_then_filler(inside, filler, shape.side),
        outside=first_then_filler(outside, filler, shape.side),
        promise=base_promise(shape, vectors, prime),
        entry=0,
        expected_rank=rows,
        expected_embedding_rank=None,
        bound_id="lb",
        bound=lower_bound(shape.depth, shape.width, shape.heads),
    )


def base_template(shape: NetworkShape, vector: Vector, *, column: bool) -> Vector:
    """1 in every constant, and the vector in the row or the column halves as far as it goes."""
    template = [0] * shape.width
    for h in range(shape.heads):
        template[(h + 1) * shape.head_dim - 1] = 1
    for index, value in enumerate(vector):
        template[half_coordinate(shape, index, column=column)] = value
    return tuple(template)


def half_coordinate(shape: NetworkShape, index: int, *, column: bool) -> int:
    """Where entry `index` of a vector stands: the halves of all heads, one after the other."""
    h, s = divmod(index, half(shape))
    return h * shape.head_dim + s + column * half(shape)


def base_promise(shape: NetworkShape, vectors: Matrix, prime: int) -> InnerProductPower:
    """J N^((3^(L-1)-1)/2) hd^(lambda-1) (2J)^lambda <v_a, v_b>^lambda, lambda = 3^(L-2)."""
    J, L, N, hd = root_of_minus_one(prime), shape.depth, shape.positions, half(shape)
    power = f"3^{L - 2}"
    degree = doubled_degree(shape.depth)
    spread = (3 ** (L - 1) - 1) // 2
    constant = J * pow(N, spread, prime) * pow(hd, degree - 1, prime) * pow(2 * J, degree, prime)
    return InnerProductPower(
        formula=f"J {N}^((3^{L - 1} - 1)/2) {hd}^({power} - 1) (2J <v_a, v_b>)^({power})",
        constant=constant % prime,
        exponent=degree,
        vectors=vectors,
    )


def base_network(shape: NetworkShape, prime: int) -> Network:
    """The weights of all layers."""
    return tuple(
        tuple(_head(shape, number, h, prime) for h in range(shape.heads))
        for number in range(1, shape.depth + 1)
    )


def _head(shape: NetworkShape, number: int, h: int, prime: int) -> Head:
    keys = _keys(shape, number, h)
    if number == shape.depth:
        J = root_of_minus_one(prime)
        return Head(
            keys=keys,
            queries=keys,
            values=constant_values(shape, h, J),
            output=output_to_all(shape),
        )
    values = _first_values(shape, h, prime) if number == 1 else block_values(shape, h, share=1)
    return Head(keys=keys, queries=keys, values=values, output=block_output(shape, h))


def _keys(shape: NetworkShape, number: int, h: int) -> Matrix:
    """Scores: 1 in layer 1, then <w, w> of the head, then the square of a sum over all heads."""
    a, hd = shape.head_dim, half(shape)
    if number == 1:
        return matrix(a, shape.width, {(0, a - 1): 1})
    if number == 2:
        return matrix(a, shape.width, {(s, h * a + s): 1 for s in range(hd)})
    summed = {(0, g * a + s): 1 for g in range(shape.heads) for s in range(a - 1)}
    return matrix(a, shape.width, summed)


def _first_values(shape: NetworkShape, h: int, prime: int) -> Matrix:
    """w = v_a + J v_b in the row half, 1 - w in the column half, 1 in the constant."""
    a, hd, o = shape.head_dim, half(shape), h * shape.head_dim
    J, share = root_of_minus_one(prime), pow(shape.positions, -1, prime)
    entries = {(a - 1, o + a - 1): share}
    for s in range(hd):
        entries |= {(s, o + s): 1, (s, o + hd + s): J}
        entries |= {(hd + s, o + s): prime - 1, (hd + s, o + hd + s): prime - J}
        entries |= {(hd + s, o + a - 1): share}
    return matrix(a, shape.width, entries)
