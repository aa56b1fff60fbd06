"""The base witness over a small vocabulary: sequences spell their vectors by repeating tokens.

The vectors are integer points of equal norm. Token 1 + c adds 1 to coordinate c of the row
halves, token 1 + d + c to the column halves, token 0 is the filler: layer 1 adds up all positions,
so a sequence stands for the sum of its tokens.

Source: Wies et al. 2021, lemmas 7 and 8, with their indices corrected.
"""

from dataclasses import dataclass

from archfit.exact.witness_base import base_network, base_promise, base_template, check_halves, half
from archfit.exact.witness_embedded import check_vocab
from archfit.exact.witness_inputs import Tokens
from archfit.exact.witness_network import Matrix, NetworkShape, Vector
from archfit.exact.witness_parts import Witness, check_fits
from archfit.theory.continuous import doubled_degree
from archfit.theory.vocabulary import (
    Sphere,
    long_sequence_lower_bound,
    positions_needed,
    smallest_full_rank_sphere,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LongVocabulary:
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
            raise ValueError(
                f"positions={shape.positions} cannot spell every vector; use positions={needed} "
                "or more"
            )
        check_vocab(self.vocab, 2 * d + 1)


def spelled_columns(shape: NetworkShape, embedding_rank: int) -> int:
    """d = floor((r - 1 - H) / 2), refused where it is zero or more than the halves hold."""
    check_halves(shape)
    d = (embedding_rank - 1 - shape.heads) // 2
    check_fits(shape, max(1, d))
    long_sequence_lower_bound(shape.depth, shape.heads, embedding_rank)
    if d > shape.heads * half(shape):
        raise ValueError(
            f"embedding_rank={embedding_rank} is over {shape.width + 1}, which fills "
            f"width={shape.width}; use {shape.width + 1} or less"
        )
    return d


def build_long_vocabulary(recipe: LongVocabulary, prime: int) -> Witness:
    """The base weights, a table of one-hot tokens, and the sequences that spell the points."""
    shape = recipe.shape
    d = spelled_columns(shape, recipe.embedding_rank)
    sphere = smallest_full_rank_sphere(d, doubled_degree(shape.depth))
    table = _table(recipe)
    return Witness(
        kind="vocabulary-long",
        shape=shape,
        prime=prime,
        network=base_network(shape, prime),
        inside=Tokens(samples=_spelled(shape, sphere, first=1), table=table),
        outside=Tokens(samples=_spelled(shape, sphere, first=1 + d), table=table),
        promise=base_promise(shape, sphere.points, prime),
        entry=0,
        expected_rank=len(sphere.points),
        expected_embedding_rank=2 * d + 1,
        bound_id="lb_vocab_long",
        bound=long_sequence_lower_bound(shape.depth, shape.heads, recipe.embedding_rank),
    )


def _table(recipe: LongVocabulary) -> Matrix:
    shape = recipe.shape
    d = spelled_columns(shape, recipe.embedding_rank)
    filler = base_template(shape, (), column=False)
    one_hots = [
        base_template(shape, tuple(int(at == c) for at in range(d)), column=column)
        for column in (False, True)
        for c in range(d)
    ]
    columns = [filler, *one_hots, *[filler] * (recipe.vocab - 2 * d - 1)]
    return tuple(zip(*columns, strict=True))


def _spelled(shape: NetworkShape, sphere: Sphere, *, first: int) -> tuple[Vector, ...]:
    """For each point E places a coordinate, of which as many hold its token as its value says."""
    E = sphere.largest_entry
    sequences = []
    for point in sphere.points:
        tokens = [first + c if u < value else 0 for c, value in enumerate(point) for u in range(E)]
        sequences.append((*tokens, *[0] * (shape.side - len(tokens))))
    return tuple(sequences)
