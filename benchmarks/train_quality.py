"""Held-out loss of `archfit train` with its defaults against a plain loop of the same budget.

Run:     python benchmarks/train_quality.py [--steps 1500] [--seeds 3]
Prints:  a line a seed with the held-out nats per token of both and their seconds, then means,
         standard deviations and the mean difference. Both see the same batches of the shipped
         sample, the same schedule and the same held-out rows; weights start from each one's own
         initialisation. About three minutes a seed on two cores.
"""

import argparse
import inspect
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from nanogpt_reference import Loop, Options, Shape, train

from archfit.cli import train_commands
from archfit.data.loader import Loader
from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData
from archfit.data.sources import DataSettings
from archfit.spec import Architecture, Full, Recipe, RunSpec, Softmax, Tokens
from archfit.spec.data_kinds import SAMPLE
from archfit.spec.run_options import usual_rate
from archfit.train import TrainSettings, Watchers
from archfit.train import train as train_ours


def main() -> None:
    """Train both for each seed and print what they reach."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=default("steps"))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    rows: list[tuple[float, float]] = []
    print(f"{'seed':>6}{'ours':>10}{'plain':>10}{'ours - plain':>14}{'seconds':>16}")
    with tempfile.TemporaryDirectory() as name:
        data = prepare(SAMPLE, Path(name) / "data", DataSettings(kind="text")).data
        for seed in range(asked.seeds):
            spec = replace(default_spec(data, asked.steps), seed=seed)
            started = time.monotonic()
            ours = our_loss(spec, data, Path(name) / "runs")
            between = time.monotonic()
            plain = plain_loss(spec, data)
            seconds = f"{between - started:.0f} / {time.monotonic() - between:.0f}"
            rows.append((ours, plain))
            print(f"{seed:6}{ours:10.4f}{plain:10.4f}{ours - plain:14.4f}{seconds:>16}", flush=True)
    summary("mean", rows, statistics.mean)
    if len(rows) > 1:
        summary("std", rows, statistics.stdev)


def summary(name: str, rows: list[tuple[float, float]], of: object) -> None:
    """A line of one statistic of both columns and of the differences."""
    assert callable(of)
    ours, plain = zip(*rows, strict=True)
    differences = [a - b for a, b in rows]
    print(f"{name:>6}{of(ours):10.4f}{of(plain):10.4f}{of(differences):14.4f}")


def default(option: str) -> int:
    """The default of an option of `archfit train`."""
    value = inspect.signature(train_commands.train).parameters[option].default
    assert isinstance(value, int)
    return value


def default_real(option: str) -> float:
    """The same for a real number."""
    return float(inspect.signature(train_commands.train).parameters[option].default)


def default_spec(data: PreparedData, steps: int) -> RunSpec:
    """What `archfit train --steps STEPS --device cpu` trains; a tenth of warm-up, and only
    the last evaluation, as the plain loop makes no other."""
    width, heads = default("width"), default("heads")
    architecture = Architecture(
        depth=default("depth"), width=width, heads=heads, head_dim=width // heads,
        attention=Softmax(), feed_forward=4 * width, context=default("context"),
        input=Tokens(vocab=data.vocab), embedding=Full(), positions=Full(), head=Full(),
    )  # fmt: skip
    recipe = Recipe(
        steps=steps, batch_sequences=default("batch"), warmup_steps=steps // 10,
        peak_learning_rate=usual_rate(width, "standard"),
        learning_rate_rule="standard",
        weight_decay=default_real("weight_decay"), beta1=default_real("beta1"),
        beta2=default_real("beta2"), gradient_clip=default_real("gradient_clip"),
        dropout=default_real("dropout"), precision="float32",
        evaluation_steps=steps,
        evaluation_sequences=default("evaluation_sequences"), full_context_tokens=0,
    )  # fmt: skip
    return RunSpec(architecture=architecture, data_hash=data.data_hash, recipe=recipe, seed=0)


def our_loss(spec: RunSpec, data: PreparedData, out: Path) -> float:
    """The last held-out loss of a run."""
    settings = TrainSettings(
        device="cpu",
        sharding="auto",
        checkpoint_seconds=1e9,
        keep_weights=False,
        code_version="benchmark",
    )
    record = train_ours(spec, data, out, settings, Watchers())
    return record.evaluations[-1].heldout_nats_per_token


def plain_loss(spec: RunSpec, data: PreparedData) -> float:
    """The held-out loss that the plain loop ends with."""
    shape, recipe = spec.architecture, spec.recipe
    loader = Loader(data=data, batch=recipe.batch_sequences, context=shape.context, seed=spec.seed)
    options = Options(
        steps=recipe.steps, warmup_steps=recipe.warmup_steps,
        peak_learning_rate=recipe.peak_learning_rate, weight_decay=recipe.weight_decay,
        betas=(recipe.beta1, recipe.beta2), gradient_clip=recipe.gradient_clip,
    )  # fmt: skip
    sizes = Shape(
        depth=shape.depth, width=shape.width, heads=shape.heads, vocab=data.vocab,
        context=shape.context,
    )  # fmt: skip
    loop = Loop(sizes, options, seed=spec.seed)
    batches = (torch.from_numpy(loader.training_batch(step)) for step in range(recipe.steps))
    for _ in train(loop, batches):
        pass
    return loop.heldout(
        torch.from_numpy(batch) for batch in loader.heldout_batches(recipe.evaluation_sequences)
    )


if __name__ == "__main__":
    main()
