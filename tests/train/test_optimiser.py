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
    replace(SHAPE, attention=Linear(residual=True, causal=True), feed_forward_multiple=0),
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


def test_steps_are_those_of_torch_s_adamw_bit_for_bit() -> None:
    recipe = replace(RECIPE, beta1=0.8, beta2=0.95)
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 2, generator=generator), torch.randn(4, generator=generator)]
    ours, theirs = ([nn.Parameter(value.clone()) for value in start] for _ in range(2))
    numbers = [{"rate_factor": 1.0, "weight_decay": 0.3, "eps": 1e-4},
               {"rate_factor": 0.5, "weight_decay": 0.0, "eps": 1e-2}]  # fmt: skip
    groups = [ParameterGroup(params=[p], **n) for p, n in zip(ours, numbers, strict=True)]
    optimiser = AdamW(groups, recipe, torch.device("cpu"))
    plain = torch.optim.AdamW(
        [{"params": [p], **n} for p, n in zip(theirs, numbers, strict=True)],
        betas=(0.8, 0.95),
        fused=True,
    )
    for step, rate in enumerate((0.1, 0.3, 0.2)):
        optimiser.set_rate(rate)
        for group in plain.param_groups:
            group["lr"] = rate * group["rate_factor"]
        for mine, other in zip(ours, theirs, strict=True):
            mine.grad = torch.randn(mine.shape, generator=generator)
            other.grad = mine.grad.clone()
        if step == 1:  # a parameter without a gradient stays where it is
            ours[1].grad = theirs[1].grad = None
        optimiser.step()
        plain.step()
        assert all(torch.equal(mine, other) for mine, other in zip(ours, theirs, strict=True))
    optimiser.zero_grad()
    assert all(parameter.grad is None for parameter in ours)
