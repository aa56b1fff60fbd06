"""x W^T + b, and where a GPU kernel may stand in for plain torch."""

import importlib.util

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

LONGEST_TILE = 128  # positions whose attention scores a GPU's processor holds at once
HAS_TRITON = importlib.util.find_spec("triton") is not None


def can_fuse(x: Tensor) -> bool:
    """Whether the kernels of kernels.py may be used on it."""
    return x.is_cuda and HAS_TRITON


class Affine(nn.Linear):
    """A linear layer with bias, whose gradient does not slow a GPU down."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)

    def forward(self, x: Float[Tensor, "B N inputs"]) -> Float[Tensor, "B N outputs"]:
        """The product with the weight, plus the bias."""
        return affine(x, self.weight, self.bias)


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W^T + b."""
    if can_fuse(x) and torch.is_autocast_enabled("cuda"):
        from archfit.model.kernels import fused_affine

        return fused_affine(x, weight, bias)
    return F.linear(x, weight, bias)
