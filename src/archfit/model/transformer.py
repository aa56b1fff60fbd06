"""The whole network: embedding, trunk, head.

Shape letters: B batch, N positions, D width, S tokens of the source, P predictions a position.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn

from archfit.model.embedding import Embedding
from archfit.model.parametrisation import Parametrisation
from archfit.model.tables import RowTable
from archfit.model.trunk import LinearTrunk, SoftmaxTrunk
from archfit.spec import Architecture, Linear, Tied


class Transformer(nn.Module):
    """A decoder-only Transformer of any shape that an Architecture can name.

    Its weights mean nothing until `initialise` or a checkpoint fills them.
    """

    def __init__(
        self, architecture: Architecture, numbers: Parametrisation, *, dropout: float
    ) -> None:
        super().__init__()
        self.architecture = architecture
        self.logit_multiplier = numbers.logit_multiplier
        self.embedding = Embedding(architecture)
        self.dropout = nn.Dropout(dropout)
        self.trunk = (
            LinearTrunk(architecture, architecture.attention)
            if isinstance(architecture.attention, Linear)
            else SoftmaxTrunk(architecture, numbers, dropout=dropout)
        )
        self.head = (
            None
            if isinstance(architecture.head, Tied)
            else RowTable(architecture.input.predictions, architecture.width, architecture.head)
        )

    def forward(self, tokens_BS: Int[Tensor, "B S"]) -> Float[Tensor, "B N P"]:
        """Logits of the next token after each position, or of all tokens of the next patch."""
        h_BND: Tensor = self.trunk(self.dropout(self.embedding(tokens_BS)))
        if self.logit_multiplier != 1:
            h_BND = h_BND * self.logit_multiplier
        table = self.embedding.tokens if self.head is None else self.head
        return table.project(h_BND)
