"""Samples of the two sides, and the matrix of outputs over their pairs: as one, or split by degree.

Samples are drawn at random or, of tokens, are all there are. Without residual connections and
positional vectors the output is a sum of parts that have degree k in S_P and C - k in S_Q,
k = 0..C. Their functions of either side are independent of each other, so the ranks of the parts
add up, and each part is far smaller than the whole. A part is obtained by evaluating at t S_P for
C + 1 values of t and solving for the coefficient of t^k.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.exact.arrays import Array
from archfit.exact.experiment import (
    MOST_LISTED,
    ContinuousInputs,
    Experiment,
    Partition,
    TokenInputs,
    fillings,
)
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
class SideSamples:
    """Samples of one side: a vector for each of its positions, (positions, width, samples)."""

    vectors: Array

    @property
    def samples(self) -> int:
        """How many samples there are."""
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
    """Samples of both sides of the partition."""

    inside: SideSamples
    outside: SideSamples
    own: Array  # the vector at the output's position, (width, samples)


def sample_sides(experiment: Experiment, field: PrimeField, *, samples: int, seed: int) -> Sides:
    """`samples` of each side; of tokens all fillings, or many where they cannot be listed."""
    draws = np.random.default_rng(seed)
    partition, inputs = experiment.partition, experiment.inputs
    places, rank = None, experiment.position_rank
    if rank:  # vectors of all positions, (width, positions), of the rank asked for
        positions = len(partition.inside) + len(partition.outside)
        table = _random(field, draws, experiment.network.width, rank)
        places = field.matmul(table, _random(field, draws, rank, positions))
    if isinstance(inputs, ContinuousInputs):
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
    experiment: Experiment, inputs: TokenInputs, field: PrimeField, draws: "np.random.Generator"
) -> tuple[Array, Array]:
    """Vectors of tokens for each side."""
    partition, width = experiment.partition, experiment.network.width
    table = field.matmul(
        _random(field, draws, width, inputs.rank), _random(field, draws, inputs.rank, inputs.vocab)
    )

    def looked_up(tokens: "TokenArray") -> Array:
        return table[:, tokens.reshape(-1)].reshape(width, *tokens.shape).swapaxes(0, 1)

    own, ordered = partition.inside.index(partition.output), experiment.has_order
    inside = _listed(inputs.vocab, len(partition.inside), draws, own, ordered)
    outside = _listed(inputs.vocab, len(partition.outside), draws, None, ordered)
    return looked_up(inside), looked_up(outside)


def _random(field: PrimeField, draws: "np.random.Generator", rows: int, columns: int) -> Array:
    return field.reduced(field.arrays.array(draws.integers(0, field.prime, (rows, columns))))


def _placed(
    field: PrimeField, vectors: Array, places: Array | None, side: tuple[int, ...]
) -> SideSamples:
    if places is None:
        return SideSamples(vectors=field.arrays.copy(vectors))
    shift = places[:, list(side)].swapaxes(0, 1)[:, :, None]
    return SideSamples(vectors=field.reduced(vectors + shift))


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
    rows, columns = sides.inside.samples, sides.outside.samples
    if evaluator.network.is_causal:
        held = max(width, partition.output + 1)  # vectors

        def outputs(tall: slice, wide: slice) -> Array:
            return _causal_outputs(evaluator, sides, partition, (tall, wide))
    else:
        held = width
        inside, outside = sides.inside.moments(field), sides.outside.moments(field)

        def outputs(tall: slice, wide: slice) -> Array:
            s = field.reduced(inside[:, tall, None] + outside[:, None, wide])
            return evaluator.unmasked(s, sides.own[:, tall, None])

    matrix = field.arrays.zeros(rows, columns)

    def fill(tile: Tile) -> None:
        matrix[tile] = outputs(*tile)

    pairs = max(1, field.arrays.tile_numbers // (width * held))
    _fill_all(field, fill, list(tiles(rows, columns, pairs)), progress)
    return matrix


def degree_matrices(
    evaluator: Evaluator, sides: Sides, sizes: tuple[int, ...], progress: Progress
) -> list[Array]:
    """The part of degree k in S_P for each k, as a square matrix of sizes[k] samples."""
    field, largest = evaluator.field, max(sizes)
    inside, outside = sides.inside.moments(field), sides.outside.moments(field)
    solve = _inverse_powers(field, len(sizes))
    scale = field.arrays.array(np.arange(1, len(sizes) + 1))
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
    _fill_all(field, fill, list(tiles(largest, largest, pairs)), progress)
    return parts


def _fill_all(
    field: PrimeField, fill: Callable[[Tile], None], all_tiles: list[Tile], progress: Progress
) -> None:
    """Fill the tiles, on as many threads as there are, and report how many pairs are done."""

    def pairs(tile: Tile) -> int:
        rows, columns = (int(side.stop - side.start) for side in tile)
        return rows * columns

    def filled(tile: Tile) -> int:
        fill(tile)
        return pairs(tile)

    done, total = 0, sum(map(pairs, all_tiles))
    for count in field.arrays.each(filled, all_tiles):
        done += count
        progress(done, total)


def tiles(rows: int, columns: int, pairs: int) -> Iterator[Tile]:
    """Rectangles of at most `pairs` pairs, wide rather than tall, that cover the matrix."""
    wide = min(columns, pairs)
    tall = max(1, pairs // wide)
    for top in range(0, rows, tall):
        for left in range(0, columns, wide):
            yield slice(top, min(top + tall, rows)), slice(left, min(left + wide, columns))


def _causal_outputs(evaluator: Evaluator, sides: Sides, partition: Partition, tile: Tile) -> Array:
    """Outputs over positions in order; those of one side are constant over the other."""
    rows, columns = tile
    inside, outside = partition.inside, partition.outside
    shape = (rows.stop - rows.start, columns.stop - columns.start)
    zeros = evaluator.field.arrays.zeros(evaluator.network.width, *shape)
    vectors = []
    for position in range(partition.output + 1):
        if position in inside:
            own = sides.inside.vectors[inside.index(position)][:, rows, None]
        else:
            own = sides.outside.vectors[outside.index(position)][:, None, columns]
        vectors.append(own + zeros)
    return evaluator.causal(vectors)


def _inverse_powers(field: PrimeField, count: int) -> Array:
    """The inverse of the matrix of t^k, t = 1..count, k = 0..count-1, modulo the prime.

    Row k has the coefficients of t^k of the polynomials that are 1 at one t and 0 at the others.
    """
    p, points = field.prime, range(1, count + 1)
    master = [1]  # product of (t - point), from the constant on
    for point in points:
        master = [
            ((master[k - 1] if k else 0) - point * (master[k] if k < len(master) else 0)) % p
            for k in range(len(master) + 1)
        ]
    columns = []
    for point in points:
        quotient = [0] * count  # master / (t - point), from the top
        carry = 0
        for k in range(count, 0, -1):
            carry = (master[k] + point * carry) % p
            quotient[k - 1] = carry
        at_point = 0
        for coefficient in reversed(quotient):
            at_point = (at_point * point + coefficient) % p
        scale = pow(at_point, -1, p)
        columns.append([coefficient * scale % p for coefficient in quotient])
    return field.reduced(field.arrays.array(np.array(columns, np.float64).T))
