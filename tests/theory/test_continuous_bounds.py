"""The stronger lower bound: its witness built exactly modulo a prime with a root of -1, and run."""

import numpy as np
import pytest

from archfit.theory import quantity
from archfit.theory.continuous_bounds import lower_bound, strong_lower_bound
from archfit.theory.vocabulary_bounds import smallest_full_rank_sphere
from tests_network import PRIME, Weights, rank, run

ROOT_OF_MINUS_ONE = pow(2, (PRIME - 1) // 4, PRIME)
POSITIONS = 4


def _zeros(rows: int, cols: int) -> np.ndarray:
    return np.zeros((rows, cols), dtype=int).astype(object)


def _head(layer: int, depth: int, h: int, heads: int, width: int) -> tuple[np.ndarray, ...]:
    """Keys, queries, values and output of one head: docs/theory.md, "A stronger lower bound"."""
    a = width // heads
    k, v, o = _zeros(a, width), _zeros(a, width), _zeros(width, a)
    for s in range(a):
        v[s, h * a + s] = o[h * a + s, s] = 1
    if layer == 0:
        k[0, a - 1] = 1
        v[a - 1, h * a + a - 1] = pow(POSITIONS, -1, PRIME)
    elif layer == 1:
        for s in range(a - 1):
            k[s, h * a + s] = 1
    else:
        for g in range(heads):
            k[0, g * a + a - 1] = 1
    if layer == depth - 1:
        v, o = _zeros(a, width), _zeros(width, a)
        v[0, h * a + a - 1] = 1
        o[:, 0] = 1
    return k, k, v, o


def _template(vector: tuple[int, ...], factor: int, heads: int, width: int) -> np.ndarray:
    a = width // heads
    column = _zeros(width, 1)
    for index, value in enumerate(vector):
        h, s = divmod(index, a - 1)
        column[h * a + s, 0] = factor * value % PRIME
    for h in range(heads):
        column[h * a + a - 1, 0] = 1
    return column


@pytest.mark.parametrize(
    ("depth", "width", "heads"), [(2, 4, 1), (2, 4, 2), (2, 6, 3), (3, 4, 2), (3, 4, 1), (3, 6, 2)]
)
def test_the_witness_has_the_rank_of_the_bound(depth: int, width: int, heads: int) -> None:
    weights: Weights = [
        [_head(layer, depth, h, heads, width) for h in range(heads)]  # type: ignore[misc]  # 4 of them
        for layer in range(depth)
    ]
    vectors = smallest_full_rank_sphere(width - heads, 3 ** (depth - 2))
    filler = _template((), 0, heads, width)

    def output(a: tuple[int, ...], b: tuple[int, ...]) -> int:
        row, column = _template(a, 1, heads, width), _template(b, ROOT_OF_MINUS_ONE, heads, width)
        x = np.concatenate([row, column, *[filler] * (POSITIONS - 2)], axis=1)
        return int(run(weights, x)[0, 0])

    table = [[output(a, b) for b in vectors] for a in vectors]
    inner = 2 * ROOT_OF_MINUS_ONE * sum(x * y for x, y in zip(vectors[0], vectors[-1], strict=True))
    scale = pow(POSITIONS, (3 ** (depth - 1) - 1) // 2, PRIME)
    assert table[0][-1] == scale * pow(inner, 3 ** (depth - 2), PRIME) % PRIME
    assert rank(table) == int(strong_lower_bound(depth, width, heads))


@pytest.mark.parametrize(("depth", "width", "heads"), [(3, 12, 3), (5, 64, 8), (9, 20, 4)])
def test_it_is_never_below_the_papers(depth: int, width: int, heads: int) -> None:
    assert int(strong_lower_bound(depth, width, heads)) >= int(lower_bound(depth, width, heads))


def test_an_embedding_of_low_rank_limits_it() -> None:
    low_rank = int(strong_lower_bound(3, 12, 3, embedding_rank=4))
    assert low_rank == int(strong_lower_bound(3, 4, 1))


def test_too_narrow_a_width_is_told_what_it_leaves_and_what_would_do() -> None:
    said = r"d_x=7 with H=7 leaves floor\(\(d_x - H\) / 2\) = 0, .* at least 1; use d_x >= 9"
    with pytest.raises(ValueError, match=said):
        quantity("lb_thm1_closed_log3", L=4, d_x=7, H=7)
