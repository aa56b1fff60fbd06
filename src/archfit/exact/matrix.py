"""The matrix of outputs over pairs of samples: as one, or split by degree.

Without residual connections and positional vectors the output is a sum of parts that have degree k
in S_P and C - k in S_Q, k = 0..C. Their functions of either side are independent of each other, so
the ranks of the parts add up, and each part is far smaller than the whole. A part is obtained by
evaluating at t S_P for C + 1 values of t and solving for the coefficient of t^k.
"""

from collections.abc import Callable
from dataclasses import dataclass

from archfit.exact.arrays import Array
from archfit.exact.evaluate import Evaluator, tiles
from archfit.exact.inputs import Partition
from archfit.exact.prime_field import PrimeField
from archfit.exact.samples import Sides

Progress = Callable[[int, int], None]  # pairs done, of how many


def whole_matrix(
    evaluator: Evaluator, sides: Sides, partition: Partition, progress: Progress
) -> Array:
    """Outputs for all pairs, (inside, outside)."""
    field = evaluator.field
    rows, columns = sides.inside.samples, sides.outside.samples
    matrix = field.arrays.zeros(rows, columns)
    run = _causal_tile if evaluator.network.is_causal else _unmasked_tile
    prepared = _Prepared(
        evaluator=evaluator,
        sides=sides,
        partition=partition,
        inside=None if evaluator.network.is_causal else sides.inside.moments(field),
        outside=None if evaluator.network.is_causal else sides.outside.moments(field),
    )

    def fill(tile: tuple[slice, slice]) -> int:
        matrix[tile] = run(prepared, *tile)
        return _pairs(tile)

    width = evaluator.network.width
    held = max(width, partition.output + 1) if evaluator.network.is_causal else width  # vectors
    pairs = max(1, field.arrays.tile_numbers // (width * held))
    done = 0
    for filled in field.arrays.each(fill, list(tiles(rows, columns, pairs))):
        done += filled
        progress(done, rows * columns)
    return matrix


def degree_matrices(
    evaluator: Evaluator, sides: Sides, sizes: tuple[int, ...], progress: Progress
) -> list[Array]:
    """The part of degree k in S_P for each k, as a square matrix of sizes[k] samples."""
    field, largest = evaluator.field, max(sizes)
    inside, outside = sides.inside.moments(field), sides.outside.moments(field)
    solve = _inverse_powers(field, len(sizes))
    parts = [field.arrays.zeros(size, size) for size in sizes]
    pairs = max(1, field.arrays.tile_numbers // (evaluator.network.width**2 * len(sizes)))

    def fill(tile: tuple[slice, slice]) -> int:
        rows, columns = tile
        values = _at_every_scale(
            evaluator, inside[:, rows], outside[:, columns], sides.own[:, rows], len(sizes)
        )
        coefficients = field.matmul(solve, values.reshape(len(sizes), -1)).reshape(values.shape)
        for part, coefficient in zip(parts, coefficients, strict=True):
            tall, wide = (max(0, min(len(part), side.stop) - side.start) for side in tile)
            if tall and wide:
                part[rows.start : rows.start + tall, columns.start : columns.start + wide] = (
                    coefficient[:tall, :wide]
                )
        return _pairs(tile)

    done = 0
    for filled in field.arrays.each(fill, list(tiles(largest, largest, pairs))):
        done += filled
        progress(done, largest**2)
    return parts


@dataclass(frozen=True, kw_only=True, slots=True)
class _Prepared:
    evaluator: Evaluator
    sides: Sides
    partition: Partition
    inside: Array | None
    outside: Array | None


def _unmasked_tile(ready: _Prepared, rows: slice, columns: slice) -> Array:
    assert ready.inside is not None
    assert ready.outside is not None
    s = ready.inside[:, rows, None] + ready.outside[:, None, columns]
    field = ready.evaluator.field
    return ready.evaluator.unmasked(field.reduced(s), ready.sides.own[:, rows, None])


def _causal_tile(ready: _Prepared, rows: slice, columns: slice) -> Array:
    """Positions in their order, up to the output's; those of one side are constant over the
    other."""
    inside, outside = ready.partition.inside, ready.partition.outside
    tall, wide = rows.stop - rows.start, columns.stop - columns.start
    width, zeros = ready.evaluator.network.width, ready.evaluator.field.arrays.zeros
    vectors = []
    for position in range(ready.partition.output + 1):
        if position in inside:
            own = ready.sides.inside.vectors[inside.index(position)][:, rows, None]
        else:
            own = ready.sides.outside.vectors[outside.index(position)][:, None, columns]
        vectors.append(own + zeros(width, tall, wide))
    return ready.evaluator.causal(vectors)


def _at_every_scale(
    evaluator: Evaluator, inside: Array, outside: Array, own: Array, scales: int
) -> Array:
    """Outputs at t S_P + S_Q for t = 1..scales, (scales, inside, outside)."""
    field = evaluator.field
    scale = field.arrays.array(_numbers(1, scales))
    scaled = field.reduced(inside[:, None] * scale[None, :, None])  # (entries, scales, inside)
    s = field.reduced(scaled[..., None] + outside[:, None, None])
    return evaluator.unmasked(s, own[:, None, :, None])


def _inverse_powers(field: PrimeField, count: int) -> Array:
    """The inverse of the matrix of t^k, t = 1..count, k = 0..count-1, modulo the prime.

    Row k has the coefficients of t^k of the polynomials that are 1 at one t and 0 at the others.
    """
    import numpy as np

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


def _pairs(tile: tuple[slice, slice]) -> int:
    rows, columns = (int(side.stop - side.start) for side in tile)
    return rows * columns


def _numbers(first: int, last: int) -> Array:
    import numpy as np

    return np.arange(first, last + 1)
