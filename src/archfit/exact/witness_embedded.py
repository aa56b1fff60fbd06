"""The base witness behind an embedding of low rank: a convolution, or a large vocabulary.

Only the first n' = floor((r - H) / 2) coordinates of the halves are used, so that the templates
live in few dimensions.

Source: Wies et al. 2021, lemmas 5 and 6, with their indices corrected.
"""

from dataclasses import dataclass

from archfit.exact.witness_base import (
    base_network,
    base_promise,
    base_template,
    check_halves,
    half_coordinate,
)
from archfit.exact.witness_inputs import Patches, Tokens
from archfit.exact.witness_network import Matrix, NetworkShape, Vector, matrix
from archfit.exact.witness_parts import Witness, check_fits, unit_rows
from archfit.spec.checks import check_at_least
from archfit.theory.arithmetic import multiset
from archfit.theory.continuous import doubled_degree
from archfit.theory.vocabulary import vocabulary_lower_bound, vocabulary_needed

MOST_TOKENS = 20_000
MOST_PATCH_NUMBERS = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Convolution:
    """The witness behind a kernel over patches of `patch` vectors with `channels` numbers each."""

    shape: NetworkShape
    embedding_rank: int
    patch: int
    channels: int

    def __post_init__(self) -> None:
        check_at_least(1, patch=self.patch, channels=self.channels)
        needed = len(active_coordinates(self.shape, self.embedding_rank))
        held = self.patch * self.channels
        if held < needed:
            raise ValueError(
                f"patch={self.patch} with channels={self.channels} holds {held} numbers, and an "
                f"embedding of rank {needed} needs as many; use channels="
                f"{-(-needed // self.patch)}"
            )
        if held > MOST_PATCH_NUMBERS:
            raise ValueError(
                f"patch={self.patch} with channels={self.channels} holds {held} numbers, over the "
                f"{MOST_PATCH_NUMBERS} of a patch here; {needed} are enough"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """The witness over a vocabulary that has a token for each template."""

    shape: NetworkShape
    embedding_rank: int
    vocab: int

    def __post_init__(self) -> None:
        used_columns(self.shape, self.embedding_rank)
        shape = self.shape
        needed = vocabulary_needed(shape.depth, shape.width, shape.heads, self.embedding_rank)
        check_vocab(self.vocab, needed)


def check_vocab(vocab: int, needed: int) -> None:
    """Refuse a vocabulary without enough tokens, or with so many copies that they fill memory."""
    if not needed <= vocab <= MOST_TOKENS:
        raise ValueError(
            f"vocab={vocab} is not in {needed}..{MOST_TOKENS}: this witness uses {needed} tokens "
            f"and the others change nothing; use vocab={needed}"
        )


def used_columns(shape: NetworkShape, embedding_rank: int) -> int:
    """n' = floor((r - H) / 2), refused where nothing is left of it."""
    check_halves(shape)
    columns = (embedding_rank - shape.heads) // 2
    if columns < 1:
        raise ValueError(
            f"embedding_rank={embedding_rank} with heads={shape.heads} leaves no coordinate to "
            f"the vectors; use {shape.heads + 2} or more"
        )
    check_fits(shape, columns)
    vocabulary_lower_bound(shape.depth, shape.width, shape.heads, embedding_rank)
    return columns


def active_coordinates(shape: NetworkShape, embedding_rank: int) -> list[int]:
    """The coordinates that templates use, in order: the constants and n' of either half."""
    columns = used_columns(shape, embedding_rank)
    constants = [(h + 1) * shape.head_dim - 1 for h in range(shape.heads)]
    halves = [
        half_coordinate(shape, index, column=column)
        for index in range(columns)
        for column in (False, True)
    ]
    return sorted(constants + halves)


def build_convolution(recipe: Convolution, prime: int) -> Witness:
    """The base weights, and the kernel that spreads each patch over the active coordinates."""
    shape = recipe.shape
    vectors = _vectors(shape, recipe.embedding_rank, prime)
    active = active_coordinates(shape, recipe.embedding_rank)
    taps = _taps(recipe, active)

    def samples(column: bool) -> tuple[tuple[Vector, ...], ...]:
        templates = [base_template(shape, vector, column=column) for vector in vectors]
        filler = _patch(recipe, active, base_template(shape, (), column=column)) * (shape.side - 1)
        return tuple(_patch(recipe, active, template) + filler for template in templates)

    return Witness(
        kind="convolution",
        shape=shape,
        prime=prime,
        network=base_network(shape, prime),
        inside=Patches(samples=samples(column=False), taps=taps),
        outside=Patches(samples=samples(column=True), taps=taps),
        promise=base_promise(shape, vectors, prime),
        entry=0,
        expected_rank=len(vectors),
        expected_embedding_rank=len(active),
        bound_id="lb_vocab",
        bound=vocabulary_lower_bound(shape.depth, shape.width, shape.heads, recipe.embedding_rank),
    )


def build_vocabulary(recipe: Vocabulary, prime: int) -> Witness:
    """The base weights, and a table of row templates, column templates and the filler."""
    shape = recipe.shape
    vectors = _vectors(shape, recipe.embedding_rank, prime)
    rows = len(vectors)
    filler = base_template(shape, (), column=False)
    templates = [
        base_template(shape, vector, column=column)
        for column in (False, True)
        for vector in vectors
    ]
    columns = [*templates, *[filler] * (recipe.vocab - 2 * rows)]
    table = tuple(zip(*columns, strict=True))
    rest = (2 * rows,) * (shape.side - 1)
    return Witness(
        kind="vocabulary",
        shape=shape,
        prime=prime,
        network=base_network(shape, prime),
        inside=Tokens(samples=tuple((row, *rest) for row in range(rows)), table=table),
        outside=Tokens(samples=tuple((rows + row, *rest) for row in range(rows)), table=table),
        promise=base_promise(shape, vectors, prime),
        entry=0,
        expected_rank=rows,
        expected_embedding_rank=2 * len(vectors[0]) + 1,  # the constants are equal rows
        bound_id="lb_vocab",
        bound=vocabulary_lower_bound(shape.depth, shape.width, shape.heads, recipe.embedding_rank),
    )


def _vectors(shape: NetworkShape, embedding_rank: int, prime: int) -> Matrix:
    columns = used_columns(shape, embedding_rank)
    return unit_rows(multiset(columns, doubled_degree(shape.depth)), columns, prime)


def _taps(recipe: Convolution, active: list[int]) -> tuple[Matrix, ...]:
    """Slot t of a patch is channel t div k of its vector t mod k, and reaches coordinate act[t]."""
    k = recipe.patch
    return tuple(
        matrix(
            recipe.shape.width,
            recipe.channels,
            {(at, t // k): 1 for t, at in enumerate(active) if t % k == tap},
        )
        for tap in range(k)
    )


def _patch(recipe: Convolution, active: list[int], template: Vector) -> tuple[Vector, ...]:
    """The raw vectors that the kernel turns into the template."""
    spare = recipe.patch * recipe.channels - len(active)
    slots = [*(template[at] for at in active), *[0] * spare]
    return tuple(tuple(slots[place :: recipe.patch]) for place in range(recipe.patch))
