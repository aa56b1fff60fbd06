"""Heads of any size, padded or not, against attention written out."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from archfit.model.attention import CausalAttention, head_padding
from archfit.spec import standard_architecture

SHAPE = standard_architecture(depth=1, width=12, heads=3, vocab=7, context=6)


def _attention(heads: int, head_dim: int, *, dropout: float = 0.0) -> CausalAttention:
    torch.manual_seed(0)
    shape = replace(SHAPE, heads=heads, head_dim=head_dim)
    return CausalAttention(shape, score_multiplier=0.7, dropout=dropout).double()


def _stream() -> Tensor:
    return torch.randn(2, 6, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _written_out(layer: CausalAttention, x_BND: Tensor) -> Tensor:
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
    torch.testing.assert_close(layer(x_BND), _written_out(layer, x_BND), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("head_dim", "padded"),
    [(52, 64), (240, 256), (72, 72), (340, 344), (64, 64), (48, 48), (20, 24)],
)
def test_a_head_grows_to_a_fast_size_that_is_near(head_dim: int, padded: int) -> None:
    assert head_dim + head_padding(head_dim) == padded


def test_padding_in_the_weights_changes_nothing() -> None:
    layer, x_BND = _attention(2, 5), _stream()
    padded_BND = layer._padded_attention(x_BND, 3)
    torch.testing.assert_close(padded_BND, layer(x_BND), atol=1e-12, rtol=0)


def test_dropout_acts_in_training_only() -> None:
    layer, x_BND = _attention(2, 5, dropout=0.5), _stream()
    assert not torch.equal(layer(x_BND), layer(x_BND))
    layer.eval()
    assert torch.equal(layer(x_BND), layer(x_BND))
