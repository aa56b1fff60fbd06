"""The whole network: embedding, blocks, head.

A block hands on two things: the residual stream, and what its last branch adds to it. The sum is
made where the next norm needs it, so that a GPU reads and writes the stream once for both.

Shape letters: B batch, N positions, D width, S tokens of the source (N times those of a patch), P
predictions a position.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from archfit.model.layers import (
    AddNorm,
    Attention,
    Branch,
    FeedForward,
    LinearAttention,
    RowTable,
)
from archfit.model.padding import part_inside, widened
from archfit.model.parametrisation import Parametrisation
from archfit.model.products import CoarseCopies
from archfit.spec import Architecture, Linear, Patches, Rotary, Tied


class Embedding(nn.Module):
    """One vector a position: what stands there, and where it stands."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.input = architecture.input
        width = architecture.width
        self.tokens = RowTable(architecture.input.dimensions, width, architecture.embedding)
        self.positions = (
            None
            if isinstance(architecture.positions, Rotary)
            else RowTable(architecture.context, width, architecture.positions)
        )

    def forward(self, tokens_BS: Int[Tensor, "B S"]) -> Float[Tensor, "B N D"]:
        """Embed rows of up to `context` positions."""
        x_BND = self._content(tokens_BS)
        if self.positions is None:
            return x_BND
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


def _norm(architecture: Architecture, numbers: Parametrisation, inside: Architecture) -> AddNorm:
    return AddNorm(
        architecture.width,
        is_centred=architecture.block == "gpt2",
        branch_multiplier=numbers.residual_multiplier,
        true_width=inside.width,
    )


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x)); the last sum is left to the next."""

    def __init__(
        self,
        architecture: Architecture,
        numbers: Parametrisation,
        *,
        dropout: float,
        inside: Architecture,
    ) -> None:
        super().__init__()
        width = architecture.width
        self.attention_norm = _norm(architecture, numbers, inside)
        self.attention = Attention(
            architecture,
            score_multiplier=numbers.score_multiplier,
            dropout=dropout,
            true_head_dim=inside.head_dim,
        )
        self.feed_forward_norm = _norm(architecture, numbers, inside)
        self.feed_forward = FeedForward(
            width, architecture.feed_forward, is_gated=architecture.style.is_gated
        )
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x_BND: Float[Tensor, "B N D"], branch: Branch | None
    ) -> tuple[Float[Tensor, "B N D"], Branch]:
        """The stream after attention, and what the feed-forward layer adds to it."""
        x_BND, normed_BND = self.attention_norm(x_BND, branch)
        attended = self._dropped(self.attention(normed_BND))
        x_BND, normed_BND = self.feed_forward_norm(x_BND, attended)
        return x_BND, self._dropped(self.feed_forward(normed_BND))

    def _dropped(self, branch: Branch) -> Branch:
        return Branch(self.dropout(branch.whole())) if self.dropout.p else branch


class SoftmaxTrunk(nn.Module):
    """Pre-norm blocks and the last norm."""

    def __init__(
        self,
        architecture: Architecture,
        numbers: Parametrisation,
        *,
        dropout: float,
        inside: Architecture,
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            Block(architecture, numbers, dropout=dropout, inside=inside)
            for _ in range(architecture.depth)
        )
        self.norm = _norm(architecture, numbers, inside)

    def forward(self, x_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """What the head reads."""
        branch = None
        for block in self.blocks:
            x_BND, branch = block(x_BND, branch)
        normed_BND: Tensor = self.norm(x_BND, branch)[1]
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


class Transformer(nn.Module):
    """A decoder or encoder of any shape that an Architecture can name.

    Its weights mean nothing until `initialise` or a checkpoint fills them. With `inside` it is the
    larger network around that one (padding.py).
    """

    def __init__(
        self,
        architecture: Architecture,
        numbers: Parametrisation,
        *,
        dropout: float,
        inside: Architecture | None = None,
    ) -> None:
        super().__init__()
        self.architecture = architecture
        self.inside = inside or architecture
        self.logit_multiplier = numbers.logit_multiplier
        self.embedding = Embedding(architecture)
        self.dropout = nn.Dropout(dropout)
        self.trunk = (
            LinearTrunk(architecture, architecture.attention)
            if isinstance(architecture.attention, Linear)
            else SoftmaxTrunk(architecture, numbers, dropout=dropout, inside=self.inside)
        )
        self.head = (
            None
            if isinstance(architecture.head, Tied)
            else RowTable(architecture.input.predictions, architecture.width, architecture.head)
        )

    @classmethod
    def around(cls, small: "Transformer", numbers: Parametrisation) -> "Transformer":
        """The same network in sizes that a GPU is fast at; `small` itself where it has them."""
        shape = small.architecture
        if widened(shape) == shape:
            return small
        large, weights = (
            cls(widened(shape), numbers, dropout=0.0, inside=shape),
            dict(small.named_parameters()),
        )
        with torch.no_grad():
            for name, weight in large.named_parameters():
                weight.zero_()
                part = part_inside(name, weight, shape)
                part.copy_(weights[name].view(part.shape))
        return large

    def copy_weights(self) -> None:
        """Keep bfloat16 copies of all matrices in blocks; who calls the network refreshes them."""
        layers = [part for part in self.trunk.modules() if isinstance(part, nn.Linear)]
        self.coarse_copies = CoarseCopies(layers)

    def forward(
        self, tokens_BS: Int[Tensor, "B S"], places_BM: Int[Tensor, "B M"] | None = None
    ) -> Float[Tensor, "B N P"]:
        """Logits of the next token after each position, or of all tokens of the next patch; of an
        encoder those of the token itself. With `places_BM` only of these positions of each row."""
        h_BND: Tensor = self.trunk(self.dropout(self.embedding(tokens_BS)))
        if places_BM is not None:
            first_B1 = torch.arange(0, h_BND.shape[:2].numel(), h_BND.shape[1], device=h_BND.device)
            flat_M = (first_B1[:, None] + places_BM).flatten()
            h_BND = h_BND.flatten(0, 1).index_select(0, flat_M).unflatten(0, places_BM.shape)
        if self.logit_multiplier != 1:
            h_BND = h_BND * self.logit_multiplier
        table = self.embedding.tokens if self.head is None else self.head
        return table.project(h_BND)
