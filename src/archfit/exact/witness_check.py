"""A witness put to the test: the network run, its outputs compared, the rank measured."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from archfit.exact.residues import rank
from archfit.exact.witness_inputs import embedding_rank
from archfit.exact.witness_network import run
from archfit.exact.witness_parts import MOST_MULTIPLICATIONS, Witness
from archfit.exact.witness_promise import InnerProductPower
from archfit.theory.catalogue import Json, as_json_value

if TYPE_CHECKING:
    from archfit.exact.residues import Residues

_AT_ONCE = 10**6  # numbers of the largest array, of 8 bytes each
_SEED = 7

Extent: TypeAlias = Literal["all", "sample"]


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

    def as_json(self) -> dict[str, Json]:
        """The check as `archfit witness --json` prints it."""
        witness = self.witness
        return {
            "kind": witness.kind,
            "expected_rank": as_json_value(witness.expected_rank),
            "measured_rank": self.measured_rank,
            "bound": {"id": witness.bound_id, "value": as_json_value(witness.bound)},
            "verified": self.verified,
            "formula": witness.promise.formula,
            "size": list(self.size),
            "entries_checked": self.entries_checked,
            "entries_wrong": self.entries_wrong,
            "extent": self.extent,
            "embedding_rank": self.measured_embedding_rank,
            "prime": witness.prime,
        }


def check_witness(witness: Witness) -> WitnessCheck:
    """Run the network at every pair of samples, or at a seeded sample of pairs if that is too long.

    An entry counts as right if all coordinates of the output at all positions are. The rank is
    that of the outputs themselves; where only a sample was run, that of the promised values.
    """
    import numpy as np

    inside = witness.inside.embedded(witness.prime)
    outside = witness.outside.embedded(witness.prime)
    pairs, extent = _pairs(len(inside), len(outside), witness)
    outputs = np.zeros((len(inside), len(outside)), dtype=np.int64)
    wrong = 0
    for some in _chunks(pairs, witness):
        x_BDN = np.concatenate([inside[some[:, 0]], outside[some[:, 1]]], axis=2)
        y_BDN = run(witness.network, x_BDN, witness.prime)
        promised_BDN = witness.promise.outputs(some, x_BDN, witness.prime)
        wrong += int((y_BDN != promised_BDN).any(axis=(1, 2)).sum())
        outputs[some[:, 0], some[:, 1]] = y_BDN[:, witness.entry, 0]
    return WitnessCheck(
        witness=witness,
        size=(len(inside), len(outside)),
        entries_checked=len(pairs),
        entries_wrong=wrong,
        extent=extent,
        measured_rank=_measured_rank(witness, outputs, extent),
        measured_embedding_rank=embedding_rank(witness.inside, witness.prime),
    )


def _measured_rank(witness: Witness, outputs: "Residues", extent: Extent) -> int | None:
    if len(outputs) < witness.expected_rank:
        return None
    if extent == "all":
        return rank(outputs, witness.prime)
    if isinstance(witness.promise, InnerProductPower):
        return rank(witness.promise.matrix(witness.prime), witness.prime)
    return None


def _pairs(rows: int, columns: int, witness: Witness) -> tuple["Residues", Extent]:
    """All pairs of samples, or as many random ones as the time allows."""
    import numpy as np

    affordable = MOST_MULTIPLICATIONS // witness.shape.multiplications
    if rows * columns <= affordable:
        grid = np.indices((rows, columns)).reshape(2, -1).T
        return grid, "all"
    chosen = np.random.default_rng(_SEED).choice(rows * columns, affordable, replace=False)
    return np.stack(np.divmod(chosen, columns), axis=1), "sample"


def _chunks(pairs: "Residues", witness: Witness) -> Iterator["Residues"]:
    """The pairs, as many at a time as memory holds comfortably."""
    shape = witness.shape
    step = max(1, _AT_ONCE // (shape.positions * max(shape.width, shape.positions)))
    for first in range(0, len(pairs), step):
        yield pairs[first : first + step]
