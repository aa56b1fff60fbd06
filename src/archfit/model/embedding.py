"""From token ids to vectors: the embedding of tokens or patches, plus positions.

Shape letters: B batch, N positions, D width, S tokens of the source (N times those of a patch).
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from archfit.model.tables import RowTable
from archfit.spec import Architecture, Patches


class Embedding(nn.Module):
    """One vector a position: what stands there, and where it stands."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.input = architecture.input
        width = architecture.width
        self.tokens = RowTable(architecture.input.dimensions, width, architecture.embedding)
        self.positions = RowTable(architecture.context, width, architecture.positions)

    def forward(self, tokens_BS: Int[Tensor, "B S"]) -> Float[Tensor, "B N D"]:
        """Embed rows of up to `context` positions."""
        x_BND = self._content(tokens_BS)
        return x_BND + self.positions.matrix()[: x_BND.shape[1]]

    def _content(self, tokens_BS: Int[Tensor, "B S"]) -> Float[Tensor, "B N D"]:
        if not isinstance(self.input, Patches):
            return self.tokens.look_up(tokens_BS)
        patches_BNT = tokens_BS.unflatten(1, (-1, self.input.size))
        if self.input.encoding == "scalar":
            with torch.autocast(tokens_BS.device.type, enabled=False):
                return self._standardised(patches_BNT) @ self.tokens.matrix()
        place_T = torch.arange(self.input.size, device=tokens_BS.device)
        return self.tokens.look_up_sums(patches_BNT + place_T * self.input.vocab)

    def _standardised(self, levels_BNT: Int[Tensor, "B N T"]) -> Float[Tensor, "B N T"]:
        """Levels 0..V-1 as numbers of mean 0 and variance 1, were all levels equally frequent."""
        middle = (self.input.vocab - 1) / 2
        return (levels_BNT - middle) / math.sqrt((self.input.vocab**2 - 1) / 12)
