"""The base witness behind an embedding: a convolution, a large vocabulary, or a small one.

Behind an embedding of low rank only the first n' = floor((r - H) / 2) coordinates of the halves are
used, so that the templates live in few dimensions. Over a small vocabulary sequences spell their
vectors, integer points of equal norm, by repeating tokens: token 1 + c adds 1 to coordinate c of
the row halves, token 1 + d + c to the column halves, token 0 is the filler; layer 1 adds up all
positions, so a sequence stands for the sum of its tokens.

Source: Wies et al. 2021, lemmas 5 to 8, with their indices corrected.
"""

from dataclasses import dataclass

from archfit.exact.witness_network import (
    Matrix,
    NetworkShape,
    PatchSamples,
    TokenSamples,
    Vector,
    Witness,
    matrix,
    unit_rows,
)
from archfit.exact.witness_weights import (
    base_template,
    base_witness,
    check_halves,
    half,
    half_coordinate,
)
from archfit.spec.errors import InvalidValue, check_at_least
from archfit.theory.arithmetic import multiset
from archfit.theory.continuous_bounds import doubled_degree
from archfit.theory.vocabulary_bounds import (
    Sphere,
    long_sequence_lower_bound,
    positions_needed,
    smallest_full_rank_sphere,
    vocabulary_lower_bound,
    vocabulary_needed,
)

MOST_TOKENS = 20_000
MOST_PATCH_NUMBERS = 2000


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
        shape = self.shape
        vectors = _template_vectors(shape, self.embedding_rank, prime)
        active = active_coordinates(shape, self.embedding_rank)
        taps = self._taps(active)

        def samples(column: bool) -> PatchSamples:
            filler = self._patch(active, base_template(shape, (), column=column))
            patches = [
                self._patch(active, base_template(shape, vector, column=column))
                for vector in vectors
            ]
            filled = tuple(patch + filler * (shape.side - 1) for patch in patches)
            return PatchSamples(samples=filled, taps=taps)

        inputs = samples(column=False), samples(column=True)
        bound = _vocabulary_bound(shape, self.embedding_rank)
        return base_witness("convolution", shape, prime, inputs, vectors, bound, rank=len(active))

    def _taps(self, active: list[int]) -> tuple[Matrix, ...]:
        """Slot t of a patch is channel t div k of its vector t mod k, and reaches active[t]."""
        k = self.patch
        return tuple(
            matrix(
                self.shape.width,
                self.channels,
                {(at, t // k): 1 for t, at in enumerate(active) if t % k == tap},
            )
            for tap in range(k)
        )

    def _patch(self, active: list[int], template: Vector) -> tuple[Vector, ...]:
        """The raw vectors that the kernel turns into the template."""
        spare = self.patch * self.channels - len(active)
        slots = [*(template[at] for at in active), *[0] * spare]
        return tuple(tuple(slots[place :: self.patch]) for place in range(self.patch))


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
        shape = self.shape
        vectors = _template_vectors(shape, self.embedding_rank, prime)
        rows = len(vectors)
        templates = [
            base_template(shape, vector, column=column)
            for column in (False, True)
            for vector in vectors
        ]
        table = _table([*templates, base_template(shape, (), column=False)], self.vocab)
        rest = (2 * rows,) * (shape.side - 1)
        inside, outside = (
            TokenSamples(samples=tuple((first + row, *rest) for row in range(rows)), table=table)
            for first in (0, rows)
        )
        rank = 2 * len(vectors[0]) + 1  # the constants are equal rows
        bound = _vocabulary_bound(shape, self.embedding_rank)
        return base_witness(
            "vocabulary", shape, prime, (inside, outside), vectors, bound, rank=rank
        )


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
        """The base weights, a table of one-hot tokens, and the sequences that spell the points."""
        shape = self.shape
        d = spelled_columns(shape, self.embedding_rank)
        sphere = smallest_full_rank_sphere(d, doubled_degree(shape.depth))
        filler = base_template(shape, (), column=False)
        one_hots = [
            base_template(shape, tuple(int(at == c) for at in range(d)), column=column)
            for column in (False, True)
            for c in range(d)
        ]
        table = _table([filler, *one_hots, filler], self.vocab)
        inputs = (
            TokenSamples(samples=_spelled(shape, sphere, first=1), table=table),
            TokenSamples(samples=_spelled(shape, sphere, first=1 + d), table=table),
        )
        value = long_sequence_lower_bound(shape.depth, shape.heads, self.embedding_rank)
        bound = "lb_vocab_long", value
        points = sphere.points
        return base_witness("vocabulary-long", shape, prime, inputs, points, bound, rank=2 * d + 1)


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
    check_halves(shape)
    columns = (embedding_rank - shape.heads) // 2
    if columns < 1:
        rule = f"with {{heads}}={shape.heads} leaves no coordinate to the vectors"
        way_out = f"use {shape.heads + 2} or more"
        raise InvalidValue("embedding_rank", embedding_rank, rule, way_out)
    shape.check_fits(columns)
    _vocabulary_bound(shape, embedding_rank)
    return columns


def spelled_columns(shape: NetworkShape, embedding_rank: int) -> int:
    """d = floor((r - 1 - H) / 2), refused where it is zero or more than the halves hold."""
    check_halves(shape)
    d = (embedding_rank - 1 - shape.heads) // 2
    shape.check_fits(max(1, d))
    long_sequence_lower_bound(shape.depth, shape.heads, embedding_rank)
    if d > shape.heads * half(shape):
        most = shape.width + 1
        rule = f"is over {most}, which fills {{width}}={shape.width}"
        raise InvalidValue("embedding_rank", embedding_rank, rule, f"use {most} or less")
    return d


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


def _vocabulary_bound(shape: NetworkShape, embedding_rank: int) -> tuple[str, int]:
    value = vocabulary_lower_bound(shape.depth, shape.width, shape.heads, embedding_rank)
    return "lb_vocab", value


def _template_vectors(shape: NetworkShape, embedding_rank: int, prime: int) -> Matrix:
    columns = used_columns(shape, embedding_rank)
    return unit_rows(multiset(columns, doubled_degree(shape.depth)), columns, prime)


def _table(tokens: list[Vector], vocab: int) -> Matrix:
    """M_V with these vectors for its first tokens, and the last of them for all others."""
    columns = [*tokens, *[tokens[-1]] * vocab][:vocab]
    return tuple(zip(*columns, strict=True))


def _spelled(shape: NetworkShape, sphere: Sphere, *, first: int) -> tuple[Vector, ...]:
    """For each point E places a coordinate, of which as many hold its token as its value says."""
    E = sphere.largest_entry
    sequences = []
    for point in sphere.points:
        tokens = [first + c if u < value else 0 for c, value in enumerate(point) for u in range(E)]
        sequences.append((*tokens, *[0] * (shape.side - len(tokens))))
    return tuple(sequences)
