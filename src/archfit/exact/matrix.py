"""The analysed network with random weights modulo a prime, and its outputs on pairs of samples.

A layer maps Y to (Y +) sum_h A_h Y Y^T B_h Y with A = W^O W^V and B = (W^K)^T W^Q. The sum is
linear in the symmetric G = Y Y^T: its entries (row by row) are a constant matrix, the `mix` of the
layer, times the upper triangle of G, whatever the number of heads.

Without a mask the inputs enter only through S = S_P + S_Q and the vector x at the output's own
position: with F_0 = I and F_(l+1) = (F_l +) mix(F_l S F_l^T) F_l the output is a row of F_L times
x. So a pair costs the same for any number of positions and heads. Under a causal mask each
position has an S of its own, the sum over the positions up to it, and all are kept.

Shapes: matrices stand in front, samples behind: (rows, columns, P side, Q side).

Samples are drawn at random or, of tokens, are all there are. Without residual connections and
positional vectors the output is a sum of parts of degree 2k + 1 inside and 2 (C - k) outside,
k = 0..C, with a mask and without. Their functions of either side are independent of each other, so
the ranks of the parts add up, and each part is far smaller than the whole. A part is obtained by
multiplying the vectors outside by C + 1 values of t and solving for the coefficient of t^(2(C-k)).
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from archfit.exact.elimination import modular_inverse
from archfit.exact.experiment import MOST_LISTED, Experiment, fillings
from archfit.exact.prime_field import Array, PrimeField, Residues
from archfit.spec import lazy_numpy as np

Progress = Callable[[str, int, int], None]  # what is done, how many of it, of how many
Tile = tuple[slice, slice]  # rows and columns of the matrix

FEW_POSITIONS = 32  # whose products are held at once


def random_mixes(network: Experiment, field: PrimeField, seed: int) -> list[Array]:
    """For each layer the (width^2 x width(width+1)/2) matrix that stands for its heads."""
    draws = np.random.default_rng(seed)
    return [_mix(network, field, draws) for _ in range(network.depth)]


def _mix(network: Experiment, field: PrimeField, draws: "np.random.Generator") -> Array:
    width = network.width
    shape = (network.heads, network.head_dim, width)
    keys, queries, values = (draws.integers(0, field.prime, shape) for _ in range(3))
    outputs = draws.integers(0, field.prime, (network.heads, width, network.head_dim))
    k, q, v, o = (field.reduced(field.arrays.array(w)) for w in (keys, queries, values, outputs))
    a, b = field.matmul(o, v), field.matmul(k.swapaxes(1, 2), q)
    # (A G B)[i, j] = sum_{s,t} A[i, s] B[t, j] G[s, t]: all heads in one product
    flat = (network.heads, width * width)
    outer = field.matmul(a.reshape(flat).swapaxes(0, 1), b.reshape(flat))  # (i s), (t j)
    full = field.arrays.numpy(outer).reshape(width, width, width, width).transpose(0, 3, 1, 2)
    rows, columns = np.triu_indices(width)
    both = full[:, :, rows, columns] + full[:, :, columns, rows]
    both[:, :, rows == columns] /= 2  # counted twice
    return field.reduced(field.arrays.array(both.reshape(width * width, len(rows))))


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluator:
    """A network with its weights, ready to be run on pairs."""

    experiment: Experiment
    field: PrimeField
    mixes: list[Array]

    def unmasked(self, s: Array, x: Array) -> Array:
        """Outputs for moments `s` (entries of the upper triangle first) and own vectors `x`."""
        field, network, width = self.field, self.experiment, self.experiment.width
        rows, columns = np.triu_indices(width)
        order = np.empty((width, width), np.int64)
        order[rows, columns] = order[columns, rows] = range(len(rows))
        square = s[order]  # the symmetric matrix
        one = field.arrays.array(np.eye(width)).reshape(width, width, *[1] * (s.ndim - 1))
        moments, f = s, None  # F_0 = I
        for layer in range(network.depth - 1):
            mixed = self._mixed(layer, moments, width)
            grown = mixed if f is None else product(field, mixed, f)  # the first layer is linear
            if network.residual:
                grown = field.reduced(grown + (one if f is None else f))
            f = grown
            moments = dot(field, product(field, f, square)[rows], f[columns])  # of F S F^T
        own = x[:, None] if f is None else product(field, f, x[:, None])
        output = product(field, self._mixed(network.depth - 1, moments, 1), own)[0, 0]
        return field.reduced(output + own[0, 0]) if network.residual else output

    def causal(self, columns: list[Array]) -> Array:
        """Outputs at the last of the positions whose vectors are given."""
        field, width = self.field, self.experiment.width
        for layer in range(self.experiment.depth):
            is_last = layer == self.experiment.depth - 1
            sums, new = None, []
            for place, y in enumerate(columns):
                outer = product(field, y[:, None], y[None])[np.triu_indices(width)]
                sums = outer if sums is None else field.reduced(sums + outer)
                if is_last and place < len(columns) - 1:
                    continue
                rows = 1 if is_last else width
                mixed = product(field, self._mixed(layer, sums, rows), y[:, None])[:, 0]
                if self.experiment.residual:
                    mixed = field.reduced(mixed + y[:rows])
                new.append(mixed)
            columns = new
        return columns[-1][0]

    def _mixed(self, layer: int, moments: Array, rows: int) -> Array:
        """The first rows of sum_h A_h G B_h of a layer."""
        width, shape = self.experiment.width, tuple(moments.shape[1:])
        mix = self.mixes[layer][: rows * width]
        result = self.field.matmul(mix, moments.reshape(moments.shape[0], -1))
        return result.reshape(rows, width, *shape)


def product(field: PrimeField, left: Array, right: Array) -> Array:
    """The product of small matrices (i, k, ...) and (k, j, ...) for all pairs behind them."""
    return dot(field, left[:, :, None], right[None])


def dot(field: PrimeField, left: Array, right: Array) -> Array:
    """Sums over the second axis of left * right, for all pairs behind."""
    sums = []
    for limb in field.limbs(left):
        total = limb[:, 0] * right[:, 0]
        for k in range(1, limb.shape[1]):
            total = field.arrays.add_product_(total, limb[:, k], right[:, k])
        sums.append(total)
    return field.joined(tuple(sums))


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """Samples of both sides: a vector for each position, (positions, width, samples)."""

    inside: Array
    outside: Array


def moments(field: PrimeField, vectors: Array) -> Array:
    """The upper triangle of X X^T of each sample, (entries, samples)."""
    rows, columns = np.triu_indices(int(vectors.shape[1]))
    total, step = None, min(FEW_POSITIONS, field.longest_sum)
    for first in range(0, int(vectors.shape[0]), step):
        some = vectors[first : first + step].swapaxes(0, 1)  # (width, positions, samples)
        part = dot(field, some[rows], some[columns])
        total = part if total is None else field.reduced(total + part)
    return total


def sample_sides(experiment: Experiment, field: PrimeField, *, samples: int, seed: int) -> Sides:
    """`samples` of each side; of tokens all fillings, or many where they cannot be listed."""
    draws = np.random.default_rng(seed)
    partition, vocab, width = experiment.partition, experiment.vocab, experiment.width

    def random(rows: int, columns: int) -> Array:
        return field.reduced(field.arrays.array(draws.integers(0, field.prime, (rows, columns))))

    places, rank = None, experiment.position_rank
    if rank:  # vectors of all positions, (width, positions), of the rank asked for
        table = random(width, rank)
        places = field.matmul(table, random(rank, len(partition.inside) + len(partition.outside)))
    table = random(width, experiment.rank)
    if vocab is not None:
        table = field.matmul(table, random(experiment.rank, vocab))

    def side(positions: tuple[int, ...], own: int | None) -> Array:
        count = len(positions)
        if vocab is not None:
            tokens = _listed(vocab, count, draws, own, experiment.has_order)
            found = table[:, tokens.reshape(-1)]
        else:
            found = field.matmul(table, random(experiment.rank, count * samples))
        vectors = found.reshape(width, count, -1).swapaxes(0, 1)
        if places is None:
            return field.arrays.copy(vectors)
        return field.reduced(vectors + places[:, list(positions)].swapaxes(0, 1)[:, :, None])

    inside = side(partition.inside, partition.inside.index(partition.output))
    return Sides(inside=inside, outside=side(partition.outside, None))


def _listed(
    vocab: int, positions: int, draws: "np.random.Generator", own: int | None, ordered: bool
) -> Residues:
    """Tokens at the positions of a side, (positions, samples): all fillings, or many at random.

    Where the order does not matter fillings that differ in it alone are one, except for the
    output's own position.
    """
    if fillings(vocab, positions, own is not None, ordered) > MOST_LISTED:
        return draws.integers(0, vocab, (positions, MOST_LISTED))
    is_apart, tokens = own is not None and not ordered, range(vocab)
    rest: Iterator[tuple[int, ...]] = itertools.product(tokens, repeat=positions)
    if not ordered:
        rest = itertools.combinations_with_replacement(tokens, positions - is_apart)
    if is_apart:
        rest = ((*some[:own], token, *some[own:]) for some in rest for token in tokens)
    return np.array(list(rest)).T.reshape(positions, -1)


def _outputs(evaluator: Evaluator, sides: Sides, scales: Array) -> Callable[[Tile], Array]:
    """A function that gives the outputs of a tile, (scales, inside, outside).

    Vectors outside are multiplied by each of the scales. What one side alone decides, such as a
    prefix under a mask, is not computed anew for every sample of the other.
    """
    field, partition = evaluator.field, evaluator.experiment.partition
    if evaluator.experiment.causal:
        of_inside = {at: sides.inside[k] for k, at in enumerate(partition.inside)}
        of_outside = {at: sides.outside[k] for k, at in enumerate(partition.outside)}

        def causal(tile: Tile) -> Array:
            rows, columns = tile
            both = {at: x[:, None, rows, None] for at, x in of_inside.items()}
            for at, x in of_outside.items():
                both[at] = field.reduced(x[:, None, None, columns] * scales[:, None, None])
            return evaluator.causal([both[at] for at in range(partition.output + 1)])

        return causal
    inside, outside = moments(field, sides.inside), moments(field, sides.outside)
    squares, own = field.reduced(scales * scales), partition.inside.index(partition.output)

    def unmasked(tile: Tile) -> Array:
        rows, columns = tile
        scaled = field.reduced(outside[:, None, None, columns] * squares[:, None, None])
        s = field.reduced(inside[:, None, rows, None] + scaled)
        return evaluator.unmasked(s, sides.inside[own][:, None, rows, None])

    return unmasked


def output_matrices(
    evaluator: Evaluator, sides: Sides, shapes: Sequence[tuple[int, int]], progress: Progress
) -> list[Array]:
    """The part of half degree k inside for each k, of so many samples of either side.

    Of a single shape it is the whole. Tiles are filled on as many threads as there are.
    """
    field, count = evaluator.field, len(shapes)
    scales = np.arange(1, count + 1)
    powers = np.ones((count, count), np.int64)  # t^(2w), with w = C - k
    for w in range(1, count):
        powers[:, w] = powers[:, w - 1] * (scales**2 % field.prime) % field.prime
    solve = modular_inverse(field, field.reduced(field.arrays.array(powers)))
    outputs = _outputs(evaluator, sides, field.arrays.array(scales))
    parts = [field.arrays.zeros(*shape) for shape in shapes]

    def fill(tile: Tile) -> int:
        found = outputs(tile)
        pairs: int = found[0].shape[0] * found[0].shape[1]
        if count > 1:
            found = field.matmul(solve, found.reshape(count, -1)).reshape(found.shape)
        for part, coefficients in zip(reversed(parts), found, strict=True):
            place = part[tile]  # less of it, or nothing, where the part is smaller
            place[...] = coefficients[: place.shape[0], : place.shape[1]]
        return pairs

    rows, columns = max(shapes)
    width, held = evaluator.experiment.width, 0  # vectors that are held for each pair
    if evaluator.experiment.causal:
        held = evaluator.experiment.partition.output + 1
    # So many pairs that the numbers of one tile stay in the cache, or in a GPU's memory.
    pairs_at_once = field.arrays.tile_numbers // (width * max(width, held) * count)
    jobs = list(tiles(rows, columns, max(1, pairs_at_once)))
    for done in itertools.accumulate(field.arrays.each(fill, jobs)):
        progress("evaluating", done, rows * columns)
    return parts


def tiles(rows: int, columns: int, pairs: int) -> Iterator[Tile]:
    """Rectangles of at most `pairs` pairs, wide rather than tall, that cover the matrix."""
    wide = min(columns, pairs)
    tall = max(1, pairs // wide)
    for top in range(0, rows, tall):
        for left in range(0, columns, wide):
            yield slice(top, min(top + tall, rows)), slice(left, min(left + wide, columns))
