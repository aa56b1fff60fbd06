"""The Triton kernels against plain torch: on a GPU as they are, elsewhere in Triton's interpreter
(conftest.py asks for it)."""

import importlib.util
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is made for Linux only"
)


def _random(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE).requires_grad_()


def _assert_close(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> None:
    for mine, plain in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, plain, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("width", [8, 12, 144])
@pytest.mark.parametrize("reads_total", [True, False])
def test_sum_norm_and_their_gradients_are_those_of_torch(
    width: int, reads_total: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archfit.model import row_kernels as kernels

    monkeypatch.setattr(kernels, "_norm_programs", lambda _: 3)  # each sums gradients of many tiles
    x_BND, branch_BND = _random(2, 150, width, seed=0), _random(2, 150, width, seed=1)
    weight_D, bias_D = _random(width, seed=2), _random(width, seed=3)
    slope_BND, total_slope_BND = _random(2, 2, 150, width, seed=4).detach()
    leaves = (x_BND, weight_D, bias_D, branch_BND)

    def with_gradients(total_BND: Tensor, normed_BND: Tensor) -> tuple[Tensor, ...]:
        score = (normed_BND * slope_BND).sum()
        if reads_total:
            score = score + (total_BND * total_slope_BND).sum()
        return total_BND, normed_BND, *torch.autograd.grad(score, leaves)

    total_BND = x_BND + 0.3 * branch_BND
    normed_BND = F.layer_norm(total_BND, (width,), weight_D, bias_D, 1e-5)
    ours = with_gradients(*kernels.fused_add_norm(x_BND, branch_BND, weight_D, bias_D, 0.3))
    _assert_close(ours, with_gradients(total_BND, normed_BND))


def test_a_total_that_alone_is_read_passes_its_gradient_on() -> None:
    from archfit.model.row_kernels import fused_add_norm

    x_BND, branch_BND = _random(1, 5, 8, seed=0), _random(1, 5, 8, seed=1)
    total_BND, _ = fused_add_norm(x_BND, branch_BND, _random(8, seed=2), _random(8, seed=3), 0.3)
    slope_BND = _random(1, 5, 8, seed=4).detach()
    slopes = torch.autograd.grad((total_BND * slope_BND).sum(), (x_BND, branch_BND))
    _assert_close(slopes, (slope_BND, 0.3 * slope_BND))


@pytest.mark.parametrize(
    ("positions", "heads", "head_dim"), [(5, 2, 7), (16, 1, 20), (33, 2, 72), (128, 1, 150)]
)
def test_attention_and_its_gradient_are_those_of_torch(
    positions: int, heads: int, head_dim: int
) -> None:
    from archfit.model.attention_kernels import fused_attention

    qkv_BN3HK = _random(2, positions, 3, heads, head_dim, seed=0)
    slope_BNHK = _random(2, positions, heads, head_dim, seed=1).detach()
    scale = 1.1 / math.sqrt(head_dim)

    def with_gradient(y_BNHK: Tensor) -> tuple[Tensor, ...]:
        return y_BNHK, *torch.autograd.grad((y_BNHK * slope_BNHK).sum(), qkv_BN3HK)

    q_BHNK, k_BHNK, v_BHNK = qkv_BN3HK.transpose(1, 3).unbind(2)
    plain_BHNK = F.scaled_dot_product_attention(q_BHNK, k_BHNK, v_BHNK, is_causal=True, scale=scale)
    ours = with_gradient(fused_attention(qkv_BN3HK, scale))
    _assert_close(ours, with_gradient(plain_BHNK.transpose(1, 2)))


def test_an_affine_map_and_its_gradients_are_those_of_torch() -> None:
    from archfit.model.row_kernels import fused_affine

    leaves = _random(3, 50, 8, seed=0), _random(130, 8, seed=1), _random(130, seed=2)
    slope = _random(3, 50, 130, seed=3).detach()
    ours, plain = fused_affine(*leaves), F.linear(*leaves)
    _assert_close(
        (ours, *torch.autograd.grad((ours * slope).sum(), leaves)),
        (plain, *torch.autograd.grad((plain * slope).sum(), leaves)),
    )


def test_sums_of_columns_take_every_row_of_many_programs() -> None:
    from archfit.model.row_kernels import SUM_PROGRAMS, SUM_ROWS, column_sums

    rows = SUM_ROWS * 5 + 3
    values_MC = _random(rows, 70, seed=0).detach()
    assert SUM_PROGRAMS > 5
    _assert_close((column_sums(values_MC),), (values_MC.sum(0),))


@pytest.mark.parametrize("vocab", [7, 257, 5000])
@pytest.mark.parametrize("apart", [0, 5])  # a padded head leaves a gap after each row
def test_losses_and_their_gradients_are_those_of_torch(vocab: int, apart: int) -> None:
    from archfit.model.row_kernels import fused_cross_entropy

    padded_MV = _random(9, vocab + apart, seed=0)
    logits_MV = (3 * padded_MV)[:, :vocab]
    targets_M = torch.arange(9, device=DEVICE) * 4999 % vocab
    slope_M = _random(9, seed=1).detach()
    assert logits_MV.stride(0) == vocab + apart

    def with_gradient(losses_M: Tensor) -> tuple[Tensor, ...]:
        return losses_M, *torch.autograd.grad((losses_M * slope_M).sum(), padded_MV)

    expected = with_gradient(F.cross_entropy(3 * padded_MV[:, :vocab], targets_M, reduction="none"))
    _assert_close(with_gradient(fused_cross_entropy(logits_MV, targets_M)), expected)


def test_columns_that_lie_apart_are_read_right() -> None:
    from archfit.model.row_kernels import fused_cross_entropy

    logits_VM, targets_M = _random(7, 4, seed=0).detach(), torch.arange(4, device=DEVICE)
    expected_M = F.cross_entropy(logits_VM.T, targets_M, reduction="none")
    _assert_close((fused_cross_entropy(logits_VM.T, targets_M),), (expected_M,))


def test_huge_logits_do_not_overflow() -> None:
    from archfit.model.row_kernels import fused_cross_entropy

    logits_MV = torch.zeros(1, 5000, device=DEVICE)
    logits_MV[0, 4999] = 1000.0
    losses = [fused_cross_entropy(logits_MV, torch.tensor([t], device=DEVICE)) for t in (0, 4999)]
    assert [loss.item() for loss in losses] == [1000.0, 0.0]


def test_no_import_hook_stands_between_triton_and_a_kernel() -> None:
    """Triton compiles the source with the names of the function's module; a wrapper has others."""
    from archfit.model import attention_kernels, row_kernels

    found = [
        (kernel, vars(module))
        for module in (attention_kernels, row_kernels)
        for kernel in vars(module).values()
        if hasattr(kernel, "fn")
    ]
    assert len(found) == 8
    assert all(kernel.fn.__globals__ is names for kernel, names in found)
