"""Embeddings against products with explicit one-hot matrices."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from archfit.spec import Factorised, Full, Patches, Table, standard_architecture
from tests_models import random_model, random_tokens

TOKENS = standard_architecture(depth=1, width=12, heads=3, vocab=7, context=5)
TABLES = [Full(), Factorised(inner=4), Factorised(inner=30)]


@pytest.mark.parametrize("table", TABLES)
def test_tokens_are_rows_picked_by_one_hot_vectors(table: Table) -> None:
    model = random_model(replace(TOKENS, embedding=table, positions=table), dtype=torch.float64)
    tokens_BN = random_tokens(TOKENS)
    one_hot_BNV = F.one_hot(tokens_BN, 7).double()
    embedding = model.embedding
    expected_BND = one_hot_BNV @ embedding.tokens.matrix() + embedding.positions.matrix()
    torch.testing.assert_close(embedding(tokens_BN), expected_BND, atol=1e-12, rtol=0)


@pytest.mark.parametrize("table", TABLES)
def test_a_one_hot_patch_is_a_convolution_over_one_hot_vectors(table: Table) -> None:
    """sum_j W_j x_j + p (Wies et al. 2021, eq. 2), with W_j the rows of place j."""
    shape = replace(TOKENS, input=Patches(vocab=7, size=3, encoding="one-hot"), embedding=table)
    embedding = random_model(shape, dtype=torch.float64).embedding
    tokens_BS = random_tokens(shape)
    kernel_DVT = embedding.tokens.matrix().unflatten(0, (3, 7)).permute(2, 1, 0)
    one_hot_BVS = F.one_hot(tokens_BS, 7).double().transpose(1, 2)
    content_BND = F.conv1d(one_hot_BVS, kernel_DVT, stride=3).transpose(1, 2)
    expected_BND = content_BND + embedding.positions.matrix()
    torch.testing.assert_close(embedding(tokens_BS), expected_BND, atol=1e-12, rtol=0)


@pytest.mark.parametrize("table", TABLES)
def test_a_scalar_patch_multiplies_standardised_levels(table: Table) -> None:
    shape = replace(TOKENS, input=Patches(vocab=7, size=3, encoding="scalar"), embedding=table)
    embedding = random_model(shape).embedding
    tokens_BS = random_tokens(shape)
    level_of_V = torch.tensor([-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5])  # sd of 0..6 is 2
    matrix_TD = embedding.tokens.matrix()
    for at in range(5):
        levels_BT = level_of_V[tokens_BS[:, 3 * at : 3 * at + 3]]
        expected_BD = levels_BT @ matrix_TD + embedding.positions.matrix()[at]
        torch.testing.assert_close(embedding(tokens_BS)[:, at], expected_BD, atol=1e-5, rtol=0)


def test_a_short_row_has_the_first_positions() -> None:
    embedding = random_model(TOKENS).embedding
    tokens_BN = random_tokens(TOKENS)
    assert torch.equal(embedding(tokens_BN[:, :2]), embedding(tokens_BN)[:, :2])
