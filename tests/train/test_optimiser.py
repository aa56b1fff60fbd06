import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from archfit.model import Transformer, parametrisation
from archfit.spec import Architecture, Factorised, Linear, Tied, standard_architecture
from archfit.train.optimiser import AdamW, ParameterGroup, build_optimiser, learning_rate
from tests_training import RECIPE

SHAPE = standard_architecture(depth=8, width=512, heads=8, vocab=9, context=4)
SHAPES = [
    SHAPE,
    replace(SHAPE, embedding=Factorised(inner=3), positions=Factorised(inner=2), head=Tied()),
    replace(SHAPE, attention=Linear(residual=True, causal=True), feed_forward=0),
]


def groups_by_name(shape: Architecture, rule: str) -> dict[str, tuple[ParameterGroup, float]]:
    """Of each parameter: its group, and its learning rate where the step's is 1."""
    with torch.device("meta"):
        numbers = parametrisation(shape, rule)  # type: ignore[arg-type]  # one of two
        model = Transformer(shape, numbers, dropout=0.0)
        recipe = replace(RECIPE, weight_decay=0.1)
        optimiser = build_optimiser(model, recipe, numbers, torch.device("cpu"))
    optimiser.set_rate(1.0)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = [
        (names[id(parameter)], (group, float(rate)))
        for group, rate in zip(optimiser.groups, optimiser.rates, strict=True)
        for parameter in group.params
    ]
    assert sorted(name for name, _ in found) == sorted(names.values())
    return dict(found)


@pytest.mark.parametrize("shape", SHAPES)
def test_matrices_decay_and_vectors_do_not(shape: Architecture) -> None:
    for name, (group, rate) in groups_by_name(shape, "standard").items():
        is_vector = name.endswith(("bias", "norm.weight"))
        assert group.weight_decay == (0.0 if is_vector else 0.1), name
        assert group.eps == 1e-8
        assert name.endswith("mix_ID") or rate == 1.0


def test_a_mixing_matrix_learns_at_two_over_its_inner_size() -> None:
    tables = {"embedding": Factorised(inner=64), "positions": Factorised(inner=2)}
    shape = replace(SHAPE, head=Factorised(inner=3), **tables)  # type: ignore[arg-type]  # they fit
    groups = groups_by_name(shape, "standard")
    rates = [groups[f"{table}.mix_ID"][1] for table in ("embedding.tokens", "head")]
    assert rates == pytest.approx([2 / 64, 2 / 3])
    assert groups["embedding.positions.mix_ID"][1] == 1.0
    assert groups["embedding.tokens.rows_RI"][1] == 1.0


def test_completep_scales_the_matrices_of_blocks_by_width_and_depth() -> None:
    """Table 1 of arXiv:2505.01618 with m_d = 512 / 256 and m_L = 8 / 2."""
    for name, (group, rate) in groups_by_name(SHAPE, "completep").items():
        is_inside, is_matrix = ".blocks." in name, not name.endswith(("bias", "norm.weight"))
        assert rate == (1 / 2 if is_inside and is_matrix else 1), name
        decay = (0.1 * 2 if is_inside else 0.1) if is_matrix else 0
        assert group.weight_decay == pytest.approx(decay), name
        assert group.eps == pytest.approx(1e-8 / 8 if is_inside else 1e-8 / 2), name


EIGHTH = math.cos(math.pi / 4)


@pytest.mark.parametrize(
    ("warmup", "rates"),
    [
        (0, [1, (1 + EIGHTH) / 2, 1 / 2, (1 - EIGHTH) / 2]),
        (1, [1, 1, 3 / 4, 1 / 4]),
        (2, [1 / 2, 1, 1, 1 / 2]),
        (4, [1 / 4, 1 / 2, 3 / 4, 1]),
    ],
)
def test_four_steps_have_the_rates_of_the_formula(warmup: int, rates: list[float]) -> None:
    recipe = replace(RECIPE, steps=4, warmup_steps=warmup, peak_learning_rate=3.0)
    found = [learning_rate(step, recipe) / 3 for step in range(4)]
    assert found == pytest.approx(rates, abs=1e-12)


def test_steps_are_those_of_the_formula_of_adamw() -> None:
    """Loshchilov & Hutter 2019, algorithm 2, in float64; eps is inside no root."""
    recipe, rates = replace(RECIPE, beta1=0.8, beta2=0.95), (0.1, 0.3, 0.2)
    generator = torch.Generator().manual_seed(0)
    start, slopes = (
        torch.randn(2, 4, generator=generator),
        torch.randn(3, 2, 4, generator=generator),
    )
    weights = [nn.Parameter(row.clone()) for row in start]
    numbers = [(1.0, 0.3, 1e-4), (0.5, 0.0, 1e-2)]
    groups = [
        ParameterGroup(params=[weight], rate_factor=factor, weight_decay=decay, eps=eps)
        for weight, (factor, decay, eps) in zip(weights, numbers, strict=True)
    ]
    optimiser = AdamW(groups, recipe, torch.device("cpu"))
    for rate, slope in zip(rates, slopes, strict=True):
        optimiser.set_rate(rate)
        for weight, row in zip(weights, slope, strict=True):
            weight.grad = row.clone()
        optimiser.step()
    for at, (factor, decay, eps) in enumerate(numbers):
        w, m, v = start[at].double(), torch.zeros(4).double(), torch.zeros(4).double()
        for t, (rate, slope) in enumerate(zip(rates, slopes[:, at].double(), strict=True), 1):
            m, v = 0.8 * m + 0.2 * slope, 0.95 * v + 0.05 * slope**2
            step = (m / (1 - 0.8**t)) / ((v / (1 - 0.95**t)).sqrt() + eps)
            w = w - rate * factor * (decay * w + step)
        assert torch.allclose(weights[at].data.double(), w, atol=1e-6, rtol=0)


def test_a_parameter_without_a_gradient_stays_and_gradients_are_dropped_when_asked() -> None:
    moved, still = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    group = ParameterGroup(params=[still, moved], rate_factor=1.0, weight_decay=0.5, eps=1e-8)
    optimiser = AdamW([group], RECIPE, torch.device("cpu"))
    optimiser.set_rate(0.1)
    moved.grad = torch.ones(2)
    optimiser.step()
    assert torch.equal(still, torch.ones(2))
    assert optimiser.state[still]["step"] == 0
    assert optimiser.state[moved]["step"] == 1
    assert not torch.equal(moved, torch.ones(2))
    optimiser.zero_grad()
    assert moved.grad is None
