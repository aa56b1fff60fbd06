"""Each layer against its formula written out."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from archfit.model import parametrisation
from archfit.model.layers import (
    AddNorm,
    Attention,
    BlockSettings,
    Branch,
    FeedForward,
    RowTable,
    head_padding,
)
from archfit.spec import Architecture, Factorised, Full, Rotary, standard_architecture

SHAPE = standard_architecture(depth=1, width=12, heads=3, vocab=7, context=6)
NARROW = standard_architecture(depth=1, width=6, heads=3, vocab=7, context=6)
LLAMA = replace(NARROW, block="llama", positions=Rotary())
ROWS, WIDTH = 12, 8


def _settings(
    shape: Architecture, *, branch_multiplier: float = 1.0, dropout: float = 0.0
) -> BlockSettings:
    numbers = parametrisation(shape, "standard")
    numbers = replace(numbers, residual_multiplier=branch_multiplier, score_multiplier=0.7)
    return BlockSettings(shape, numbers, dropout, shape)


@pytest.mark.parametrize("multiplier", [1.0, 0.25])
def test_the_sum_is_centred_divided_by_its_deviation_scaled_and_shifted(multiplier: float) -> None:
    torch.manual_seed(0)
    layer = AddNorm(_settings(NARROW, branch_multiplier=multiplier)).double()
    assert layer.bias is not None
    layer.weight.data.normal_()
    layer.bias.data.normal_()
    x_BND, branch_BND = torch.randn(2, 2, 3, 6, dtype=torch.float64)
    bias_D = torch.randn(6, dtype=torch.float64)
    total_BND, normed_BND = layer(x_BND, Branch(branch_BND, bias_D))
    expected_BND = x_BND + multiplier * (branch_BND + bias_D)
    centred_BND = expected_BND - expected_BND.mean(-1, keepdim=True)
    unit_BND = centred_BND / (centred_BND.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(total_BND, expected_BND, atol=1e-12, rtol=0)
    torch.testing.assert_close(normed_BND, unit_BND * layer.weight + layer.bias, atol=1e-12, rtol=0)


def test_an_rms_norm_divides_by_the_root_of_the_mean_square() -> None:
    torch.manual_seed(0)
    layer = AddNorm(_settings(LLAMA, branch_multiplier=0.5)).double()
    layer.weight.data.normal_()
    x_BND, branch_BND = torch.randn(2, 2, 3, 6, dtype=torch.float64)
    total_BND, normed_BND = layer(x_BND, Branch(branch_BND))
    expected_BND = x_BND + 0.5 * branch_BND
    unit_BND = expected_BND / (expected_BND.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(total_BND, expected_BND, atol=1e-12, rtol=0)
    torch.testing.assert_close(normed_BND, unit_BND * layer.weight, atol=1e-12, rtol=0)


def test_without_a_branch_the_stream_stays_as_it_is() -> None:
    x_BND = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(0))
    total_BND, normed_BND = AddNorm(_settings(NARROW, branch_multiplier=0.25))(x_BND, None)
    assert torch.equal(total_BND, x_BND)
    assert normed_BND.mean(-1).abs().max() < 1e-6


def _attention(heads: int, head_dim: int, *, dropout: float = 0.0) -> Attention:
    torch.manual_seed(0)
    shape = replace(SHAPE, heads=heads, head_dim=head_dim)
    return Attention(_settings(shape, dropout=dropout)).double()


def _stream() -> Tensor:
    return torch.randn(2, 6, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _written_out(layer: Attention, x_BND: Tensor) -> Tensor:
    """Position by position and head by head, from rows of the weights."""
    H, K = layer.heads, layer.head_dim
    q_HKD, k_HKD, v_HKD = layer.qkv.weight.reshape(3, H, K, -1)
    q_HK, k_HK, v_HK = layer.qkv.bias.reshape(3, H, K)
    y_BND = torch.zeros_like(x_BND) + layer.out.bias
    for h in range(H):
        out_DK = layer.out.weight[:, h * K : (h + 1) * K]
        for i in range(x_BND.shape[1]):
            q_BK = x_BND[:, i] @ q_HKD[h].T + q_HK[h]
            k_BNK = x_BND[:, : i + 1] @ k_HKD[h].T + k_HK[h]
            v_BNK = x_BND[:, : i + 1] @ v_HKD[h].T + v_HK[h]
            weight_BN = (0.7 * torch.einsum("bk,bnk->bn", q_BK, k_BNK)).exp()
            mixed_BK = torch.einsum("bn,bnk->bk", weight_BN, v_BNK) / weight_BN.sum(1)[:, None]
            y_BND[:, i] += mixed_BK @ out_DK.T
    return y_BND


@pytest.mark.parametrize(("heads", "head_dim"), [(3, 4), (1, 12), (2, 5), (5, 7)])
def test_heads_of_any_number_and_size_are_softmax_attention(heads: int, head_dim: int) -> None:
    layer, x_BND = _attention(heads, head_dim), _stream()
    torch.testing.assert_close(layer(x_BND).whole(), _written_out(layer, x_BND), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("head_dim", "padded"),
    [(52, 64), (240, 256), (72, 72), (340, 344), (64, 64), (48, 48), (20, 24)],
)
def test_a_head_grows_to_a_fast_size_that_is_near(head_dim: int, padded: int) -> None:
    assert head_dim + head_padding(head_dim) == padded


def test_padding_in_the_weights_changes_nothing() -> None:
    layer, x_BND = _attention(2, 5), _stream()
    padded_BND = layer._padded_attention(x_BND, 3)
    torch.testing.assert_close(padded_BND, layer(x_BND).whole(), atol=1e-12, rtol=0)


def test_dropout_acts_in_training_only() -> None:
    layer, x_BND = _attention(2, 5, dropout=0.5), _stream()
    assert not torch.equal(layer(x_BND).whole(), layer(x_BND).whole())
    layer.eval()
    assert torch.equal(layer(x_BND).whole(), layer(x_BND).whole())


@pytest.mark.parametrize("is_gated", [True, False])
def test_the_feed_forward_layer_is_its_formula(is_gated: bool) -> None:
    torch.manual_seed(0)
    layer, x_BND = FeedForward(12, 5, is_gated=is_gated).double(), _stream()
    if is_gated:
        gate, value = x_BND @ layer.up.weight[:5].T, x_BND @ layer.up.weight[5:].T
        expected_BND = (gate / (1 + (-gate).exp()) * value) @ layer.down.weight.T
    else:
        z = x_BND @ layer.up.weight.T + layer.up.bias
        below = (1 + torch.erf(z / 2**0.5)) / 2
        expected_BND = (z * below) @ layer.down.weight.T + layer.down.bias
    torch.testing.assert_close(layer(x_BND).whole(), expected_BND, atol=1e-12, rtol=0)


def _table(inner: int) -> RowTable:
    table = RowTable(ROWS, WIDTH, Factorised(inner=inner))
    generator = torch.Generator().manual_seed(inner)
    for weight in table.parameters():
        weight.data.normal_(generator=generator)
    return table


def _merged(table: RowTable) -> RowTable:
    assert table.mix_ID is not None
    full = RowTable(ROWS, WIDTH, Full())
    full.rows_RI.data.copy_(torch.einsum("ri,id->rd", table.rows_RI.data, table.mix_ID.data))
    return full


@pytest.mark.parametrize("inner", [3, 8, 20])
@pytest.mark.parametrize("positions", [2, 40])  # fewer ids than rows, and more
def test_both_ways_to_look_up_read_the_rows_of_the_product(inner: int, positions: int) -> None:
    table = _table(inner)
    ids_BN = torch.arange(2 * positions).reshape(2, positions) * 5 % ROWS
    expected_BND = _merged(table).rows_RI[ids_BN]
    torch.testing.assert_close(table.look_up(ids_BN[..., None]), expected_BND, atol=1e-5, rtol=0)


def test_many_ids_are_looked_up_in_the_product_and_few_in_the_rows() -> None:
    """Either way the larger of two matrices is never multiplied."""
    table = _table(3)
    shapes = []
    for positions in (4, 40):
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: shapes.append(t.shape), lambda _: _
        ):
            table.look_up(torch.zeros(1, positions, 1, dtype=torch.long))
    assert torch.Size([4, 3]) in shapes
    assert torch.Size([12, 3]) in shapes
    assert torch.Size([40, 3]) not in shapes


@pytest.mark.parametrize("inner", [3, 8, 20])
def test_sums_and_projections_are_those_of_the_product(inner: int) -> None:
    table = _table(inner)
    matrix_RD = _merged(table).rows_RI
    ids_BNT = torch.arange(2 * 3 * 4).reshape(2, 3, 4) * 7 % ROWS
    sums_BND = matrix_RD[ids_BNT].sum(2)
    torch.testing.assert_close(table.look_up(ids_BNT), sums_BND, atol=1e-5, rtol=0)
    h_BND = torch.randn(2, 3, WIDTH, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(table.project(h_BND), h_BND @ matrix_RD.T, atol=1e-5, rtol=1e-5)


def test_the_product_is_not_rounded_under_autocast() -> None:
    table = _table(3)
    exact_RD = _merged(table).rows_RI
    few_BNT, all_BNT = torch.arange(4)[None, :, None], torch.arange(ROWS)[None, :, None]
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(table.look_up(few_BNT)[0], exact_RD[:4], atol=1e-6, rtol=0)
        torch.testing.assert_close(table.look_up(all_BNT)[0], exact_RD, atol=1e-6, rtol=0)
