"""Products of float32 weights in the precision of autocast.

Shape letters: M rows, C outputs, D inputs.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CoarseCopies:
    """Copies of matrices and biases in bfloat16, made anew before every pass by a few kernels.

    A cast for each of them, where it is used, is one kernel in seven of a small network.
    """

    def __init__(self, layers: Iterable[nn.Linear]) -> None:
        self.weights = [weight for layer in layers for weight in layer.parameters()]
        self.copies = [torch.empty_like(w, dtype=torch.bfloat16) for w in self.weights]
        for weight, copy in zip(self.weights, self.copies, strict=True):
            weight.coarse_copy = copy  # type: ignore[attr-defined]  # see `coarse`

    @torch.no_grad()
    def refresh(self) -> None:
        """Make them what the weights are now."""
        torch._foreach_copy_(self.copies, [*self.weights])


def coarse(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """The weight in another precision: the copy that a run keeps, or one for this use."""
    copy = getattr(weight, "coarse_copy", None)
    return weight.to(dtype) if copy is None or copy.dtype != dtype else copy


def weight_gradient(d_y_MC: Tensor, x_MD: Tensor, shares_PCD: Tensor | None) -> Tensor | None:
    """d_y^T x in float32, which a GPU writes at once instead of rounding it to bfloat16 first; or
    only its shares, where the weight has a place for them (gradient_shares.py)."""
    if shares_PCD is not None:
        from archfit.model.product_kernels import product_shares

        product_shares(d_y_MC, x_MD, shares_PCD)
        return None
    if d_y_MC.is_cuda and d_y_MC.dtype != torch.float32:
        return torch.mm(d_y_MC.t(), x_MD, out_dtype=torch.float32)
    return torch.mm(d_y_MC.t(), x_MD).float()


class _FusedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.shares, weight = getattr(weight, "shares", None), coarse(weight, x.dtype)
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, None if bias is None else coarse(bias, x.dtype))

    @staticmethod
    def backward(ctx, d_y):
        x, weight = ctx.saved_tensors
        d_y_MC, x_MD = d_y.reshape(-1, d_y.shape[-1]), x.reshape(-1, x.shape[-1])
        d_x = torch.mm(d_y_MC, weight).view(x.shape)
        return d_x, weight_gradient(d_y_MC, x_MD, ctx.shares), None


def fused_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b in the precision of x. The bias gets no gradient here: whoever reads the result
    makes it, where the gradient of the result is at hand."""
    return _FusedProduct.apply(x, weight, bias)
