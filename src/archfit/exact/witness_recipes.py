"""Recipes of witnesses: what fixes each, and the weights, inputs and promise that it makes.

A base or simplified witness makes a power of the inner product of two vectors, one a side. Behind
an embedding of low rank, a convolution or a table of tokens, only the first n' = floor((r - H) / 2)
coordinates of the halves are used, so that the templates live in few dimensions. Over a small
vocabulary sequences spell their vectors, integer points of equal norm, by repeating tokens: token
1 + c adds 1 to coordinate c of the row halves, token 1 + d + c to the column halves, token 0 is the
filler; layer 1 adds up all positions, so a sequence stands for the sum of its tokens.

Source: Wies et al. 2021, lemmas 5 to 8, with their indices corrected; `witness_network` has those
of the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from archfit.exact.prime_field import residue_product, root_of_minus_one
from archfit.exact.witness_network import (
    MOST_ROWS,
    MomentMonomial,
    NetworkShape,
    Witness,
    base_network,
    filler,
    monomial_network,
    promised_power,
    simplified_network,
    templates,
    unit_rows,
)
from archfit.spec.errors import InvalidValue, check_at_least
from archfit.theory.arithmetic import multiset
from archfit.theory.continuous_bounds import doubled_degree, lower_bound, strong_lower_bound
from archfit.theory.vocabulary_bounds import (
    long_sequence_lower_bound,
    positions_needed,
    smallest_full_rank_sphere,
    vocabulary_lower_bound,
    vocabulary_needed,
)
from archfit.theory.witness_formula import Plan, check_plan, final_exponents, monomial_witness

if TYPE_CHECKING:
    import numpy as np

    from archfit.exact.prime_field import Residues
else:
    from archfit.spec import lazy_numpy as np

MOST_MULTIPLICATIONS = 3 * 10**9  # of all runs: 10 to 25 s
MOST_TOKENS = 20_000
MOST_PATCH_NUMBERS = 2000
SURPLUS = 6  # samples beyond the promised rank, so that a larger one would show
FEW_SAMPLES = 30  # where the rank is too large to be measured, and only values are compared


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseRecipe:
    """The base witness of one network; it reaches `lb`."""

    shape: NetworkShape

    def __post_init__(self) -> None:
        self.shape.check_halves()
        self.shape.check_fits(self.shape.heads * self.shape.half)

    def build(self, prime: int) -> Witness:
        """The weights, and one template a row and column."""
        shape = self.shape
        vectors = _unit_vectors(shape, shape.heads * shape.half, prime)
        inputs = [_side(shape, chosen) for chosen in _both_halves(shape, vectors)]
        bound = lower_bound(shape.depth, shape.width, shape.heads)
        return _witness("base", shape, prime, vectors, inputs, bound_id="lb", bound=bound)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvolutionRecipe:
    """The witness behind a kernel over patches of `patch` vectors with `channels` numbers each."""

    shape: NetworkShape
    embedding_rank: int
    patch: int
    channels: int

    def __post_init__(self) -> None:
        check_at_least(1, patch=self.patch, channels=self.channels)
        needed = len(active_coordinates(self.shape, self.embedding_rank))
        held = self.patch * self.channels
        rule = f"with {{channels}}={self.channels} holds {held} numbers, "
        if held < needed:
            rule += f"and an embedding of rank {needed} needs as many"
            way_out = f"use {{channels}}={-(-needed // self.patch)}"
            raise InvalidValue("patch", self.patch, rule, way_out)
        if held > MOST_PATCH_NUMBERS:
            rule += f"over the {MOST_PATCH_NUMBERS} of a patch here"
            raise InvalidValue("patch", self.patch, rule, f"{needed} are enough")

    def build(self, prime: int) -> Witness:
        """The base weights, and the kernel that spreads each patch over the active coordinates."""
        shape, active = self.shape, active_coordinates(self.shape, self.embedding_rank)
        vectors = _unit_vectors(shape, used_columns(shape, self.embedding_rank), prime)
        kernel = np.zeros((shape.width, self.patch * self.channels), np.int64)
        kernel[active, range(len(active))] = 1

        def embedded(x_BDN: "Residues") -> "Residues":
            """The same samples, from the numbers of the patches that the kernel makes them of."""
            patches = np.zeros((len(x_BDN), kernel.shape[1], shape.side), np.int64)
            patches[:, : len(active)] = x_BDN[:, active]
            return residue_product(kernel, patches, prime)

        inputs = [embedded(_side(shape, chosen)) for chosen in _both_halves(shape, vectors)]
        more = _embedding(shape, self.embedding_rank, kernel, rank=len(active))
        return _witness("convolution", shape, prime, vectors, inputs, **more)


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyRecipe:
    """The witness over a vocabulary that has a token for each template."""

    shape: NetworkShape
    embedding_rank: int
    vocab: int

    def __post_init__(self) -> None:
        used_columns(self.shape, self.embedding_rank)
        shape = self.shape
        needed = vocabulary_needed(shape.depth, shape.width, shape.heads, self.embedding_rank)
        _check_vocab(self.vocab, needed)

    def build(self, prime: int) -> Witness:
        """The base weights, and a table of row templates, column templates and the filler."""
        shape, columns = self.shape, used_columns(self.shape, self.embedding_rank)
        vectors = _unit_vectors(shape, columns, prime)
        table = np.repeat(filler(shape), self.vocab, axis=1)
        table[:, : 2 * len(vectors)] = np.concatenate(_both_halves(shape, vectors)).T
        tokens = np.full((2 * len(vectors), shape.side), 2 * len(vectors))
        tokens[:, 0] = range(len(tokens))
        inputs = np.split(_looked_up(table, tokens), 2)
        # The constants are equal rows of the table.
        more = _embedding(shape, self.embedding_rank, table, rank=2 * columns + 1)
        return _witness("vocabulary", shape, prime, vectors, inputs, **more)


@dataclass(frozen=True, kw_only=True, slots=True)
class LongVocabularyRecipe:
    """The witness over 2 d + 1 tokens, d = floor((r - 1 - H) / 2).

    `embedding_rank` is the papers' r, which counts the H equal constants; the table has rank
    2 d + 1 only, so r may exceed the width by one.
    """

    shape: NetworkShape
    embedding_rank: int
    vocab: int

    def __post_init__(self) -> None:
        shape = self.shape
        d = spelled_columns(shape, self.embedding_rank)
        needed = positions_needed(shape.depth, shape.heads, self.embedding_rank)
        if shape.positions < needed:
            way_out = f"use {{positions}}={needed} or more"
            raise InvalidValue("positions", shape.positions, "cannot spell every vector", way_out)
        _check_vocab(self.vocab, 2 * d + 1)

    def build(self, prime: int) -> Witness:
        """The base weights, a table of one-hot tokens, and the sequences that spell the points.

        A point takes E places a coordinate, of which as many hold its token as its value says.
        """
        shape, d = self.shape, spelled_columns(self.shape, self.embedding_rank)
        sphere = smallest_full_rank_sphere(d, doubled_degree(shape.depth))
        points, E = np.array(sphere.points), sphere.largest_entry
        table = np.repeat(filler(shape), self.vocab, axis=1)
        one_hots = _both_halves(shape, np.eye(d, dtype=np.int64))
        table[:, 1 : 1 + 2 * d] = np.concatenate(one_hots).T
        places = np.arange(E) < points[:, :, None]

        def spelled(first: int) -> "Residues":
            tokens = np.zeros((len(points), shape.side), np.int64)
            own = places * np.arange(first, first + d)[:, None]
            tokens[:, : d * E] = own.reshape(len(points), -1)
            return _looked_up(table, tokens)

        inputs = [spelled(1), spelled(1 + d)]
        more = {
            "embedding": table,
            "expected_embedding_rank": 2 * d + 1,
            "bound_id": "lb_vocab_long",
        }
        bound = long_sequence_lower_bound(shape.depth, shape.heads, self.embedding_rank)
        return _witness("vocabulary-long", shape, prime, points, inputs, bound=bound, **more)


@dataclass(frozen=True, kw_only=True, slots=True)
class SimplifiedRecipe:
    """The simplified witness of one network; it reaches `lb_strong`."""

    shape: NetworkShape

    def __post_init__(self) -> None:
        shape = self.shape
        doubled_degree(shape.depth)
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
        vectors = _unit_vectors(shape, shape.width - shape.heads, prime)
        free = shape.places(0, shape.head_dim - 1)
        inputs = [
            _side(shape, templates(shape, factor * vectors % prime, free)) for factor in (1, J)
        ]
        bound = strong_lower_bound(shape.depth, shape.width, shape.heads)
        return _witness(
            "simplified", shape, prime, vectors, inputs, bound_id="lb_strong", bound=bound
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
        size = (wanted if fits else FEW_SAMPLES, shape.width, shape.side)
        inside, outside = (np.random.default_rng(seed).integers(0, prime, size) for seed in (1, 2))
        return Witness(
            kind="monomial",
            shape=shape,
            prime=prime,
            network=monomial_network(shape, self.plan),
            inside=inside,
            outside=outside,
            promise=MomentMonomial(
                formula="x_h prod S_ab^E_ab, S = X X^T",
                exponents=tuple(tuple(final_exponents(*sizes, h)) for h in range(shape.heads)),
            ),
            entry=self.entry,
            expected_rank=expected,
            bound_id="monomial_witness",
            bound=expected,
        )


WitnessRecipe: TypeAlias = (
    BaseRecipe
    | SimplifiedRecipe
    | ConvolutionRecipe
    | VocabularyRecipe
    | LongVocabularyRecipe
    | MonomialRecipe
)


def _check_vocab(vocab: int, needed: int) -> None:
    """Refuse a vocabulary without enough tokens, or with so many copies that they fill memory."""
    if not needed <= vocab <= MOST_TOKENS:
        rule = (
            f"is not in {needed}..{MOST_TOKENS}: this witness uses {needed} tokens and the others "
            "change nothing"
        )
        raise InvalidValue("vocab", vocab, rule, f"use {{vocab}}={needed}")


def used_columns(shape: NetworkShape, embedding_rank: int) -> int:
    """n' = floor((r - H) / 2), refused where nothing is left of it."""
    shape.check_halves()
    columns = (embedding_rank - shape.heads) // 2
    if columns < 1:
        rule = f"with {{heads}}={shape.heads} leaves no coordinate to the vectors"
        way_out = f"use {shape.heads + 2} or more"
        raise InvalidValue("embedding_rank", embedding_rank, rule, way_out)
    shape.check_fits(columns)
    vocabulary_lower_bound(shape.depth, shape.width, shape.heads, embedding_rank)
    return columns


def spelled_columns(shape: NetworkShape, embedding_rank: int) -> int:
    """d = floor((r - 1 - H) / 2), refused where it is zero or more than the halves hold."""
    shape.check_halves()
    d = (embedding_rank - 1 - shape.heads) // 2
    shape.check_fits(max(1, d))
    long_sequence_lower_bound(shape.depth, shape.heads, embedding_rank)
    if d > shape.heads * shape.half:
        most = shape.width + 1
        rule = f"is over {most}, which fills {{width}}={shape.width}"
        raise InvalidValue("embedding_rank", embedding_rank, rule, f"use {most} or less")
    return d


def active_coordinates(shape: NetworkShape, embedding_rank: int) -> list[int]:
    """The coordinates that templates use, in order: the constants and n' of either half."""
    columns, hd = used_columns(shape, embedding_rank), shape.half
    constants = shape.places(2 * hd, shape.head_dim)
    return sorted([*constants, *shape.places(0, hd)[:columns], *shape.places(hd, 2 * hd)[:columns]])


def _unit_vectors(shape: NetworkShape, dimension: int, prime: int) -> "Residues":
    """As many as there are forms of degree 3^(L-2) in so many variables: the expected rank."""
    return unit_rows(multiset(dimension, doubled_degree(shape.depth)), dimension, prime)


def _both_halves(shape: NetworkShape, vectors: "Residues") -> list["Residues"]:
    """The templates with these vectors in the row halves, and those in the column halves."""
    hd = shape.half
    return [templates(shape, vectors, shape.places(at, at + hd)) for at in (0, hd)]


def _side(shape: NetworkShape, chosen: "Residues") -> "Residues":
    """Samples (B, D, N): one of the chosen vectors first, the filler at all other positions."""
    samples = np.tile(filler(shape), (len(chosen), 1, shape.side))
    samples[:, :, 0] = chosen
    return samples


def _looked_up(table: "Residues", tokens: "Residues") -> "Residues":
    return table[:, tokens].transpose(1, 0, 2)


def _embedding(
    shape: NetworkShape, embedding_rank: int, embedding: "Residues", *, rank: int
) -> dict[str, Any]:
    """What a witness behind this embedding, of the papers' rank r, has more than the base one."""
    bound = vocabulary_lower_bound(shape.depth, shape.width, shape.heads, embedding_rank)
    ranks = {"embedding": embedding, "expected_embedding_rank": rank}
    return {"bound_id": "lb_vocab", "bound": bound} | ranks


def _witness(
    kind: str,
    shape: NetworkShape,
    prime: int,
    vectors: "Residues",
    inputs: Sequence["Residues"],
    **more: Any,
) -> Witness:
    """The simplified or the base weights with these inputs, inside and outside."""
    (inside, outside), has_halves = inputs, kind != "simplified"
    return Witness(
        kind=kind,
        shape=shape,
        prime=prime,
        network=(base_network if has_halves else simplified_network)(shape, prime),
        inside=inside,
        outside=outside,
        promise=promised_power(shape, vectors, prime, has_halves=has_halves),
        expected_rank=len(vectors),
        **more,
    )
