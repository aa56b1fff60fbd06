"""The sum of the residual stream and a branch, and its layer norm, as one operation.

Shape letters: B batch, N positions, D width.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archfit.model.affine import can_fuse

NORM_EPSILON = 1e-5


class AddNorm(nn.Module):
    """x + branch_multiplier branch, and the norm of that sum."""

    def __init__(self, width: int, *, branch_multiplier: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.branch_multiplier = branch_multiplier

    def forward(
        self, x_BND: Float[Tensor, "B N D"], branch_BND: Float[Tensor, "B N D"] | None
    ) -> tuple[Float[Tensor, "B N D"], Float[Tensor, "B N D"]]:
        """The stream with the branch added, and its norm."""
        if branch_BND is not None and can_fuse(x_BND):
            from archfit.model.kernels import fused_add_norm

            return fused_add_norm(x_BND, branch_BND, self.weight, self.bias, self.branch_multiplier)
        if branch_BND is not None:
            x_BND = x_BND + self._scaled(branch_BND)
        return x_BND, F.layer_norm(x_BND, self.weight.shape, self.weight, self.bias, NORM_EPSILON)

    def _scaled(self, branch_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return branch_BND if self.branch_multiplier == 1 else self.branch_multiplier * branch_BND
