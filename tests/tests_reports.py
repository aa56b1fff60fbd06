"""Simulated sweeps of every kind that a report draws."""

import math

import numpy as np

from archfit.spec import Architecture, Factorised, Patches, RunRecord
from tests_curves import (
    DATA,
    MIDDLE,
    OTHER_DATA,
    by_depth,
    power_law,
    record,
    shape,
    shifted_to_meet,
    simulated,
    widths,
)

CURVE = power_law(2.0, 1.0, 0.2)


def depth_runs() -> list[RunRecord]:
    """Two depths that cross at 3M block parameters."""
    deep = shifted_to_meet(power_law(2.1, 0.95, 0.25), CURVE, MIDDLE)
    shapes = [shape(depth, width) for depth in (6, 12) for width in widths(depth, 1e6, 1e7, 5)]
    loss = by_depth({6: CURVE, 12: deep})
    return simulated(shapes, loss, std=1e-3, seeds=3, random=np.random.default_rng(0))


def table_runs() -> list[RunRecord]:
    """Full tables at five widths, and ranks of embedding, positions and head at the largest."""
    shapes = [shape(6, width) for width in (100, 150, 200, 250, 300)]
    for inner in (5, 30, 150, 300):
        limit = Factorised(inner=inner)
        shapes += [
            shape(6, 300, embedding=limit),
            shape(6, 300, head=limit),
            shape(6, 300, positions=limit),
        ]
    return _simulated(shapes)


def attention_runs() -> list[RunRecord]:
    """The usual attention at five sizes, and one four and sixteen times as wide as the stream."""
    shapes = [shape(6, width) for width in widths(6, 1e6, 1e7, 5)]
    shapes += [shape(6, 144, heads=12, head_dim=48), shape(6, 72, heads=24, head_dim=48)]
    return _simulated(shapes)


def repair_runs() -> list[RunRecord]:
    """Networks of equal size: deeper, of another vocabulary, and with patches."""
    random = np.random.default_rng(1)
    plain, deeper = shape(6, 256, vocab=257), shape(12, 182, vocab=257)
    patched = shape(6, 254, vocab=257, input=Patches(vocab=257, size=2, encoding="one-hot"))
    other = shape(6, 232, vocab=2000)
    return [
        record(one, level + 0.004 * float(random.standard_normal()), seed, data_hash=data)
        for one, level, data in (
            (plain, 1.30, DATA),
            (deeper, 1.295, DATA),
            (patched, 1.40, DATA),
            (other, 1.25, OTHER_DATA),
        )
        for seed in range(3)
    ]


def _simulated(shapes: list[Architecture]) -> list[RunRecord]:
    return simulated(shapes, _loss, std=2e-3, seeds=3, random=np.random.default_rng(0))


def _loss(one: Architecture) -> float:
    """That of a smaller network, by how far ranks are below the width and attention above it."""
    wasted = {"embedding": 0.3, "head": 0.6, "positions": 0.05}
    left = 1.0
    for name, share in wasted.items():
        inner = getattr(getattr(one, name), "inner", one.width)
        left -= share * max(0.0, 1 - inner / one.width) ** 4
    left -= 0.1 * math.log2(max(1.0, one.attention_ratio))
    return CURVE(math.log(one.block_params * left))
