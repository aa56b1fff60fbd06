"""The analysed network, run as the papers define it: an oracle that knows no theorem.

Everything is exact, modulo a prime. Tokens are columns; F_(l+1) is not used, each layer is
evaluated with all its N x N scores.
"""

import numpy as np
from flint import nmod_mat

PRIME = 2_147_483_629
Weights = list[list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]]  # K Q V O by head


def random_matrix(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
    return rng.integers(0, PRIME, (rows, cols)).astype(object)


def random_weights(
    rng: np.random.Generator, depth: int, width: int, heads: int, head_dim: int
) -> Weights:
    def head() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        k, q, v = (random_matrix(rng, head_dim, width) for _ in range(3))
        return k, q, v, random_matrix(rng, width, head_dim)

    return [[head() for _ in range(heads)] for _ in range(depth)]


def run(
    weights: Weights,
    x: np.ndarray,
    *,
    residual: bool = False,
    causal: bool = False,
    prime: int = PRIME,
) -> np.ndarray:
    """Y_L of the layer SA(Y) = sum_h O V Y Y^T K^T Q Y; causal: without scores of later keys."""
    y = x
    for layer in weights:
        new = y if residual else np.zeros_like(y)
        for k, q, v, o in layer:
            scores = (k @ y).T % prime @ (q @ y % prime) % prime  # (key, query)
            scores = np.triu(scores) if causal else scores
            new = (new + o @ ((v @ y % prime) @ scores % prime)) % prime
        y = new
    return y


def rank(matrix: list[list[int]]) -> int:
    return int(
        nmod_mat(len(matrix), len(matrix[0]), [v for row in matrix for v in row], PRIME).rank()
    )


def separation_rank(
    weights: Weights, width: int, inside: int, outside: int, samples: int, entry: int = 0
) -> int:
    """Rank of y[entry, 0] over random points of both sides: a lower bound, and sharp with luck."""
    rng = np.random.default_rng(5)
    left = [random_matrix(rng, width, inside) for _ in range(samples)]
    right = [random_matrix(rng, width, outside) for _ in range(samples)]
    table = [
        [int(run(weights, np.concatenate([a, b], axis=1))[entry, 0]) for b in right] for a in left
    ]
    return rank(table)
