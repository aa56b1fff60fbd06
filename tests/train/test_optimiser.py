from dataclasses import replace

import pytest
import torch

from archfit.model import Transformer, parametrisation
from archfit.spec import Architecture, Factorised, Linear, Tied, standard_architecture
from archfit.train.optimiser import build_optimiser, set_learning_rate
from tests_training import RECIPE

SHAPE = standard_architecture(depth=8, width=512, heads=8, vocab=9, context=4)
SHAPES = [
    SHAPE,
    replace(SHAPE, embedding=Factorised(inner=3), positions=Factorised(inner=2), head=Tied()),
    replace(SHAPE, attention=Linear(residual=True, causal=True), feed_forward_multiple=0),
]


def groups_by_name(shape: Architecture, rule: str) -> dict[str, dict[str, float]]:
    with torch.device("meta"):
        numbers = parametrisation(shape, rule)  # type: ignore[arg-type]  # one of two
        model = Transformer(shape, numbers, dropout=0.0)
        recipe = replace(RECIPE, weight_decay=0.1)
        optimiser = build_optimiser(model, recipe, numbers, torch.device("cpu"))
    set_learning_rate(optimiser, 1.0)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = [(names[id(p)], group) for group in optimiser.param_groups for p in group["params"]]
    assert sorted(name for name, _ in found) == sorted(names.values())
    return dict(found)


@pytest.mark.parametrize("shape", SHAPES)
def test_matrices_decay_and_vectors_do_not(shape: Architecture) -> None:
    for name, group in groups_by_name(shape, "standard").items():
        is_vector = name.endswith(("bias", "norm.weight"))
        assert group["weight_decay"] == (0.0 if is_vector else 0.1), name
        assert group["eps"] == 1e-8
        assert name.endswith("mix_ID") or group["lr"] == 1.0


def test_a_mixing_matrix_learns_at_two_over_its_inner_size() -> None:
    tables = {"embedding": Factorised(inner=64), "positions": Factorised(inner=2)}
    shape = replace(SHAPE, head=Factorised(inner=3), **tables)  # type: ignore[arg-type]  # they fit
    groups = groups_by_name(shape, "standard")
    rates = [groups[f"{table}.mix_ID"]["lr"] for table in ("embedding.tokens", "head")]
    assert rates == pytest.approx([2 / 64, 2 / 3])
    assert groups["embedding.positions.mix_ID"]["lr"] == 1.0
    assert groups["embedding.tokens.rows_RI"]["lr"] == 1.0


def test_completep_scales_the_matrices_of_blocks_by_width_and_depth() -> None:
    """Table 1 of arXiv:2505.01618 with m_d = 512 / 256 and m_L = 8 / 2."""
    for name, group in groups_by_name(SHAPE, "completep").items():
        is_inside, is_matrix = ".blocks." in name, not name.endswith(("bias", "norm.weight"))
        assert group["lr"] == (1 / 2 if is_inside and is_matrix else 1), name
        decay = (0.1 * 2 if is_inside else 0.1) if is_matrix else 0
        assert group["weight_decay"] == pytest.approx(decay), name
        assert group["eps"] == pytest.approx(1e-8 / 8 if is_inside else 1e-8 / 2), name
