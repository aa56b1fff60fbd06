"""The losses of a record and the trained weights against a plain loop that asks `train` nothing."""

import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from archfit.data.loader import Loader
from archfit.data.prepared import PreparedData
from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import Evaluation, Recipe, RunSpec
from tests_training import HELDOUT, record_of, tiny_spec


def mean_loss(model: Transformer, tokens_BS: Tensor) -> Tensor:
    logits_BNV: Tensor = model(tokens_BS[:, :-1])
    return F.cross_entropy(logits_BNV.flatten(0, 1), tokens_BS[:, 1:].flatten())


def heldout_rows(spec: RunSpec, data: PreparedData) -> Tensor:
    """As many rows as the recipe asks for, evenly spread."""
    heldout = torch.from_numpy(data.tokens("heldout").astype(np.int64))
    context, wanted = spec.architecture.context, spec.recipe.evaluation_sequences
    there = (len(heldout) - 1) // context
    starts = [context * (at * there // wanted) for at in range(wanted)]
    return torch.stack([heldout[start : start + context + 1] for start in starts])


def rate_of(step: int, recipe: Recipe) -> float:
    if step < recipe.warmup_steps:
        return recipe.peak_learning_rate * (step + 1) / recipe.warmup_steps
    done = (step - recipe.warmup_steps) / (recipe.steps - recipe.warmup_steps)
    return recipe.peak_learning_rate * (1 + math.cos(math.pi * done)) / 2


class PlainAdamW:
    """AdamW after clipping the norm of all gradients, as the papers write it."""

    def __init__(self, model: Transformer, recipe: Recipe) -> None:
        self.model, self.recipe, self.steps = model, recipe, 0
        self.moments = {p: (torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()}

    def step(self, loss: Tensor, rate: float) -> None:
        recipe = self.recipe
        slopes = torch.autograd.grad(loss, list(self.moments))
        norm = math.sqrt(sum(float(slope.square().sum()) for slope in slopes))
        self.steps += 1
        for (p, (first, second)), slope in zip(self.moments.items(), slopes, strict=True):
            clipped = slope * min(1.0, recipe.gradient_clip / norm)
            first.mul_(recipe.beta1).add_((1 - recipe.beta1) * clipped)
            second.mul_(recipe.beta2).add_((1 - recipe.beta2) * clipped**2)
            m = first / (1 - recipe.beta1**self.steps)
            v = second / (1 - recipe.beta2**self.steps)
            decay = recipe.weight_decay if p.ndim > 1 else 0.0
            p.data -= rate * (decay * p.data + m / (v.sqrt() + 1e-8))


def plain_loop(spec: RunSpec, data: PreparedData) -> tuple[list[Evaluation], Transformer]:
    recipe, numbers = spec.recipe, parametrisation(spec.architecture, "standard")
    model = Transformer(spec.architecture, numbers, dropout=0.0)
    initialise(model, numbers, seed=spec.seed)
    optimiser, heldout_BS = PlainAdamW(model, recipe), heldout_rows(spec, data)
    loader = Loader(data=data, batch=recipe.batch_sequences, context=12, seed=spec.seed)
    evaluations: list[Evaluation] = []
    losses: list[float] = []
    for step in range(recipe.steps):
        loss = mean_loss(model, torch.from_numpy(loader.training_batch(step)))
        optimiser.step(loss, rate_of(step, recipe))
        losses.append(loss.item())
        if step + 1 in (5, 10, 12):
            with torch.no_grad():
                nats = mean_loss(model, heldout_BS).item()
            bits = nats / math.log(2) * len(data.tokens("heldout")) / len(HELDOUT)
            evaluation = Evaluation(
                step=step + 1,
                training_nats_per_token=sum(losses) / len(losses),
                heldout_nats_per_token=nats,
                heldout_bits_per_byte=bits,
            )
            evaluations.append(evaluation)
            losses = []
    return evaluations, model


def test_every_loss_of_a_record_and_the_weights_are_those_of_a_plain_loop(
    data: PreparedData, tmp_path: Path
) -> None:
    recipe = {"weight_decay": 0.3, "gradient_clip": 0.7, "beta1": 0.8, "beta2": 0.95}
    spec = tiny_spec(data, **recipe, warmup_steps=3, peak_learning_rate=0.02)
    record = record_of(spec, data, tmp_path)
    evaluations, model = plain_loop(spec, data)
    assert [e.step for e in record.evaluations] == [5, 10, 12]
    for ours, plain in zip(record.evaluations, evaluations, strict=True):
        assert asdict(ours) == pytest.approx(asdict(plain), abs=2e-5)
    means = [evaluation.training_nats_per_token for evaluation in evaluations]
    assert means[0] > means[1] + 0.01 > means[2] + 0.02  # the intervals can be told apart
    stored = load_file(tmp_path / spec.name / "model.safetensors")
    weights = dict(model.named_parameters())
    assert stored.keys() == weights.keys()
    for name, weight in weights.items():
        difference = (stored[name] - weight).abs()
        if "qkv.bias" in name:  # those of keys have no gradient but rounding, which Adam scales up
            queries, _, values = difference.chunk(3)
            difference = torch.cat([queries, values])
        assert difference.max() <= 2e-5, name
