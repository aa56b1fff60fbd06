"""The feed-forward layer by our kernels, as a function with a gradient.

row_kernels.py says when kernels are used. Shape letters: M rows, D width, U hidden units (twice as
many rows in a gated `up`: gates first).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from archfit.model.feed_forward_kernels import (
    activated,
    activated_backward,
    activation_programs,
    activation_tile,
)
from archfit.model.narrow_feed_forward_kernels import (
    BACK,
    FORWARDS,
    narrow_backward,
    narrow_forward,
    narrow_programs,
    narrow_tile,
)
from archfit.model.products import coarse, weight_gradient
from archfit.model.tiles import Work, Zeros

WIDEST, WIDEST_GATED = 80, 128  # beyond them torch's products around the activation are faster


def is_one_kernel(width: int, *, is_gated: bool) -> bool:
    """Each way, products included."""
    return width <= (WIDEST_GATED if is_gated else WIDEST)


class _FusedFeedForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, up, bias, down_DU):
        x_MD = x.reshape(-1, x.shape[-1]).contiguous()
        ctx.shares = [getattr(weight, "shares", None) for weight in (up, bias, down_DU)]
        up, down_DU = coarse(up, x.dtype), coarse(down_DU, x.dtype)
        bias = None if bias is None else coarse(bias, x.dtype)
        if is_one_kernel(x.shape[-1], is_gated=len(up) != down_DU.shape[1]):
            ctx.save_for_backward(x_MD, up, bias, down_DU)
            return narrow_forward(x_MD, up, bias, down_DU).view(x.shape)
        pre = F.linear(x_MD, up, bias)
        hidden_MU = activated(pre, down_DU.shape[1])
        ctx.save_for_backward(x_MD, up, bias, down_DU, pre, hidden_MU)
        return torch.mm(hidden_MU, down_DU.t()).view(x.shape)

    @staticmethod
    def backward(ctx, d_out):
        x_MD, up, bias, down_DU, *made = ctx.saved_tensors
        d_out_MD = d_out.reshape(x_MD.shape).contiguous()
        for_up, for_bias, for_down = ctx.shares
        if made:
            pre, hidden_MU = made
            d_hidden_MU = torch.mm(d_out_MD, down_DU)
            d_pre, d_bias = activated_backward(
                d_hidden_MU, pre, has_bias=bias is not None, shares=for_bias
            )
            d_x = torch.mm(d_pre, up)
        else:
            saved = x_MD, up, bias, down_DU
            d_x, d_pre, hidden_MU, d_bias = narrow_backward(saved, d_out_MD, for_bias)
        d_up, d_down = (
            weight_gradient(d_pre, x_MD, for_up),
            weight_gradient(d_out_MD, hidden_MU, for_down),
        )
        return d_x.view(d_out.shape), d_up, d_bias, d_down


def fused_feed_forward(x: Tensor, up: Tensor, bias: Tensor | None, down: Tensor) -> Tensor:
    """gelu(x up^T + bias) down^T, or silu(gate) value down^T where `up` has twice as many rows as
    `down` has columns; in the precision of x, without the last bias."""
    return _FusedFeedForward.apply(x, up, bias, down)


def bias_shares(rows: int, width: int, units: int) -> int:
    """Of the gradient of the bias of `up`."""
    if is_one_kernel(width, is_gated=False):
        return narrow_programs(rows, width, units)
    return activation_programs(rows, units, has_bias=True)


def feed_forward_work(width: int, units: int, zeros: Zeros, *, is_gated: bool) -> Work:
    """A run each way."""
    x, slope, pre = zeros(16, width), zeros(16, units), zeros(16, units * (1 + is_gated))
    key = "feed forward", *activation_tile(units, is_gated=is_gated).values()
    if not is_one_kernel(width, is_gated=is_gated):
        return {
            (*key, 0): lambda: activated(pre, units),
            (*key, 1): lambda: activated_backward(slope, pre, has_bias=not is_gated, shares=None),
        }
    weights = zeros(len(pre[0]), width), None if is_gated else zeros(units), zeros(width, units)
    keys = [
        ("narrow", *narrow_tile(width, units, is_gated=is_gated, way=way).values(), way)
        for way in (FORWARDS, BACK)
    ]
    return {
        keys[FORWARDS]: lambda: narrow_forward(x, *weights),
        keys[BACK]: lambda: narrow_backward((x, *weights), x, None),
    }
