"""A witness, what it promises to compute, and the run that is compared with the promise.

A witness is weights that reach a lower bound. A rank that one choice of weights reaches, almost all
weights reach, so a checked witness is a computation that anybody can repeat in place of a proof:
the network is run, its outputs are compared with what was promised, and the rank is measured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Literal, TypeAlias

from archfit.exact.elimination import residue_rank
from archfit.exact.prime_field import Residues, residue_power, residue_product, root_of_minus_one
from archfit.exact.witness_network import NetworkShape, WitnessNetwork, run
from archfit.spec import lazy_numpy as np
from archfit.theory.continuous_bounds import doubled_degree

Extent: TypeAlias = Literal["all", "sample"]

MOST_MULTIPLICATIONS = 3 * 10**9  # of all runs: 10 to 25 s
_AT_ONCE = 10**6  # numbers of the largest array, of 8 bytes each
_SEED = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """What weights are said to compute: a formula, and the outputs at pairs of samples by it."""

    formula: str
    outputs: Callable[[Residues, Residues], Residues]  # at pairs (B, 2), whose inputs are x_BDN
    matrix: Callable[[], Residues] | None = None  # at all pairs, where no inputs are needed


def inner_product_power(
    shape: NetworkShape, vectors: Residues, prime: int, *, has_halves: bool
) -> Promise:
    """N^((3^(L-1)-1)/2) (2 J <v_a, v_b>)^lambda, lambda = 3^(L-2), of the simplified witness.

    The base witness, with halves, has J hd^(lambda-1) times that. It is promised at every
    coordinate and position; `vectors` are the v_a, as rows.
    """
    J, L, N, hd = root_of_minus_one(prime), shape.depth, shape.positions, shape.half
    power, degree = f"3^{L - 2}", doubled_degree(L)
    formula = f"{N}^((3^{L - 1} - 1)/2) (2J <v_a, v_b>)^({power})"
    constant = pow(N, (3 ** (L - 1) - 1) // 2, prime) * pow(2 * J, degree, prime) % prime
    if has_halves:
        formula = "J " + formula.replace(" (2J", f" {hd}^({power} - 1) (2J")
        constant = constant * J * pow(hd, degree - 1, prime) % prime

    def values(left: Residues, right: Residues) -> Residues:
        inner = (left * right % prime).sum(axis=-1) % prime
        return constant * residue_power(inner, degree, prime) % prime

    def outputs(pairs: Residues, x_BDN: Residues) -> Residues:
        found = values(vectors[pairs[:, 0]], vectors[pairs[:, 1]])
        return np.broadcast_to(found[:, None, None], x_BDN.shape)

    def matrix() -> Residues:  # a row at a time
        return np.stack([values(row, vectors) for row in vectors])

    return Promise(formula=formula, outputs=outputs, matrix=matrix)


def moment_monomials(
    exponents: Sequence[Sequence[int]], prime: int, _pairs: Residues, x_BDN: Residues
) -> Residues:
    """x_{i,h} prod_{a<=b} S_ab^E_ab at coordinate h < heads, and 0 beyond.

    S are the second moments of the inputs; `exponents` has those of each head, for the pairs
    a <= b in order.
    """
    moments = residue_product(x_BDN, x_BDN.transpose(0, 2, 1), prime)
    indices = list(combinations_with_replacement(range(len(exponents)), 2))
    outputs = np.zeros_like(x_BDN)
    for head, powers in enumerate(exponents):
        outputs[:, head] = x_BDN[:, head]
        for (a, b), exponent in zip(indices, powers, strict=True):
            factor = residue_power(moments[:, a, b], exponent, prime)
            outputs[:, head] = outputs[:, head] * factor[:, None] % prime
    return outputs


def powers_of_norms(
    depth: int, free: list[int], causal: bool, prime: int, _pairs: Residues, x_BDN: Residues
) -> Residues:
    """What the sphere promises: c at every coordinate, by position.

    c_i = sum_j n_j <w_j, w_i> and in each later layer c_i <- c_i sum_j c_j^2, over the positions j
    that i sees, with w_i the sum of the vectors, at the `free` coordinates of the inputs, and n_i
    the number of those positions.
    """
    N = x_BDN.shape[2]
    seen = np.triu(np.ones((N, N), np.int64)) if causal else np.ones((N, N), np.int64)
    w = x_BDN[:, free] @ seen % prime
    inner = residue_product(w.transpose(0, 2, 1), w, prime)
    c = (seen.sum(axis=0)[:, None] * inner * seen % prime).sum(axis=1) % prime
    for _ in range(depth - 2):
        c = c * (c * c % prime @ seen % prime) % prime
    return np.broadcast_to(c[:, None], x_BDN.shape)


def chain_product(
    chains: int, layers: int, prime: int, _pairs: Residues, x_BDN: Residues
) -> Residues:
    """prod_k prod_l (t_kl + b_kl)^(2^(L'-2-l)), L' layers, at one coordinate of the last position.

    It comes from sums of squares.
    """
    product = np.ones(len(x_BDN), np.int64)
    for chain in range(chains):
        a, b = x_BDN[:, 1 + 4 * chain], x_BDN[:, 2 + 4 * chain]
        for layer in range(layers - 1):
            sums_a, sums_b = ((z * z % prime).cumsum(axis=1) % prime for z in (a, b))
            total = (sums_a[:, -1] + sums_b[:, -1]) % prime
            power = residue_power(total, 2 ** (layers - 2 - layer), prime)
            product, a, b = product * power % prime, a * sums_a % prime, b * sums_b % prime
    return product


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """Weights and inputs modulo a prime whose matrix of outputs has the rank of the bound.

    Entry (a, b) of the matrix is output coordinate `entry` at a position for sample a inside and
    sample b outside. Samples are vectors, (B, D, N), behind the embedding if there is one.
    """

    kind: str
    shape: NetworkShape
    prime: int
    network: WitnessNetwork
    inside: Residues
    outside: Residues
    promise: Promise
    bound_id: str
    bound: int  # which the rank reaches and, of these weights, does not exceed
    inputs: Mapping[str, object]  # all that fixes it, besides the prime
    entry: int = 0
    causal: bool = False
    embedding: "Residues | None" = None  # the table or kernel, as one matrix
    expected_embedding_rank: int | None = None  # None: the inputs are vectors already

    @property
    def output(self) -> int:
        """The position that is read: under a mask the last."""
        return self.shape.positions - 1 if self.causal else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class WitnessCheck:
    """What was compared and measured, and whether all of it agreed."""

    witness: Witness
    size: tuple[int, int]  # of the matrix of outputs
    entries_checked: int
    entries_wrong: int
    extent: Extent
    measured_rank: int | None  # None: the matrix would have to be larger than it can be
    measured_embedding_rank: int | None  # None: the inputs are vectors already

    @property
    def verified(self) -> bool:
        """Whether nothing that was checked failed."""
        ranks = self.measured_rank in (None, self.witness.bound)
        embedding = self.measured_embedding_rank == self.witness.expected_embedding_rank
        return self.entries_checked > 0 and self.entries_wrong == 0 and ranks and embedding


def check_witness(witness: Witness) -> WitnessCheck:
    """Run the network at every pair of samples, or at a seeded sample of pairs if that is too long.

    An entry counts as right if all that is promised of it is: coordinates of the output, at all
    positions or at one. The rank is that of the outputs themselves; where only a sample was run,
    that of the promised values.
    """
    inside, outside, embedding = witness.inside, witness.outside, witness.embedding
    embedding_rank = None if embedding is None else residue_rank(embedding, witness.prime)
    pairs, extent = _pairs(len(inside), len(outside), witness)
    outputs = np.zeros((len(inside), len(outside)), dtype=np.int64)
    wrong, shape = 0, witness.shape
    step = max(1, _AT_ONCE // (shape.positions * max(shape.width, shape.positions)))
    for first in range(0, len(pairs), step):
        some = pairs[first : first + step]
        x_BDN = np.concatenate([inside[some[:, 0]], outside[some[:, 1]]], axis=2)
        y_BDN = run(witness.network, x_BDN, witness.prime, causal=witness.causal)
        read = y_BDN[:, witness.entry, witness.output]
        promised = witness.promise.outputs(some, x_BDN)
        found = (read if promised.ndim == 1 else y_BDN) != promised
        wrong += int(found.reshape(len(some), -1).any(axis=1).sum())
        outputs[some[:, 0], some[:, 1]] = read
    return WitnessCheck(
        witness=witness,
        size=(len(inside), len(outside)),
        entries_checked=len(pairs),
        entries_wrong=wrong,
        extent=extent,
        measured_rank=_measured_rank(witness, outputs, extent),
        measured_embedding_rank=embedding_rank,
    )


def _measured_rank(witness: Witness, outputs: Residues, extent: Extent) -> int | None:
    if len(outputs) < witness.bound:
        return None
    if extent == "all":
        return residue_rank(outputs, witness.prime)
    if witness.promise.matrix is not None:
        return residue_rank(witness.promise.matrix(), witness.prime)
    return None


def _pairs(rows: int, columns: int, witness: Witness) -> tuple[Residues, Extent]:
    """All pairs of samples, or as many random ones as the time allows."""
    affordable = MOST_MULTIPLICATIONS // witness.shape.multiplications
    if rows * columns <= affordable:
        grid = np.indices((rows, columns)).reshape(2, -1).T
        return grid, "all"
    chosen = np.random.default_rng(_SEED).choice(rows * columns, affordable, replace=False)
    return np.stack(np.divmod(chosen, columns), axis=1), "sample"
