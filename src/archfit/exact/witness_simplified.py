"""A witness without halves, for heads of any dimension from 2: it reaches `lb_strong`.

Every coordinate but the heads' constants carries the vectors: v_a inside and J v_b outside, all
of norm 1. Layer 1 attends to every position alike and leaves w = v_a + J v_b; layer 2 turns each
head's constant into its share of <w, w> = 2 J <v_a, v_b>; each later layer sums the shares over
the heads and cubes the sum. The weights are real; only the inputs outside are not.

Source: derived here (docs/theory.md, "A stronger lower bound").
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
from archfit.theory.continuous import doubled_degree, strong_lower_bound


@dataclass(frozen=True, kw_only=True, slots=True)
class Simplified:
    """The simplified witness of one network."""

    shape: NetworkShape

    def __post_init__(self) -> None:
        check_depth(self.shape)
        if self.shape.head_dim < 2:
            raise ValueError(
                f"width={self.shape.width} with heads={self.shape.heads} makes heads of dimension "
                f"1, and this witness needs a constant and one more; use width="
                f"{2 * self.shape.heads}, or the monomial kind"
            )
        check_fits(self.shape, self.shape.width - self.shape.heads)


def build_simplified(recipe: Simplified, prime: int) -> Witness:
    """The weights, and one template a row and column."""
    shape, J = recipe.shape, root_of_minus_one(prime)
    n = shape.width - shape.heads
    rows = multiset(n, doubled_degree(shape.depth))
    vectors = unit_rows(rows, n, prime)
    filler = simplified_template(shape, ())
    inside = [simplified_template(shape, vector) for vector in vectors]
    outside = [
        simplified_template(shape, tuple(J * value % prime for value in vector))
        for vector in vectors
    ]
    return Witness(
        kind="simplified",
        shape=shape,
        prime=prime,
        network=simplified_network(shape, share=pow(shape.positions, -1, prime)),
        inside=first_then_filler(inside, filler, shape.side),
        outside=first_then_filler(outside, filler, shape.side),
        promise=_promise(shape, vectors, prime),
        entry=0,
        expected_rank=rows,
        expected_embedding_rank=None,
        bound_id="lb_strong",
        bound=strong_lower_bound(shape.depth, shape.width, shape.heads),
    )


def simplified_template(shape: NetworkShape, vector: Vector) -> Vector:
    """1 in every constant, and the vector in the other coordinates as far as it goes."""
    template = [0] * shape.width
    for h in range(shape.heads):
        template[(h + 1) * shape.head_dim - 1] = 1
    for index, value in enumerate(vector):
        h, s = divmod(index, shape.head_dim - 1)
        template[h * shape.head_dim + s] = value
    return tuple(template)


def simplified_network(shape: NetworkShape, *, share: int) -> Network:
    """The weights of all layers; `share` is 1/N."""
    return tuple(
        tuple(_head(shape, number, h, share) for h in range(shape.heads))
        for number in range(1, shape.depth + 1)
    )


def _head(shape: NetworkShape, number: int, h: int, share: int) -> Head:
    keys = _keys(shape, number, h)
    if number == shape.depth:
        values, output = constant_values(shape, h, 1), output_to_all(shape)
    else:
        values = block_values(shape, h, share=share if number == 1 else 1)
        output = block_output(shape, h)
    return Head(keys=keys, queries=keys, values=values, output=output)


def _keys(shape: NetworkShape, number: int, h: int) -> Matrix:
    """Scores: 1 in layer 1, then <w, w> of the head, then the square of the constants' sum."""
    a = shape.head_dim
    if number == 1:
        return matrix(a, shape.width, {(0, a - 1): 1})
    if number == 2:
        return matrix(a, shape.width, {(s, h * a + s): 1 for s in range(a - 1)})
    return matrix(a, shape.width, {(0, g * a + a - 1): 1 for g in range(shape.heads)})


def _promise(shape: NetworkShape, vectors: Matrix, prime: int) -> InnerProductPower:
    """N^((3^(L-1)-1)/2) (2 J <v_a, v_b>)^lambda, lambda = 3^(L-2)."""
    J, L, N = root_of_minus_one(prime), shape.depth, shape.positions
    degree = doubled_degree(L)
    constant = pow(N, (3 ** (L - 1) - 1) // 2, prime) * pow(2 * J, degree, prime)
    return InnerProductPower(
        formula=f"{N}^((3^{L - 1} - 1)/2) (2J <v_a, v_b>)^(3^{L - 2})",
        constant=constant % prime,
        exponent=degree,
        vectors=vectors,
    )
