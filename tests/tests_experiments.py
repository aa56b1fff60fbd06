"""Experiments and fields for tests, by the letters of the papers."""

from collections.abc import Sequence
from typing import Any

from archfit.exact.experiment import (
    Experiment,
    divided,
)
from archfit.exact.measure import Measurement, measure
from archfit.exact.prime_field import Arrays, PrimeField

NUMPY, TORCH = Arrays(), Arrays("cpu")
PRIMES = (3, 101, 65_537, 8_388_593, 2_147_483_629)


def field(prime: int, arrays: Arrays = NUMPY) -> PrimeField:
    return PrimeField(prime=prime, arrays=arrays)


def experiment(  # noqa: PLR0913 - one for each letter
    L: int,
    d: int,
    H: int = 1,
    N: int = 4,
    *,
    d_a: int | None = None,
    residual: bool = False,
    causal: bool = False,
    V: int | None = None,
    r: int | None = None,
    r_e: int = 0,
    side: Sequence[int] | None = None,
    output: int | None = None,
) -> Experiment:
    """`side` is either side, by default the first half; the output by default 0, or the last."""
    at = (N - 1 if causal else 0) if output is None else output
    return Experiment(
        depth=L,
        width=d,
        heads=H,
        head_dim=d_a or d // H,
        residual=residual,
        causal=causal,
        rank=r or min(d, V or d),
        vocab=V,
        position_rank=r_e,
        partition=divided(N, tuple(range(N // 2) if side is None else side), at),
    )


def silent(what: str, done: int, total: int) -> None:
    """A progress that reports nothing."""


def measured(*sizes: int, **more: Any) -> Measurement:
    return measure(experiment(*sizes, **more), NUMPY, progress=silent)
