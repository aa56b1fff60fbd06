"""The witness whose output is one monomial in the second moments of the inputs.

Head h of each layer uses W^O = e_h, W^V = e_p^T, W^K = e_q^T, W^Q = e_h^T for its pair (p, q) of
the plan, and only the first H coordinates are at work. `archfit.theory.witness_formula` has the
separation rank that follows; here are the weights, run at random inputs.

Source: derived here (docs/theory.md, "The counterexample").
"""

import random
from dataclasses import dataclass

from archfit.exact.witness_inputs import Vectors
from archfit.exact.witness_network import Head, Network, NetworkShape, matrix
from archfit.exact.witness_parts import MOST_MULTIPLICATIONS, MOST_ROWS, Witness, check_run
from archfit.exact.witness_promise import MomentMonomial
from archfit.theory.witness_formula import Plan, check_plan, final_exponents, monomial_witness

SURPLUS = 6  # samples beyond the promised rank, so that a larger one would show
FEW_SAMPLES = 30  # where the rank is too large to be measured, and only values are compared


@dataclass(frozen=True, kw_only=True, slots=True)
class Monomial:
    """The monomial witness of one plan, read at output coordinate `entry`."""

    shape: NetworkShape
    plan: Plan
    entry: int

    def __post_init__(self) -> None:
        shape = self.shape
        check_run(shape)
        check_plan(shape.depth, shape.width, shape.heads, self.plan, self.entry)
        if shape.side < shape.heads:
            raise ValueError(
                f"positions={shape.positions} leaves {shape.side} on a side, and the moments of "
                f"{shape.heads} heads are independent from {shape.heads}; "
                f"use positions={2 * shape.heads} or more"
            )


def build_monomial(recipe: Monomial, prime: int) -> Witness:
    """The weights, and random inputs: more than the promised rank where that can be measured."""
    shape = recipe.shape
    sizes = (shape.depth, shape.width, shape.heads, recipe.plan)
    expected = monomial_witness(*sizes, recipe.entry)
    samples = _samples(shape, expected)
    return Witness(
        kind="monomial",
        shape=shape,
        prime=prime,
        network=monomial_network(shape, recipe.plan),
        inside=_random_vectors(shape, samples, prime, seed=1),
        outside=_random_vectors(shape, samples, prime, seed=2),
        promise=MomentMonomial(
            formula="x_h prod S_ab^E_ab, S = X X^T",
            exponents=tuple(tuple(final_exponents(*sizes, h)) for h in range(shape.heads)),
        ),
        entry=recipe.entry,
        expected_rank=expected,
        expected_embedding_rank=None,
        bound_id="monomial_witness",
        bound=expected,
    )


def _samples(shape: NetworkShape, expected_rank: int) -> int:
    """Enough of a side to measure the rank, if the matrix is not too large for that."""
    wanted = expected_rank + SURPLUS
    fits = wanted <= MOST_ROWS and wanted**2 * shape.multiplications <= MOST_MULTIPLICATIONS
    return wanted if fits else FEW_SAMPLES


def monomial_network(shape: NetworkShape, plan: Plan) -> Network:
    """The weights of all layers; the plan's last one is repeated up to the depth."""
    a, d = shape.head_dim, shape.width
    layers = [*plan, *[plan[-1]] * (shape.depth - len(plan))]
    return tuple(
        tuple(
            Head(
                keys=matrix(a, d, {(0, q): 1}),
                queries=matrix(a, d, {(0, h): 1}),
                values=matrix(a, d, {(0, p): 1}),
                output=matrix(d, a, {(h, 0): 1}),
            )
            for h, (p, q) in enumerate(layer)
        )
        for layer in layers
    )


def _random_vectors(shape: NetworkShape, samples: int, prime: int, *, seed: int) -> Vectors:
    chance = random.Random(seed)
    return Vectors(
        samples=tuple(
            tuple(
                tuple(chance.randrange(prime) for _ in range(shape.width))
                for _ in range(shape.side)
            )
            for _ in range(samples)
        )
    )
