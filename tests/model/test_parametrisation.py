"""The numbers of both rules, worked out by hand, and what they are for: a step that moves the
network as far at any depth and width."""

import math
from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor

from archfit.model import Parametrisation, Transformer, initialise, parametrisation
from archfit.model.transformer import SoftmaxTrunk
from archfit.spec import Architecture, standard_architecture

Rule = Literal["standard", "completep"]
TWICE_AS_WIDE = standard_architecture(depth=8, width=512, heads=4, vocab=50, context=16)


def test_completep_at_twice_the_width_and_four_times_the_depth_of_its_base() -> None:
    by_hand = Parametrisation(
        residual_multiplier=1 / 4,
        logit_multiplier=1 / 2,
        score_multiplier=8 / 128,
        hidden_std=0.02 / math.sqrt(2),
        projection_std=0.02 / math.sqrt(2),
        table_std=0.02,
        hidden_rate_factor=1 / 2,
        hidden_decay_factor=2.0,
        block_epsilon=1e-8 / 8,
        table_epsilon=1e-8 / 2,
    )
    assert parametrisation(TWICE_AS_WIDE, "completep") == by_hand


def test_standard_is_gpt2s() -> None:
    by_hand = Parametrisation(
        residual_multiplier=1.0,
        logit_multiplier=1.0,
        score_multiplier=1 / math.sqrt(128),
        hidden_std=0.02,
        projection_std=0.02 / 4,  # sqrt(2 L)
        table_std=0.02,
        hidden_rate_factor=1.0,
        hidden_decay_factor=1.0,
        block_epsilon=1e-8,
        table_epsilon=1e-8,
    )
    assert parametrisation(TWICE_AS_WIDE, "standard") == by_hand


def test_fan_in_is_standard_with_sizes_that_go_with_the_width() -> None:
    standard, scaled = (parametrisation(TWICE_AS_WIDE, rule) for rule in ("standard", "fan-in"))
    std = math.sqrt(0.4 / 512)
    sizes = {"hidden_std": std, "projection_std": std / 4, "table_std": 0.07}
    assert scaled == replace(standard, **sizes)


def test_the_rules_agree_at_the_base_shape_but_for_the_projections() -> None:
    base = standard_architecture(depth=2, width=256, heads=4, vocab=50, context=16)
    standard, completep = (parametrisation(base, rule) for rule in ("standard", "completep"))
    assert replace(standard, projection_std=0.02) == completep


def _stream(model: Transformer, tokens_BN: Tensor) -> Tensor:
    """What the blocks add to the stream, before the last norm."""
    assert isinstance(model.trunk, SoftmaxTrunk)
    first_BND: Tensor = model.embedding(tokens_BN)
    x_BND, branch_BND = first_BND, None
    for block in model.trunk.blocks:
        x_BND, branch_BND = block(x_BND, branch_BND)
    last_BND: Tensor = model.trunk.norm(x_BND, branch_BND)[0]
    return last_BND - first_BND


def _moved(architecture: Architecture, rule: Rule) -> tuple[float, float]:
    """Root mean squares of how far four steps of Adam move the blocks' output and the logits."""
    numbers = parametrisation(architecture, rule)
    model = Transformer(architecture, numbers, dropout=0.0)
    initialise(model, numbers, seed=0)
    tokens_BN = torch.randint(50, (8, 17), generator=torch.Generator().manual_seed(0))
    rates = [
        2e-3 * (numbers.hidden_rate_factor if "blocks" in name and weight.dim() == 2 else 1)
        for name, weight in model.named_parameters()
    ]
    optimiser = torch.optim.Adam(
        {"params": [weight], "lr": rate}
        for weight, rate in zip(model.parameters(), rates, strict=True)
    )
    with torch.no_grad():
        before_BND, start_BNV = _stream(model, tokens_BN[:, :-1]), model(tokens_BN[:, :-1])
    for _ in range(4):
        logits_BNV: Tensor = model(tokens_BN[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits_BNV.flatten(0, 1), tokens_BN[:, 1:].ravel())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        after_BND, logits_BNV = _stream(model, tokens_BN[:, :-1]), model(tokens_BN[:, :-1])
    return _size(after_BND - before_BND), _size(logits_BNV - start_BNV)


def _size(x: Tensor) -> float:
    return x.square().mean().sqrt().item()


def _movements(rule: Rule, shapes: list[tuple[int, int]]) -> tuple[list[float], list[float]]:
    """Sizes of the movement for each (depth, width), over that of the first."""
    moved = [
        _moved(standard_architecture(depth=d, width=w, heads=w // 16, vocab=50, context=16), rule)
        for d, w in shapes
    ]
    streams, logits = zip(*moved, strict=True)
    return [s / streams[0] for s in streams], [s / logits[0] for s in logits]


SHAPES = [(2, 64), (8, 64), (32, 64), (2, 128), (2, 256)]


def test_completep_moves_stream_and_logits_as_far_at_any_depth_and_width() -> None:
    """The coordinate check of mup: what stays put is where the best rate stays put."""
    streams, logits = _movements("completep", SHAPES)
    assert streams == pytest.approx([1.0] * 5, rel=0.35)
    assert logits == pytest.approx([1.0] * 5, rel=0.35)


def test_the_same_check_tells_the_standard_rule_from_completep() -> None:
    streams, logits = _movements("standard", SHAPES)
    assert streams[2] > 10  # depth 32
    assert streams[4] > 5  # width 256
    assert logits[4] > 2


def _blocks_output(depth: int) -> float:
    architecture = standard_architecture(depth=depth, width=64, heads=4, vocab=50, context=16)
    numbers = parametrisation(architecture, "completep")
    model = Transformer(architecture, numbers, dropout=0.0)
    initialise(model, numbers, seed=0)
    tokens_BN = torch.randint(50, (8, 16), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        return _size(_stream(model, tokens_BN))


def test_independent_blocks_add_up_to_one_over_the_root_of_depth() -> None:
    """Before training L random branches, each divided by L, add like a random walk."""
    assert _blocks_output(32) / _blocks_output(2) == pytest.approx(1 / 4, rel=0.1)
