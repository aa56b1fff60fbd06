"""The weights of witnesses for vectors: the papers', a simplified one and monomials.

**Base**: the witness of Levine et al., with the misprints of its weights corrected. Each head of
odd dimension d_a = 2 hd + 1 is a row half (coordinates s < hd), a column half (hd <= s < 2 hd) and
a constant. Layer 1 attends to every position alike and leaves w = v_a + J v_b in the row half and
1 - w in the column half; layer 2 turns each head's constant into its share of
<w, w> = 2 J <v_a, v_b>, for the vectors have equal norms; each later layer sums the shares over the
heads and cubes the sum; the last adds all heads into every coordinate.
Source: Levine et al. 2020, lemma 4 (supplementary: lemma 6).

**Simplified**: without halves, for heads of any dimension from 2. Every coordinate but the heads'
constants carries the vectors: v_a inside and J v_b outside, all of norm 1. Layer 1 leaves
w = v_a + J v_b, layer 2 the shares of <w, w>, later ones cube their sum. The weights are real; only
the inputs outside are not. Source: derived here (docs/theory.md, "A stronger lower bound").

**Monomial**: head h of each layer uses W^O = e_h, W^V = e_p^T, W^K = e_q^T, W^Q = e_h^T for its
pair (p, q) of the plan, and only the first H coordinates are at work.
`archfit.theory.witness_formula` has the separation rank that follows; here are the weights, run at
random inputs. Source: derived here (docs/theory.md, "The counterexample").
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from archfit.exact.prime_field import root_of_minus_one
from archfit.exact.witness_network import (
    MOST_MULTIPLICATIONS,
    MOST_ROWS,
    HeadWeights,
    InnerProductPower,
    Matrix,
    MomentMonomial,
    NetworkShape,
    Vector,
    VectorSamples,
    Witness,
    WitnessInputs,
    WitnessNetwork,
    first_then_filler,
    matrix,
    unit_rows,
)
from archfit.spec.errors import InvalidValue
from archfit.theory.arithmetic import multiset
from archfit.theory.continuous_bounds import doubled_degree, lower_bound, strong_lower_bound
from archfit.theory.witness_formula import Plan, check_plan, final_exponents, monomial_witness

SURPLUS = 6  # samples beyond the promised rank, so that a larger one would show
FEW_SAMPLES = 30  # where the rank is too large to be measured, and only values are compared


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseRecipe:
    """The base witness of one network; it reaches `lb`."""

    shape: NetworkShape

    def __post_init__(self) -> None:
        check_halves(self.shape)
        self.shape.check_fits(self.shape.heads * half(self.shape))

    def build(self, prime: int) -> Witness:
        """The weights, and one template a row and column."""
        shape = self.shape
        n = shape.heads * half(shape)
        vectors = unit_rows(multiset(n, doubled_degree(shape.depth)), n, prime)
        filler = base_template(shape, (), column=False)
        inside, outside = (
            first_then_filler(
                [base_template(shape, vector, column=column) for vector in vectors],
                filler,
                shape.side,
            )
            for column in (False, True)
        )
        bound = lower_bound(shape.depth, shape.width, shape.heads)
        return base_witness("base", shape, prime, (inside, outside), vectors, ("lb", bound))


def check_halves(shape: NetworkShape) -> None:
    """Refuse heads that do not split into two halves and a constant."""
    shape.check_depth()
    if shape.head_dim % 2 == 0 or shape.head_dim < 3:
        rule = (
            f"with {{heads}}={shape.heads} makes heads of dimension {shape.head_dim}, and this "
            "witness splits each into two halves and a constant"
        )
        more = shape.heads * max(3, shape.head_dim + 1)
        way_out = f"use {{width}}={more}, or the simplified kind"
        raise InvalidValue("width", shape.width, rule, way_out)


def base_witness(  # noqa: PLR0913 - what a base witness is made of
    kind: str,
    shape: NetworkShape,
    prime: int,
    inputs: tuple[WitnessInputs, WitnessInputs],
    vectors: Matrix,
    bound: tuple[str, int],
    *,
    rank: int | None = None,
) -> Witness:
    """The base weights behind these inputs, inside and outside, whose table has this rank."""
    return Witness(
        kind=kind,
        shape=shape,
        prime=prime,
        network=base_network(shape, prime),
        inside=inputs[0],
        outside=inputs[1],
        promise=_promise(shape, vectors, prime, has_halves=True),
        expected_rank=len(vectors),
        expected_embedding_rank=rank,
        bound_id=bound[0],
        bound=bound[1],
    )


def half(shape: NetworkShape) -> int:
    """hd = (d_a - 1) / 2."""
    return (shape.head_dim - 1) // 2


def half_coordinate(shape: NetworkShape, index: int, *, column: bool) -> int:
    """Where entry `index` of a vector stands: the halves of all heads, one after the other."""
    h, s = divmod(index, half(shape))
    return h * shape.head_dim + s + column * half(shape)


def base_template(shape: NetworkShape, vector: Vector, *, column: bool) -> Vector:
    """1 in every constant, and the vector in the row or the column halves as far as it goes."""
    template = [0] * shape.width
    for h in range(shape.heads):
        template[(h + 1) * shape.head_dim - 1] = 1
    for index, value in enumerate(vector):
        template[half_coordinate(shape, index, column=column)] = value
    return tuple(template)


def _promise(
    shape: NetworkShape, vectors: Matrix, prime: int, *, has_halves: bool
) -> InnerProductPower:
    """N^((3^(L-1)-1)/2) (2 J <v_a, v_b>)^lambda, lambda = 3^(L-2), of the simplified witness.

    The base witness, with halves, has J hd^(lambda-1) times that.
    """
    J, L, N, hd = root_of_minus_one(prime), shape.depth, shape.positions, half(shape)
    power, degree = f"3^{L - 2}", doubled_degree(L)
    formula = f"{N}^((3^{L - 1} - 1)/2) (2J <v_a, v_b>)^({power})"
    constant = pow(N, (3 ** (L - 1) - 1) // 2, prime) * pow(2 * J, degree, prime)
    if has_halves:
        formula = "J " + formula.replace(" (2J", f" {hd}^({power} - 1) (2J")
        constant *= J * pow(hd, degree - 1, prime)
    return InnerProductPower(
        formula=formula, constant=constant % prime, exponent=degree, vectors=vectors
    )


def base_network(shape: NetworkShape, prime: int) -> WitnessNetwork:
    """The weights of all layers: from layer 3 on scores are the square of a sum over all heads."""
    a, hd = shape.head_dim, half(shape)
    J, share = root_of_minus_one(prime), pow(shape.positions, -1, prime)

    def first_values(h: int) -> Matrix:
        """w = v_a + J v_b in the row half, 1 - w in the column half, 1 in the constant."""
        o = h * a
        entries = {(a - 1, o + a - 1): share}
        for s in range(hd):
            entries |= {(s, o + s): 1, (s, o + hd + s): J}
            entries |= {(hd + s, o + s): prime - 1, (hd + s, o + hd + s): prime - J}
            entries |= {(hd + s, o + a - 1): share}
        return matrix(a, shape.width, entries)

    return _network(shape, range(hd), range(a - 1), first_values, J)


def _network(
    shape: NetworkShape,
    scored: range,
    summed: range,
    first_values: Callable[[int], Matrix],
    factor: int,
) -> WitnessNetwork:
    """Layers whose scores are 1, then <w, w> over coordinates `scored` of the head, then a square.

    It is that of the sum over coordinates `summed` of all heads. Values of layer 1 are given; later
    heads read their block as it is and write it back, and the last layer adds `factor` times each
    head's constant to every coordinate.
    """
    a, d = shape.head_dim, shape.width

    def head(number: int, h: int) -> HeadWeights:
        o = h * a
        keys = {(0, g * a + s): 1 for g in range(shape.heads) for s in summed}
        if number <= 2:
            keys = {(0, a - 1): 1} if number == 1 else {(s, o + s): 1 for s in scored}
        if number == shape.depth:
            values = matrix(a, d, {(0, o + a - 1): factor})
            output = matrix(d, a, {(k, 0): 1 for k in range(d)})
        else:
            values = first_values(h) if number == 1 else _block(shape, h, share=1)
            output = block_output(shape, h)
        scores = matrix(a, d, keys)
        return HeadWeights(keys=scores, queries=scores, values=values, output=output)

    layers = range(1, shape.depth + 1)
    return tuple(tuple(head(number, h) for h in range(shape.heads)) for number in layers)


def block_output(shape: NetworkShape, h: int) -> Matrix:
    """W^O that writes the head into block h."""
    a = shape.head_dim
    return matrix(shape.width, a, {(h * a + s, s): 1 for s in range(a)})


def _block(shape: NetworkShape, h: int, *, share: int) -> Matrix:
    """W^V that reads block h as it is, and `share` times its constant."""
    a, o = shape.head_dim, h * shape.head_dim
    entries = {(s, o + s): 1 for s in range(a - 1)}
    return matrix(a, shape.width, entries | {(a - 1, o + a - 1): share})


@dataclass(frozen=True, kw_only=True, slots=True)
class SimplifiedRecipe:
    """The simplified witness of one network; it reaches `lb_strong`."""

    shape: NetworkShape

    def __post_init__(self) -> None:
        shape = self.shape
        shape.check_depth()
        if shape.head_dim < 2:
            rule = (
                f"with {{heads}}={shape.heads} makes heads of dimension 1, and this witness needs "
                "a constant and one more"
            )
            way_out = f"use {{width}}={2 * shape.heads}, or the monomial kind"
            raise InvalidValue("width", shape.width, rule, way_out)
        shape.check_fits(shape.width - shape.heads)

    def build(self, prime: int) -> Witness:
        """The weights, and one template a row and column."""
        shape, J = self.shape, root_of_minus_one(prime)
        n, degree = shape.width - shape.heads, doubled_degree(shape.depth)
        vectors = unit_rows(multiset(n, degree), n, prime)
        filler = simplified_template(shape, ())
        inside, outside = (
            [
                simplified_template(shape, tuple(factor * value % prime for value in vector))
                for vector in vectors
            ]
            for factor in (1, J)
        )
        return Witness(
            kind="simplified",
            shape=shape,
            prime=prime,
            network=simplified_network(shape, share=pow(shape.positions, -1, prime)),
            inside=first_then_filler(inside, filler, shape.side),
            outside=first_then_filler(outside, filler, shape.side),
            promise=_promise(shape, vectors, prime, has_halves=False),
            expected_rank=len(vectors),
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


def simplified_network(shape: NetworkShape, *, share: int) -> WitnessNetwork:
    """The weights of all layers; `share` is 1/N; later scores square the constants' sum."""
    a = shape.head_dim
    return _network(
        shape, range(a - 1), range(a - 1, a), lambda h: _block(shape, h, share=share), 1
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class MonomialRecipe:
    """The monomial witness of one plan, read at output coordinate `entry`."""

    shape: NetworkShape
    plan: Plan
    entry: int

    def __post_init__(self) -> None:
        shape = self.shape
        shape.check_run()
        check_plan(shape.depth, shape.width, shape.heads, self.plan, self.entry)
        if shape.side < shape.heads:
            rule = (
                f"leaves {shape.side} on a side, and the moments of {shape.heads} heads are "
                f"independent from {shape.heads}"
            )
            way_out = f"use {{positions}}={2 * shape.heads} or more"
            raise InvalidValue("positions", shape.positions, rule, way_out)

    def build(self, prime: int) -> Witness:
        """The weights, and random inputs: more than the promised rank where it can be measured."""
        shape = self.shape
        sizes = (shape.depth, shape.width, shape.heads, self.plan)
        expected = monomial_witness(*sizes, self.entry)
        wanted = expected + SURPLUS
        fits = wanted <= MOST_ROWS and wanted**2 * shape.multiplications <= MOST_MULTIPLICATIONS
        samples = wanted if fits else FEW_SAMPLES
        return Witness(
            kind="monomial",
            shape=shape,
            prime=prime,
            network=monomial_network(shape, self.plan),
            inside=_random_vectors(shape, samples, prime, seed=1),
            outside=_random_vectors(shape, samples, prime, seed=2),
            promise=MomentMonomial(
                formula="x_h prod S_ab^E_ab, S = X X^T",
                exponents=tuple(tuple(final_exponents(*sizes, h)) for h in range(shape.heads)),
            ),
            entry=self.entry,
            expected_rank=expected,
            bound_id="monomial_witness",
            bound=expected,
        )


def monomial_network(shape: NetworkShape, plan: Plan) -> WitnessNetwork:
    """The weights of all layers; the plan's last one is repeated up to the depth."""
    a, d = shape.head_dim, shape.width
    layers = [*plan, *[plan[-1]] * (shape.depth - len(plan))]
    return tuple(
        tuple(
            HeadWeights(
                keys=matrix(a, d, {(0, q): 1}),
                queries=matrix(a, d, {(0, h): 1}),
                values=matrix(a, d, {(0, p): 1}),
                output=matrix(d, a, {(h, 0): 1}),
            )
            for h, (p, q) in enumerate(layer)
        )
        for layer in layers
    )


def _random_vectors(shape: NetworkShape, samples: int, prime: int, *, seed: int) -> VectorSamples:
    chance = random.Random(seed)
    return VectorSamples(
        samples=tuple(
            tuple(
                tuple(chance.randrange(prime) for _ in range(shape.width))
                for _ in range(shape.side)
            )
            for _ in range(samples)
        )
    )
