"""Samples of the two sides, drawn at random or, of tokens, all there are."""

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.exact.arrays import Array
from archfit.exact.evaluate import dot
from archfit.exact.experiment import Experiment
from archfit.exact.inputs import MOST_LISTED, Continuous, Vocabulary, fillings
from archfit.exact.network import upper_triangle
from archfit.exact.prime_field import PrimeField

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tokens = NDArray[np.int64]


FEW_POSITIONS = 32  # whose products are held at once


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """Samples of one side: a vector for each of its positions, (positions, width, samples)."""

    vectors: Array

    @property
    def samples(self) -> int:
        """How many."""
        return int(self.vectors.shape[2])

    def moments(self, field: PrimeField) -> Array:
        """The upper triangle of X X^T, (entries, samples)."""
        rows, columns = upper_triangle(int(self.vectors.shape[1]))
        total, step = None, min(FEW_POSITIONS, field.longest_sum)
        for first in range(0, int(self.vectors.shape[0]), step):
            some = self.vectors[first : first + step].swapaxes(0, 1)  # (width, positions, samples)
            part = dot(field, some[rows], some[columns])
            total = part if total is None else field.reduced(total + part)
        return total


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """Samples of both sides."""

    inside: Side
    outside: Side
    own: Array  # the vector at the output's position, (width, samples)


def sample_sides(experiment: Experiment, field: PrimeField, *, samples: int, seed: int) -> Sides:
    """`samples` of each side; of tokens all fillings, or many where they cannot be listed."""
    import numpy as np

    draws = np.random.default_rng(seed)
    partition, inputs = experiment.partition, experiment.inputs
    places = _positional(experiment, field, draws)
    if isinstance(inputs, Continuous):
        inside, outside = _vectors(experiment, field, samples, draws)
    else:
        inside, outside = _token_vectors(experiment, inputs, field, draws)
    own_side = _placed(field, inside, places, partition.inside)
    return Sides(
        inside=own_side,
        outside=_placed(field, outside, places, partition.outside),
        own=own_side.vectors[partition.inside.index(partition.output)],
    )


def _vectors(
    experiment: Experiment, field: PrimeField, samples: int, draws: "np.random.Generator"
) -> tuple[Array, Array]:
    """Vectors of the embedding's rank for each side, (positions, width, samples)."""
    width, rank = experiment.network.width, experiment.inputs.rank
    table = _random(field, draws, width, rank)

    def side(positions: int) -> Array:
        raw = _random(field, draws, rank, positions * samples)
        return field.matmul(table, raw).reshape(width, positions, samples).swapaxes(0, 1)

    partition = experiment.partition
    return side(len(partition.inside)), side(len(partition.outside))


def _token_vectors(
    experiment: Experiment, inputs: Vocabulary, field: PrimeField, draws: "np.random.Generator"
) -> tuple[Array, Array]:
    """Vectors of tokens for each side."""
    partition, width = experiment.partition, experiment.network.width
    table = field.matmul(
        _random(field, draws, width, inputs.rank), _random(field, draws, inputs.rank, inputs.vocab)
    )

    def looked_up(tokens: "Tokens") -> Array:
        return table[:, tokens.reshape(-1)].reshape(width, *tokens.shape).swapaxes(0, 1)

    own, ordered = partition.inside.index(partition.output), experiment.has_order
    inside = _listed(inputs.vocab, len(partition.inside), draws, own, ordered)
    outside = _listed(inputs.vocab, len(partition.outside), draws, None, ordered)
    return looked_up(inside), looked_up(outside)


def _random(field: PrimeField, draws: "np.random.Generator", rows: int, columns: int) -> Array:
    return field.reduced(field.arrays.array(draws.integers(0, field.prime, (rows, columns))))


def _positional(
    experiment: Experiment, field: PrimeField, draws: "np.random.Generator"
) -> Array | None:
    """The vectors of all positions, (width, positions), of the rank asked for."""
    rank, partition = experiment.position_rank, experiment.partition
    if rank == 0:
        return None
    positions = len(partition.inside) + len(partition.outside)
    return field.matmul(
        _random(field, draws, experiment.network.width, rank),
        _random(field, draws, rank, positions),
    )


def _placed(field: PrimeField, vectors: Array, places: Array | None, side: tuple[int, ...]) -> Side:
    if places is None:
        return Side(vectors=field.arrays.copy(vectors))
    shift = places[:, list(side)].swapaxes(0, 1)[:, :, None]
    return Side(vectors=field.reduced(vectors + shift))


def _listed(
    vocab: int,
    positions: int,
    draws: "np.random.Generator",
    own: int | None,
    ordered: bool,
) -> "Tokens":
    """Tokens at the positions of a side, (positions, samples): all fillings, or many at random.

    Where the order does not matter fillings that differ in it alone are one, except for the
    output's own position.
    """
    import numpy as np

    if fillings(vocab, positions, own is not None, ordered) > MOST_LISTED:
        return draws.integers(0, vocab, (positions, MOST_LISTED))
    if ordered:
        listed = list(itertools.product(range(vocab), repeat=positions))
        return np.array(listed).T.reshape(positions, -1)
    free = positions - (own is not None)
    rest = itertools.combinations_with_replacement(range(vocab), free)
    if own is None:
        return np.array(list(rest)).T.reshape(positions, -1)
    both = [(*filling[:own], token, *filling[own:]) for filling in rest for token in range(vocab)]
    return np.array(both).T.reshape(positions, -1)
