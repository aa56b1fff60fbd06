"""Weights that reach a lower bound on the separation rank, asked for, built and checked.

A rank that one choice of weights reaches, almost all weights reach, so a checked witness is a
computation that anybody can repeat in place of a proof: the network is run, its outputs are
compared with what was promised, and the rank is measured.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from archfit.exact.prime_field import WITNESS_PRIME, check_witness_prime, residue_rank
from archfit.exact.witness_network import InnerProductPower, NetworkShape, Witness, run
from archfit.exact.witness_recipes import (
    MOST_MULTIPLICATIONS,
    BaseRecipe,
    ConvolutionRecipe,
    LongVocabularyRecipe,
    MonomialRecipe,
    SimplifiedRecipe,
    VocabularyRecipe,
    WitnessRecipe,
    active_coordinates,
    spelled_columns,
    used_columns,
)
from archfit.spec.errors import check_choice
from archfit.theory.catalogue import Json, as_json_value
from archfit.theory.vocabulary_bounds import positions_needed, vocabulary_needed
from archfit.theory.witness_formula import Plan, grow_plan, monomial_witness

if TYPE_CHECKING:
    import numpy as np

    from archfit.exact.prime_field import Residues
else:
    from archfit.spec import lazy_numpy as np

Extent: TypeAlias = Literal["all", "sample"]

# Each kind, and the options that it takes besides depth, width, heads and positions.
KINDS: dict[str, tuple[str, ...]] = {
    "base": (),
    "simplified": (),
    "convolution": ("rank", "patch", "channels"),
    "vocabulary": ("rank", "vocab"),
    "vocabulary-long": ("rank", "vocab"),
    "monomial": ("plan", "entry"),
}
_POSITIONS = 4  # two a side: a template and a filler
_PATCH = 2
_PLANS_GROWN, _MANY_HEADS = 20, 8  # a plan for more heads takes long to grow
_AT_ONCE = 10**6  # numbers of the largest array, of 8 bytes each
_SEED = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class WitnessRequest:
    """The witness that is asked for; None leaves a size to its kind."""

    kind: str
    depth: int
    width: int
    heads: int
    positions: int | None = None
    rank: int | None = None
    vocab: int | None = None
    patch: int | None = None
    channels: int | None = None
    plan: Plan | None = None
    entry: int | None = None

    def __post_init__(self) -> None:
        check_choice(list(KINDS), kind=self.kind)
        for name in ("rank", "vocab", "patch", "channels", "plan", "entry"):
            if getattr(self, name) is not None and name not in KINDS[self.kind]:
                takers = " or ".join(kind for kind, options in KINDS.items() if name in options)
                raise ValueError(f"the {self.kind} kind takes no {name}; use --kind {takers}")

    def shape(self, positions: int) -> NetworkShape:
        """The network, with this length unless another was asked for."""
        return NetworkShape(
            depth=self.depth,
            width=self.width,
            heads=self.heads,
            positions=positions if self.positions is None else self.positions,
        )


def recipe_for(request: WitnessRequest) -> WitnessRecipe:
    """The recipe of what is asked for, the smallest that its kind allows where nothing was said."""
    given = {name: value for name, value in asdict(request).items() if value is not None}
    shape = request.shape(_POSITIONS)
    rank = given.get("rank", request.width + (request.kind == "vocabulary-long"))
    match request.kind:
        case "base":
            return BaseRecipe(shape=shape)
        case "simplified":
            return SimplifiedRecipe(shape=shape)
        case "convolution":
            patch = given.get("patch", _PATCH)
            channels = -(-len(active_coordinates(shape, rank)) // max(1, patch))
            sizes = {"patch": patch, "channels": given.get("channels", channels)}
            return ConvolutionRecipe(shape=shape, embedding_rank=rank, **sizes)
        case "vocabulary":
            used_columns(shape, rank)
            needed = vocabulary_needed(shape.depth, shape.width, shape.heads, rank)
            vocab = given.get("vocab", needed)
            return VocabularyRecipe(shape=shape, embedding_rank=rank, vocab=vocab)
        case "vocabulary-long":
            vocab = given.get("vocab", 2 * spelled_columns(shape, rank) + 1)
            shape = request.shape(positions_needed(request.depth, request.heads, rank))
            return LongVocabularyRecipe(shape=shape, embedding_rank=rank, vocab=vocab)
    return _monomial(request)


def _monomial(request: WitnessRequest) -> MonomialRecipe:
    """With the plan that was given, or the best of a few that are grown."""
    shape = request.shape(2 * request.heads)
    shape.check_run()
    plan, entry = request.plan, 0
    if plan is None:
        tries = _PLANS_GROWN if shape.heads <= _MANY_HEADS else 1
        sizes = (shape.depth, shape.width, shape.heads)
        plans = (grow_plan(shape.depth, shape.heads, seed=seed) for seed in range(tries))
        plan, entry = max(plans, key=lambda found: monomial_witness(*sizes, *found))
    entry = entry if request.entry is None else request.entry
    return MonomialRecipe(shape=shape, plan=plan, entry=entry)


def build_witness(recipe: WitnessRecipe, *, prime: int = WITNESS_PRIME) -> Witness:
    """The weights and inputs of the recipe, modulo the prime."""
    check_witness_prime(prime)
    return recipe.build(prime)


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
    inside, outside, embedding = witness.inside, witness.outside, witness.embedding
    embedding_rank = None if embedding is None else residue_rank(embedding, witness.prime)
    pairs, extent = _pairs(len(inside), len(outside), witness)
    outputs = np.zeros((len(inside), len(outside)), dtype=np.int64)
    wrong, shape = 0, witness.shape
    step = max(1, _AT_ONCE // (shape.positions * max(shape.width, shape.positions)))
    for first in range(0, len(pairs), step):
        some = pairs[first : first + step]
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
        measured_embedding_rank=embedding_rank,
    )


def _measured_rank(witness: Witness, outputs: "Residues", extent: Extent) -> int | None:
    if len(outputs) < witness.expected_rank:
        return None
    if extent == "all":
        return residue_rank(outputs, witness.prime)
    if isinstance(witness.promise, InnerProductPower):
        return residue_rank(witness.promise.matrix(witness.prime), witness.prime)
    return None


def _pairs(rows: int, columns: int, witness: Witness) -> tuple["Residues", Extent]:
    """All pairs of samples, or as many random ones as the time allows."""
    affordable = MOST_MULTIPLICATIONS // witness.shape.multiplications
    if rows * columns <= affordable:
        grid = np.indices((rows, columns)).reshape(2, -1).T
        return grid, "all"
    chosen = np.random.default_rng(_SEED).choice(rows * columns, affordable, replace=False)
    return np.stack(np.divmod(chosen, columns), axis=1), "sample"
