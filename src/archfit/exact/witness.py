"""A witness run and compared with its promise: weights that reach a lower bound.

A rank that one choice of weights reaches, almost all weights reach, so a checked witness is a
computation that anybody can repeat in place of a proof: the network is run, its outputs are
compared with what was promised, and the rank is measured.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from archfit.exact.elimination import modular_rank
from archfit.exact.prime_field import Arrays, PrimeField, Residues
from archfit.exact.witness_kinds import MOST_MULTIPLICATIONS
from archfit.exact.witness_network import run
from archfit.exact.witness_promise import InnerProductPower, Witness
from archfit.spec import lazy_numpy as np

Extent: TypeAlias = Literal["all", "sample"]

_AT_ONCE = 10**6  # numbers of the largest array, of 8 bytes each
_SEED = 7


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
        ranks = self.measured_rank in (None, self.witness.expected_rank)
        embedding = self.measured_embedding_rank == self.witness.expected_embedding_rank
        return self.entries_checked > 0 and self.entries_wrong == 0 and ranks and embedding


def check_witness(witness: Witness) -> WitnessCheck:
    """Run the network at every pair of samples, or at a seeded sample of pairs if that is too long.

    An entry counts as right if all that is promised of it is: coordinates of the output, at all
    positions or at one. The rank is that of the outputs themselves; where only a sample was run,
    that of the promised values.
    """
    inside, outside, embedding = witness.inside, witness.outside, witness.embedding
    embedding_rank = None if embedding is None else _rank(embedding, witness.prime)
    pairs, extent = _pairs(len(inside), len(outside), witness)
    outputs = np.zeros((len(inside), len(outside)), dtype=np.int64)
    wrong, shape = 0, witness.shape
    step = max(1, _AT_ONCE // (shape.positions * max(shape.width, shape.positions)))
    for first in range(0, len(pairs), step):
        some = pairs[first : first + step]
        x_BDN = np.concatenate([inside[some[:, 0]], outside[some[:, 1]]], axis=2)
        y_BDN = run(witness.network, x_BDN, witness.prime, causal=witness.causal)
        read = y_BDN[:, witness.entry, witness.output]
        promised = witness.promise.outputs(some, x_BDN, witness.prime)
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
    if len(outputs) < witness.expected_rank:
        return None
    if extent == "all":
        return _rank(outputs, witness.prime)
    if isinstance(witness.promise, InnerProductPower):
        return _rank(witness.promise.matrix(witness.prime), witness.prime)
    return None


def _rank(matrix: Residues, prime: int) -> int:
    field = PrimeField(prime=prime, arrays=Arrays())
    return modular_rank(field, field.reduced(field.arrays.array(matrix)))


def _pairs(rows: int, columns: int, witness: Witness) -> tuple[Residues, Extent]:
    """All pairs of samples, or as many random ones as the time allows."""
    affordable = MOST_MULTIPLICATIONS // witness.shape.multiplications
    if rows * columns <= affordable:
        grid = np.indices((rows, columns)).reshape(2, -1).T
        return grid, "all"
    chosen = np.random.default_rng(_SEED).choice(rows * columns, affordable, replace=False)
    return np.stack(np.divmod(chosen, columns), axis=1), "sample"
