"""Runs that nobody trained: records whose losses are a known function of the shape, plus noise."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from archfit.spec import (
    Architecture,
    Evaluation,
    Machine,
    Recipe,
    RunRecord,
    RunSpec,
    Timing,
    canonical_json,
    standard_architecture,
)

Loss = Callable[[Architecture], float]  # nats per token that a shape would have without noise
Curve = Callable[[float], float]  # the same of ln N

DATA, OTHER_DATA = "0123456789abcdef" * 4, "fedcba9876543210" * 4
RECIPE = Recipe(
    steps=1000,
    batch_sequences=32,
    warmup_steps=10,
    peak_learning_rate=1.6e-3,
    learning_rate_rule="standard",
    weight_decay=0.01,
    beta1=0.9,
    beta2=0.999,
    gradient_clip=1.0,
    dropout=0.0,
    precision="float32",
    evaluation_steps=500,
    evaluation_sequences=100,
    full_context_tokens=0,
)
MIDDLE = math.log(3e6)  # ln N about which curves of tests are written


def shape(
    depth: int, width: int, *, heads: int = 2, vocab: int = 2000, **more: object
) -> Architecture:
    """A network of the papers; `more` are fields to change."""
    plain = standard_architecture(depth=depth, width=width, heads=heads, vocab=vocab, context=128)
    return replace(plain, **more)  # type: ignore[arg-type]  # it checks


def record(
    architecture: Architecture,
    loss: float,
    seed: int,
    *,
    data_hash: str = DATA,
    recipe: Recipe = RECIPE,
    diverged: bool = False,
) -> RunRecord:
    """A finished run of this loss; or one that diverged half-way."""
    spec = RunSpec(architecture=architecture, data_hash=data_hash, recipe=recipe, seed=seed)
    steps = (recipe.steps // 2,) if diverged else (recipe.steps // 2, recipe.steps)
    return RunRecord(
        spec=spec,
        status="diverged" if diverged else "finished",
        diverged_at_step=recipe.steps // 2 if diverged else None,
        evaluations=tuple(
            Evaluation(
                step=step,
                training_nats_per_token=loss,
                heldout_nats_per_token=loss + 0.5 * (step < recipe.steps),
                heldout_bits_per_byte=loss / math.log(2) / 3,
            )
            for step in steps
        ),
        full_context=None,
        timing=Timing(training_seconds=1.0, tokens_per_second=1.0, flop_utilisation=None),
        machine=Machine(
            device="none",
            devices=1,
            micro_batch_sequences=1,
            archfit="simulated",
            python="3",
            torch="none",
        ),
    )


def simulated(
    shapes: Iterable[Architecture],
    loss: Loss,
    *,
    std: float,
    seeds: int,
    random: np.random.Generator,
) -> list[RunRecord]:
    """Runs of each shape: its loss, and noise of this standard deviation."""
    return [
        record(architecture, loss(architecture) + std * float(random.standard_normal()), seed)
        for architecture in shapes
        for seed in range(seeds)
    ]


def by_depth(curves: Mapping[int, Curve]) -> Loss:
    """The loss of a network by the curve of its depth."""
    return lambda architecture: curves[architecture.depth](math.log(architecture.block_params))


def widths(depth: int, low: float, high: float, sizes: int) -> list[int]:
    """Even widths whose networks have `low` to `high` block parameters, evenly in ln N."""
    wanted = np.geomspace(low, high, sizes)
    return sorted({2 * round(math.sqrt(size / 12 / depth) / 2) for size in wanted})


def power_law(floor: float, scale: float, alpha: float) -> Curve:
    """E + A (N / 3M)^-alpha."""
    return lambda x: floor + scale * math.exp(-alpha * (x - MIDDLE))


def quadratic(level: float, slope: float, bend: float) -> Curve:
    """level - slope u + bend u^2 with u = ln(N / 3M)."""
    return lambda x: level - slope * (x - MIDDLE) + bend * (x - MIDDLE) ** 2


def shifted_to_meet(curve: Curve, other: Curve, at: float) -> Curve:
    """The curve, moved up or down so that it meets the other at this ln N."""
    change = other(at) - curve(at)
    return lambda x: curve(x) + change


def write_runs(folder: Path, records: Iterable[RunRecord]) -> Path:
    """A folder of runs, as training leaves it."""
    for one in records:
        run = folder / one.spec.name
        run.mkdir(parents=True)
        (run / "record.json").write_text(canonical_json(one))
    return folder
