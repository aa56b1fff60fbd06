"""What the first loss is, how large a table starts, and which seeds start alike."""

import math
from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor

from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import (
    Architecture,
    Factorised,
    Full,
    Linear,
    Patches,
    Tied,
    standard_architecture,
)
from archfit.spec.parts import Head, Table
from tests_models import position_table, random_tokens

Rule = Literal["standard", "completep"]
SHAPE = standard_architecture(depth=2, width=64, heads=4, vocab=257, context=32)
PATCHES = replace(SHAPE, input=Patches(vocab=257, size=4, encoding="one-hot"))
LINEAR = replace(SHAPE, attention=Linear(residual=True, causal=True), feed_forward=0)


def _start(shape: Architecture, rule: Rule = "standard", seed: int = 0) -> Transformer:
    numbers = parametrisation(shape, rule)
    model = Transformer(shape, numbers, dropout=0.0)
    initialise(model, numbers, seed=seed)
    return model


def _first_loss(model: Transformer) -> float:
    """The mean loss were every token as likely a target."""
    with torch.no_grad():
        logits_BNP: Tensor = model(random_tokens(model.architecture))
    logits_BNTV: Tensor = logits_BNP.unflatten(-1, (-1, model.architecture.input.vocab))
    return -logits_BNTV.log_softmax(-1).mean().item()


@pytest.mark.parametrize("rule", ["standard", "completep"])
@pytest.mark.parametrize("head", [Full(), Factorised(inner=8), Tied()])
@pytest.mark.parametrize("shape", [SHAPE, PATCHES, LINEAR])
def test_the_first_loss_is_near_ln_V(shape: Architecture, head: Head, rule: Rule) -> None:
    assert abs(_first_loss(_start(replace(shape, head=head), rule)) - math.log(257)) < 0.01


@pytest.mark.parametrize("rule", ["standard", "completep"])
@pytest.mark.parametrize("width", [16, 64, 256, 1024])
@pytest.mark.parametrize("table", [Full(), Factorised(inner=32)])
@pytest.mark.parametrize("head", [Full(), Tied()])
def test_the_first_loss_is_near_ln_V_at_every_width(
    width: int, rule: Rule, table: Table, head: Head
) -> None:
    shape = standard_architecture(depth=1, width=width, heads=4, vocab=257, context=32)
    loss = _first_loss(_start(replace(shape, embedding=table, head=head), rule))
    assert 1e-5 < loss - math.log(257) < 0.01


@pytest.mark.parametrize(
    "table", [Full(), Factorised(inner=4), Factorised(inner=64), Factorised(inner=96)]
)
def test_entries_of_a_table_start_at_0_02_whatever_its_form(table: Table) -> None:
    model = _start(replace(SHAPE, embedding=table, positions=table))
    for rows in (model.embedding.tokens, position_table(model)):
        assert rows.matrix().std().item() == pytest.approx(0.02, rel=0.15)  # 4 x 32 free numbers
    assert model.embedding.tokens.matrix().std().item() == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("inner", [4, 64, 96])
def test_a_mixing_matrix_starts_orthogonal(inner: int) -> None:
    """Rows are mixed without favour: all singular values of the second factor are equal."""
    mix_ID = _start(replace(SHAPE, embedding=Factorised(inner=inner))).embedding.tokens.mix_ID
    assert mix_ID is not None
    sizes = torch.linalg.svdvals(mix_ID.detach())
    assert sizes.tolist() == pytest.approx([max(1.0, math.sqrt(64 / inner))] * len(sizes), rel=1e-4)


@pytest.mark.parametrize("rule", ["standard", "completep"])
def test_the_matrices_of_a_block_start_at_the_sizes_of_the_rule(rule: Rule) -> None:
    numbers = parametrisation(SHAPE, rule)
    wanted = {
        "attention.qkv": numbers.hidden_std,
        "attention.out": numbers.projection_std,
        "feed_forward.up": numbers.hidden_std,
        "feed_forward.down": numbers.projection_std,
    }
    for block in _start(SHAPE, rule).trunk.blocks:
        for name, std in wanted.items():
            layer = block.get_submodule(name)
            assert isinstance(layer, torch.nn.Linear)
            assert layer.weight.std().item() == pytest.approx(std, rel=0.05)
            assert not layer.bias.any()


@pytest.mark.parametrize("size", [1, 16])
def test_a_patch_starts_as_large_as_a_token(size: int) -> None:
    shape = replace(SHAPE, input=Patches(vocab=257, size=size, encoding="one-hot"))
    model = _start(shape)
    with torch.no_grad():
        content_BND = model.embedding(random_tokens(shape)) - position_table(model).matrix()
    assert content_BND.std().item() == pytest.approx(0.02, rel=0.05)


def test_the_same_seed_starts_the_same_blocks_under_any_embedding() -> None:
    full, thin = _start(SHAPE), _start(replace(SHAPE, embedding=Factorised(inner=4), head=Tied()))
    for name, weight in full.trunk.state_dict().items():
        assert torch.equal(weight, thin.trunk.state_dict()[name]), name
    assert torch.equal(position_table(full).rows_RI, position_table(_start(PATCHES)).rows_RI)


def test_weights_do_not_depend_on_what_was_drawn_before() -> None:
    first = _start(SHAPE).state_dict()
    torch.manual_seed(123)
    second = _start(SHAPE).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_no_two_matrices_and_no_two_seeds_start_alike() -> None:
    """Compared by their first numbers, which one generator used twice would repeat."""
    firsts = [
        (weight.flatten()[:3] / weight.std()).tolist()
        for seed in (0, 1)
        for name, weight in _start(SHAPE, seed=seed).state_dict().items()
        if weight.dim() == 2 and "head" not in name
    ]
    assert len(firsts) == 2 * (2 + 2 * 4)
    for at, some in enumerate(firsts):
        for other in firsts[at + 1 :]:
            assert some != pytest.approx(other, rel=1e-2)


def test_a_cubic_layer_starts_with_an_output_no_larger_than_its_input() -> None:
    model = _start(replace(LINEAR, attention=Linear(residual=False, causal=False)))
    x_BND = torch.randn(4, 32, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        sizes = [layer(x_BND).std().item() for layer in model.trunk.blocks]
    assert all(0.02 < size < 2 for size in sizes), sizes


@pytest.mark.parametrize("inner", [64, 96])
def test_a_factorised_table_that_loses_no_rank_starts_as_the_full_one(inner: int) -> None:
    full = _start(SHAPE).embedding.tokens.matrix()
    factorised = _start(replace(SHAPE, embedding=Factorised(inner=inner))).embedding.tokens.matrix()
    assert torch.equal(full, factorised)
