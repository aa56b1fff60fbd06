"""Samples of the two sides, and the matrix of outputs over their pairs: as one, or split by degree.

Samples are drawn at random or, of tokens, are all there are. Without residual connections and
positional vectors the output is a sum of parts that have degree k in S_P and C - k in S_Q,
k = 0..C. Their functions of either side are independent of each other, so the ranks of the parts
add up, and each part is far smaller than the whole. A part is obtained by evaluating at t S_P for
C + 1 values of t and solving for the coefficient of t^k.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.exact.arrays import Array
from archfit.exact.elimination import modular_inverse
from archfit.exact.experiment import MOST_LISTED, Experiment, Partition, TokenInputs, fillings
from archfit.exact.network import Evaluator, dot, upper_triangle
from archfit.exact.prime_field import PrimeField

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    TokenArray = NDArray[np.int64]
else:
    from archfit.spec import lazy_numpy as np

Progress = Callable[[int, int], None]  # pairs done, of how many
Tile = tuple[slice, slice]  # rows and columns of the matrix

FEW_POSITIONS = 32  # whose products are held at once


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """Samples of both sides: a vector for each position, (positions, width, samples)."""

    inside: Array
    outside: Array
    own: Array  # the vector at the output's position, (width, samples)


def moments(field: PrimeField, vectors: Array) -> Array:
    """The upper triangle of X X^T of each sample, (entries, samples)."""
    rows, columns = upper_triangle(int(vectors.shape[1]))
    total, step = None, min(FEW_POSITIONS, field.longest_sum)
    for first in range(0, int(vectors.shape[0]), step):
        some = vectors[first : first + step].swapaxes(0, 1)  # (width, positions, samples)
        part = dot(field, some[rows], some[columns])
        total = part if total is None else field.reduced(total + part)
    return total


def sample_sides(experiment: Experiment, field: PrimeField, *, samples: int, seed: int) -> Sides:
    """`samples` of each side; of tokens all fillings, or many where they cannot be listed."""
    draws = np.random.default_rng(seed)
    partition, inputs, width = experiment.partition, experiment.inputs, experiment.network.width

    def random(rows: int, columns: int) -> Array:
        return field.reduced(field.arrays.array(draws.integers(0, field.prime, (rows, columns))))

    places, rank = None, experiment.position_rank
    if rank:  # vectors of all positions, (width, positions), of the rank asked for
        table = random(width, rank)
        places = field.matmul(table, random(rank, len(partition.inside) + len(partition.outside)))
    table = random(width, inputs.rank)
    if isinstance(inputs, TokenInputs):
        table = field.matmul(table, random(inputs.rank, inputs.vocab))

    def side(positions: tuple[int, ...], own: int | None) -> Array:
        count = len(positions)
        if isinstance(inputs, TokenInputs):
            tokens = _listed(inputs.vocab, count, draws, own, experiment.has_order)
            found = table[:, tokens.reshape(-1)]
        else:
            found = field.matmul(table, random(inputs.rank, count * samples))
        vectors = found.reshape(width, count, -1).swapaxes(0, 1)
        if places is None:
            return field.arrays.copy(vectors)
        return field.reduced(vectors + places[:, list(positions)].swapaxes(0, 1)[:, :, None])

    own = partition.inside.index(partition.output)
    inside = side(partition.inside, own)
    return Sides(inside=inside, outside=side(partition.outside, None), own=inside[own])


def _listed(
    vocab: int, positions: int, draws: "np.random.Generator", own: int | None, ordered: bool
) -> "TokenArray":
    """Tokens at the positions of a side, (positions, samples): all fillings, or many at random.

    Where the order does not matter fillings that differ in it alone are one, except for the
    output's own position.
    """
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


def whole_matrix(
    evaluator: Evaluator, sides: Sides, partition: Partition, progress: Progress
) -> Array:
    """Outputs for all pairs, (inside, outside)."""
    field, width = evaluator.field, evaluator.network.width
    matrix = field.arrays.zeros(int(sides.inside.shape[2]), int(sides.outside.shape[2]))
    held = width  # vectors of a pair
    if evaluator.network.is_causal:
        held = max(width, partition.output + 1)

        def fill(tile: Tile) -> None:
            zeros = field.arrays.zeros(width, *matrix[tile].shape)
            matrix[tile] = evaluator.causal(_causal_vectors(sides, partition, tile, zeros))
    else:
        inside, outside = moments(field, sides.inside), moments(field, sides.outside)

        def fill(tile: Tile) -> None:
            rows, columns = tile
            s = field.reduced(inside[:, rows, None] + outside[:, None, columns])
            matrix[tile] = evaluator.unmasked(s, sides.own[:, rows, None])

    pairs = max(1, field.arrays.tile_numbers // (width * held))
    _fill_all(field, fill, list(tiles(*matrix.shape, pairs)), progress)
    return matrix


def degree_matrices(
    evaluator: Evaluator, sides: Sides, sizes: tuple[int, ...], progress: Progress
) -> list[Array]:
    """The part of degree k in S_P for each k, as a square matrix of sizes[k] samples."""
    field = evaluator.field
    inside, outside = moments(field, sides.inside), moments(field, sides.outside)
    values_of_t = np.arange(1, len(sizes) + 1)
    powers = np.ones((len(sizes), len(sizes)), np.int64)  # t^k
    for k in range(1, len(sizes)):
        powers[:, k] = powers[:, k - 1] * values_of_t % field.prime
    solve = modular_inverse(field, field.reduced(field.arrays.array(powers)))
    scale = field.arrays.array(values_of_t)
    parts = [field.arrays.zeros(size, size) for size in sizes]

    def fill(tile: Tile) -> None:
        rows, columns = tile
        # At t S_P + S_Q for t = 1, 2, ...: (entries, scales, inside, outside)
        scaled = field.reduced(inside[:, None, rows] * scale[None, :, None])
        s = field.reduced(scaled[..., None] + outside[:, None, None, columns])
        values = evaluator.unmasked(s, sides.own[:, None, rows, None])
        coefficients = field.matmul(solve, values.reshape(len(sizes), -1)).reshape(values.shape)
        for part, coefficient in zip(parts, coefficients, strict=True):
            tall, wide = (max(0, min(len(part), side.stop) - side.start) for side in tile)
            if tall and wide:
                part[rows.start : rows.start + tall, columns.start : columns.start + wide] = (
                    coefficient[:tall, :wide]
                )

    pairs = max(1, field.arrays.tile_numbers // (evaluator.network.width**2 * len(sizes)))
    _fill_all(field, fill, list(tiles(max(sizes), max(sizes), pairs)), progress)
    return parts


def _fill_all(
    field: PrimeField, fill: Callable[[Tile], None], all_tiles: list[Tile], progress: Progress
) -> None:
    """Fill the tiles, on as many threads as there are, and report how many pairs are done."""
    pairs = [math.prod(int(side.stop - side.start) for side in tile) for tile in all_tiles]
    filled = field.arrays.each(fill, all_tiles)
    total = sum(pairs)
    for done, _ in zip(itertools.accumulate(pairs), filled, strict=True):
        progress(done, total)


def tiles(rows: int, columns: int, pairs: int) -> Iterator[Tile]:
    """Rectangles of at most `pairs` pairs, wide rather than tall, that cover the matrix."""
    wide = min(columns, pairs)
    tall = max(1, pairs // wide)
    for top in range(0, rows, tall):
        for left in range(0, columns, wide):
            yield slice(top, min(top + tall, rows)), slice(left, min(left + wide, columns))


def _causal_vectors(sides: Sides, partition: Partition, tile: Tile, zeros: Array) -> list[Array]:
    """Vectors of the positions in order; those of one side are constant over the other."""
    rows, columns = tile
    inside = {at: sides.inside[k][:, rows, None] for k, at in enumerate(partition.inside)}
    outside = {at: sides.outside[k][:, None, columns] for k, at in enumerate(partition.outside)}
    both = inside | outside
    return [both[position] + zeros for position in range(partition.output + 1)]
