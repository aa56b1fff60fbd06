"""Outputs for all pairs of samples, against the network run as the papers define it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archfit.exact.experiment import Experiment
from archfit.exact.matrix import (
    Evaluator,
    Sides,
    moments,
    output_matrices,
    random_mixes,
    sample_sides,
    tiles,
)
from archfit.exact.prime_field import Arrays
from tests_experiments import NUMPY, TORCH, experiment, field, silent
from tests_network import PRIME, Weights, run

SMALL = 8_388_593
SEED = 7

CASES: dict[str, dict[str, Any]] = {
    "one layer": {"L": 1, "d": 3},
    "one layer, residual": {"L": 1, "d": 3, "residual": True},
    "one coordinate": {"L": 3, "d": 1, "N": 2},
    "two layers": {"L": 2, "d": 3},
    "heads": {"L": 2, "d": 4, "H": 2, "N": 6},
    "heads of one": {"L": 2, "d": 3, "H": 3, "residual": True},
    "heads wider than the network": {"L": 2, "d": 2, "H": 3, "d_a": 4},
    "heads narrower than the network": {"L": 3, "d": 3, "H": 1, "d_a": 1, "residual": True},
    "deep": {"L": 4, "d": 2},
    "deep, residual": {"L": 3, "d": 2, "H": 2, "residual": True},
    "another output": {"L": 2, "d": 3, "output": 3},
    "interleaved": {"L": 2, "d": 2, "N": 5, "side": (0, 2, 4), "output": 2},
    "unbalanced": {"L": 2, "d": 3, "N": 5, "side": (1,), "output": 1},
    "low rank": {"L": 2, "d": 4, "r": 2},
    "positions": {"L": 2, "d": 3, "r": 1, "r_e": 2, "side": (0, 3)},
    "tokens": {"L": 2, "d": 3, "V": 4, "N": 5, "side": (1, 2)},
    "tokens at positions": {"L": 2, "d": 2, "V": 2, "N": 4, "r_e": 1, "residual": True},
    "causal": {"L": 2, "d": 2, "causal": True},
    "causal, one layer": {"L": 1, "d": 3, "causal": True, "residual": True},
    "causal, interleaved, heads": {
        "L": 3, "d": 2, "H": 2, "N": 5, "causal": True, "side": (1, 3),
    },
    "causal, output in the middle": {"L": 2, "d": 2, "N": 5, "causal": True, "output": 2},
    "causal, first output": {"L": 2, "d": 2, "causal": True, "output": 0},
    "causal tokens": {"L": 2, "d": 2, "V": 3, "causal": True, "residual": True},
}  # fmt: skip


def weights(what: Experiment, prime: int) -> Weights:
    """The same draws in the same order as the mixes are made of."""
    draws, net = np.random.default_rng(SEED), what
    layers = []
    for _ in range(net.depth):
        shape = (net.heads, net.head_dim, net.width)
        k, q, v = (draws.integers(0, prime, shape).astype(object) for _ in range(3))
        o = draws.integers(0, prime, (net.heads, net.width, net.head_dim)).astype(object)
        layers.append([(k[h], q[h], v[h], o[h]) for h in range(net.heads)])
    return layers


def evaluator_of(what: Experiment, prime: int, arrays: Arrays = NUMPY) -> Evaluator:
    ours = field(prime, arrays)
    mixes = random_mixes(what, ours, SEED)
    return Evaluator(experiment=what, field=ours, mixes=mixes)


def whole(evaluator: Evaluator, sides: Sides) -> np.ndarray:
    shape = sides.inside.shape[2], sides.outside.shape[2]
    (matrix,) = output_matrices(evaluator, sides, [shape], silent)
    return evaluator.field.arrays.numpy(matrix)


def parts_of(evaluator: Evaluator, sides: Sides, sizes: tuple[int, ...]) -> list[np.ndarray]:
    return output_matrices(evaluator, sides, [(size, size) for size in sizes], silent)


def matrix_and_sides(
    what: Experiment, prime: int, arrays: Arrays, samples: int
) -> tuple[np.ndarray, Sides]:
    evaluator = evaluator_of(what, prime, arrays)
    sides = sample_sides(what, evaluator.field, samples=samples, seed=3)
    return whole(evaluator, sides), sides


def by_definition(what: Experiment, prime: int, sides: Sides, row: int, column: int) -> int:
    """The output of all N positions together."""
    partition = what.partition
    x = np.zeros((what.width, len(partition.inside + partition.outside)), object)
    for place, vector in zip(partition.inside, sides.inside[:, :, row], strict=True):
        x[:, place] = [int(value) for value in vector]
    for place, vector in zip(partition.outside, sides.outside[:, :, column], strict=True):
        x[:, place] = [int(value) for value in vector]
    net = what
    y = run(weights(what, prime), x, residual=net.residual, causal=net.causal, prime=prime)
    return int(y[0, partition.output]) % prime


@pytest.mark.parametrize("prime", [SMALL, PRIME])
@pytest.mark.parametrize("case", CASES)
def test_every_pair_gives_what_the_definition_gives(case: str, prime: int) -> None:
    what = experiment(**CASES[case])
    matrix, sides = matrix_and_sides(what, prime, NUMPY, 5)
    rng = np.random.default_rng(1)
    for _ in range(6):
        row, column = (int(rng.integers(size)) for size in matrix.shape)
        assert int(matrix[row, column]) % prime == by_definition(what, prime, sides, row, column)


@pytest.mark.parametrize("case", CASES)
def test_torch_and_numpy_give_the_same_matrix(case: str) -> None:
    what = experiment(**CASES[case])
    for prime in (SMALL, PRIME):
        one, other = (matrix_and_sides(what, prime, arrays, 5)[0] for arrays in (NUMPY, TORCH))
        assert (one % prime == other % prime).all()


def test_more_positions_than_one_sum_holds_are_added_up_exactly() -> None:
    what = experiment(2, 2, N=80)
    for prime in (SMALL, PRIME):
        matrix, sides = matrix_and_sides(what, prime, NUMPY, 2)
        assert int(matrix[1, 0]) % prime == by_definition(what, prime, sides, 1, 0)


def test_moments_of_the_largest_residues_are_exact() -> None:
    for prime in (SMALL, 16_777_213, PRIME):
        ours = field(prime)
        found = moments(ours, np.full((600, 2, 1), float(prime // 2)))
        assert [int(m) % prime for m in found[:, 0]] == [600 * (prime // 2) ** 2 % prime] * 3


def test_tiles_cover_a_matrix_once() -> None:
    for rows, columns, pairs in ((1, 1, 9), (7, 5, 3), (5, 7, 14), (4, 4, 100)):
        seen = np.zeros((rows, columns), int)
        for tile in tiles(rows, columns, pairs):
            seen[tile] += 1
            assert seen[tile].size <= pairs
        assert (seen == 1).all()


def parts_and_whole(what: Experiment, prime: int) -> tuple[list[np.ndarray], np.ndarray]:
    evaluator = evaluator_of(what, prime)
    sides = sample_sides(what, evaluator.field, samples=9, seed=3)
    count = (3**what.depth - 1) // 2 + 1
    return parts_of(evaluator, sides, (9,) * count), whole(evaluator, sides)


@pytest.mark.parametrize("prime", [SMALL, PRIME])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("depth", "width"), [(1, 3), (2, 3), (3, 2), (4, 1)])
def test_parts_by_degree_add_up_to_the_whole(
    depth: int, width: int, causal: bool, prime: int
) -> None:
    what = experiment(depth, width, causal=causal, side=(0, 2))
    parts, all_of_it = parts_and_whole(what, prime)
    assert (np.sum(parts, axis=0) % prime == all_of_it % prime).all()


@pytest.mark.parametrize("causal", [False, True])
def test_a_part_of_degree_k_grows_as_t_to_the_k(causal: bool) -> None:
    """S_P times 4 is x_P times 2, except for the output's own vector, which counts once more."""
    what = experiment(3, 2, causal=causal)
    evaluator = evaluator_of(what, PRIME)
    sides = sample_sides(what, evaluator.field, samples=4, seed=3)
    doubled = replace(sides, inside=evaluator.field.reduced(2 * sides.inside))
    before, after = (parts_of(evaluator, each, (4,) * 14) for each in (sides, doubled))
    for degree, (one, other) in enumerate(zip(before, after, strict=True)):
        factor = 2 ** (2 * degree + 1)
        wanted = [int(value) * factor % PRIME for value in one.reshape(-1)]
        assert [int(value) % PRIME for value in other.reshape(-1)] == wanted


def test_parts_have_the_sizes_asked_for() -> None:
    what = experiment(2, 2)
    evaluator = evaluator_of(what, SMALL)
    sides = sample_sides(what, evaluator.field, samples=9, seed=3)
    full = parts_of(evaluator, sides, (9,) * 5)
    some = parts_of(evaluator, sides, (2, 5, 9, 5, 1))
    for large, part in zip(full, some, strict=True):
        assert (part == large[: len(part), : len(part)]).all()


def test_tiles_are_wide_rather_than_tall() -> None:
    assert list(tiles(5, 4, 9)) == [
        (slice(0, 2), slice(0, 4)),
        (slice(2, 4), slice(0, 4)),
        (slice(4, 5), slice(0, 4)),
    ]
    assert list(tiles(2, 5, 3)) == [
        (slice(row, row + 1), slice(first, min(first + 3, 5)))
        for row in range(2)
        for first in (0, 3)
    ]
