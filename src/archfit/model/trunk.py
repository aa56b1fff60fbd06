"""The blocks between embedding and head.

A block hands on two things: the residual stream, and what its last branch adds to it. The sum is
made where the next norm needs it, so that a GPU reads and writes the stream once for both.

Shape letters: B batch, N positions, D width.
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archfit.model.add_norm import AddNorm
from archfit.model.affine import Affine
from archfit.model.attention import CausalAttention, LinearAttention
from archfit.model.parametrisation import Parametrisation
from archfit.spec import Architecture, Linear


class FeedForward(nn.Module):
    """down(gelu(up(x)))."""

    def __init__(self, width: int, multiple: int) -> None:
        super().__init__()
        self.up = Affine(width, multiple * width)
        self.down = Affine(multiple * width, width)

    def forward(self, x_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Return what the layer adds to the residual stream."""
        y_BND: Tensor = self.down(F.gelu(self.up(x_BND)))
        return y_BND


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x)); the last sum is left to the next."""

    def __init__(
        self, architecture: Architecture, numbers: Parametrisation, *, dropout: float
    ) -> None:
        super().__init__()
        width, multiplier = architecture.width, numbers.residual_multiplier
        self.attention_norm = AddNorm(width, branch_multiplier=multiplier)
        self.attention = CausalAttention(
            architecture, score_multiplier=numbers.score_multiplier, dropout=dropout
        )
        self.feed_forward_norm = AddNorm(width, branch_multiplier=multiplier)
        self.feed_forward = FeedForward(width, architecture.feed_forward_multiple)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x_BND: Float[Tensor, "B N D"], branch_BND: Float[Tensor, "B N D"] | None
    ) -> tuple[Float[Tensor, "B N D"], Float[Tensor, "B N D"]]:
        """The stream after attention, and what the feed-forward layer adds to it."""
        x_BND, normed_BND = self.attention_norm(x_BND, branch_BND)
        attended_BND = self.dropout(self.attention(normed_BND))
        x_BND, normed_BND = self.feed_forward_norm(x_BND, attended_BND)
        return x_BND, self.dropout(self.feed_forward(normed_BND))


class SoftmaxTrunk(nn.Module):
    """Pre-norm blocks and the last norm."""

    def __init__(
        self, architecture: Architecture, numbers: Parametrisation, *, dropout: float
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            Block(architecture, numbers, dropout=dropout) for _ in range(architecture.depth)
        )
        self.norm = AddNorm(architecture.width, branch_multiplier=numbers.residual_multiplier)

    def forward(self, x_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """What the head reads."""
        branch_BND = None
        for block in self.blocks:
            x_BND, branch_BND = block(x_BND, branch_BND)
        normed_BND: Tensor = self.norm(x_BND, branch_BND)[1]
        return normed_BND


class LinearTrunk(nn.Module):
    """The analysed network: Y <- SA(Y), or Y + SA(Y) with residual; nothing else."""

    def __init__(self, architecture: Architecture, attention: Linear) -> None:
        super().__init__()
        self.residual = attention.residual
        self.blocks = nn.ModuleList(
            LinearAttention(architecture, causal=attention.causal)
            for _ in range(architecture.depth)
        )

    def forward(self, x_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Y_L, a polynomial of degree 3^depth in the inputs."""
        for block in self.blocks:
            x_BND = x_BND + block(x_BND) if self.residual else block(x_BND)
        return x_BND
