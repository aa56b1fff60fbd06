"""The analysed network against the recursion of the proofs, and who sees whom."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from archfit.model.attention import LinearAttention
from archfit.spec import Attention, Linear, Softmax, standard_architecture
from tests_models import random_model

SHAPE = standard_architecture(depth=3, width=6, heads=2, vocab=5, context=5)


def _trunk(attention: Attention, *, heads: int = 2, head_dim: int = 3) -> nn.Module:
    multiple = 0 if isinstance(attention, Linear) else 4
    shape = replace(
        SHAPE, attention=attention, feed_forward_multiple=multiple, heads=heads, head_dim=head_dim
    )
    return random_model(shape, dtype=torch.float64).trunk


def _stream() -> Tensor:
    return torch.randn(1, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def _weights(block: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """A_h = W^O_h W^V_h and B_h = (W^K_h)^T W^Q_h of each head."""
    assert isinstance(block, LinearAttention)
    q, k, v = block.qkv.weight.reshape(3, block.heads, -1, 6)
    o = block.out.weight.reshape(6, block.heads, -1)
    return [(o[:, h] @ v[h], k[h].T @ q[h]) for h in range(block.heads)]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("heads", "head_dim"), [(2, 3), (1, 6), (3, 5)])
def test_unmasked_linear_trunk_is_the_polynomial_of_the_proofs(
    residual: bool, heads: int, head_dim: int
) -> None:
    """Y_L = F_L(X X^T) X with F' = (F) + sum_h A_h F S F^T B_h F; columns of X are positions."""
    trunk = _trunk(Linear(residual=residual, causal=False), heads=heads, head_dim=head_dim)
    X = _stream()[0].T
    S, F = X @ X.T, torch.eye(6, dtype=torch.float64)
    for block in trunk.blocks:  # type: ignore[union-attr]  # a ModuleList
        terms = [A @ F @ S @ F.T @ B @ F for A, B in _weights(block)]
        F = sum(terms, start=F if residual else torch.zeros_like(F))
    expected_BND = (F @ X).T[None]
    scale = expected_BND.abs().max().item()
    torch.testing.assert_close(trunk(_stream()), expected_BND, atol=1e-9 * scale, rtol=0)


@pytest.mark.parametrize("residual", [False, True])
def test_causal_linear_trunk_sums_over_itself_and_earlier_positions(residual: bool) -> None:
    trunk = _trunk(Linear(residual=residual, causal=True), heads=3, head_dim=5)
    y = list(_stream()[0])
    for block in trunk.blocks:  # type: ignore[union-attr]  # a ModuleList
        y = [
            sum(
                (A @ y[j] * (y[j] @ B @ y[i]) for A, B in _weights(block) for j in range(i + 1)),
                start=y[i] if residual else torch.zeros_like(y[i]),
            )
            for i in range(5)
        ]
    expected_BND = torch.stack(y)[None]
    scale = expected_BND.abs().max().item()
    torch.testing.assert_close(trunk(_stream()), expected_BND, atol=1e-9 * scale, rtol=0)


def _seen_from(trunk: nn.Module, position: int) -> list[bool]:
    """Which positions of the input move the output at `position`."""
    x_BND = _stream().requires_grad_()
    weights_D = torch.arange(1.0, 7.0, dtype=torch.float64)  # a plain sum after a norm is constant
    (slope_BND,) = torch.autograd.grad(trunk(x_BND)[0, position] @ weights_D, x_BND)
    seen: list[bool] = slope_BND[0].ne(0).any(-1).tolist()
    return seen


@pytest.mark.parametrize(
    "attention",
    [Softmax(), Linear(residual=False, causal=True), Linear(residual=True, causal=True)],
)
def test_a_position_sees_itself_and_those_before_it(attention: Attention) -> None:
    assert _seen_from(_trunk(attention), 2) == [True, True, True, False, False]


@pytest.mark.parametrize("residual", [False, True])
def test_without_a_mask_a_position_sees_all(residual: bool) -> None:
    assert _seen_from(_trunk(Linear(residual=residual, causal=False)), 2) == [True] * 5
