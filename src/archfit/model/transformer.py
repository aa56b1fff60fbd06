"""The whole network: embedding, blocks, head; and the weights that it starts from.

A block hands on two things: the residual stream, and what its last branch adds to it. The sum is
made where the next norm needs it, so that a GPU reads and writes the stream once for both.

The first weights are a function of seed and parameter name alone. Two networks that differ in one
table start with the same blocks, so a comparison at equal seeds is a paired one.

A table starts with entries of one standard deviation whether it is full or factorised. In a
factorised one the rows carry that size and the mixing matrix keeps it: the identity where `inner`
reaches the width, so that the table starts as a full one does, and orthogonal rows below that. A
step of Adam on a row then moves the product as far as it moves a full table (docs/LOG.md).

A head starts so small that its logits have a standard deviation of 0.1 or less at every width: the
first loss is within 0.01 of ln V. Not at zero, which would give ln V exactly: then nothing below
the head has a gradient at first, and training is worse for long after (docs/LOG.md).

Shape letters: B batch, N positions, D width, S tokens of the source (N times those of a patch), P
predictions a position.
"""

import hashlib
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from archfit.model import layers
from archfit.model.layers import Branch, RowTable, Stream
from archfit.model.padding import part_inside, widened
from archfit.model.parametrisation import INITIAL_STD, Parametrisation
from archfit.spec import Architecture, Linear, Patches, Rotary, Tied

LOGIT_STD = 0.1  # the first loss is then ln V + 0.1^2 / 2


class Embedding(nn.Module):
    """One vector a position: what stands there, and where it stands."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.input = architecture.input
        width = architecture.width
        self.tokens = RowTable(architecture.input.dimensions, width, architecture.embedding)
        self.positions = None
        if not isinstance(architecture.positions, Rotary):
            self.positions = RowTable(architecture.context, width, architecture.positions)

    def forward(self, tokens_BS: Int[Tensor, "B S"]) -> Stream:
        """Embed rows of up to `context` positions."""
        x_BND = self._content(tokens_BS)
        if self.positions is None:
            return x_BND
        return x_BND + self.positions.matrix()[: x_BND.shape[1]]

    def _content(self, tokens_BS: Int[Tensor, "B S"]) -> Stream:
        if not isinstance(self.input, Patches):
            return self.tokens.look_up(tokens_BS[..., None])
        patches_BNT = tokens_BS.unflatten(1, (-1, self.input.size))
        if self.input.encoding == "scalar":
            # Levels 0..V-1 are numbers of mean 0 and variance 1, were all equally frequent.
            middle, std = (self.input.vocab - 1) / 2, math.sqrt((self.input.vocab**2 - 1) / 12)
            with torch.autocast(tokens_BS.device.type, enabled=False):
                content_BND: Tensor = (patches_BNT - middle) / std @ self.tokens.matrix()
                return content_BND
        place_T = torch.arange(self.input.size, device=tokens_BS.device)
        return self.tokens.look_up(patches_BNT + place_T * self.input.vocab)


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x)); the last sum is left to the next."""

    def __init__(self, settings: layers.BlockSettings) -> None:
        super().__init__()
        shape = settings.architecture
        self.attention_norm, self.attention = layers.AddNorm(settings), layers.Attention(settings)
        self.feed_forward_norm = layers.AddNorm(settings)
        is_gated = shape.style.is_gated
        self.feed_forward = layers.FeedForward(shape.width, shape.feed_forward, is_gated=is_gated)
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, x_BND: Stream, branch: Branch | None) -> tuple[Stream, Branch]:
        """The stream after attention, and what the feed-forward layer adds to it."""
        x_BND, normed_BND = self.attention_norm(x_BND, branch)
        attended = self._dropped(self.attention(normed_BND))
        x_BND, normed_BND = self.feed_forward_norm(x_BND, attended)
        return x_BND, self._dropped(self.feed_forward(normed_BND))

    def _dropped(self, branch: Branch) -> Branch:
        return Branch(self.dropout(branch.whole())) if self.dropout.p else branch


class SoftmaxTrunk(nn.Module):
    """Pre-norm blocks and the last norm."""

    def __init__(self, settings: layers.BlockSettings) -> None:
        super().__init__()
        depth = settings.architecture.depth
        self.blocks = nn.ModuleList(Block(settings) for _ in range(depth))
        self.norm = layers.AddNorm(settings)

    def forward(self, x_BND: Stream) -> Stream:
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
        depth = architecture.depth
        blocks = (layers.LinearAttention(architecture, attention) for _ in range(depth))
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x_BND: Stream) -> Stream:
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
        self.copied: list[nn.Parameter] = []
        self.copies: list[Tensor] = []
        settings = layers.BlockSettings(architecture, numbers, dropout, self.inside)
        self.trunk = (
            LinearTrunk(architecture, architecture.attention)
            if isinstance(architecture.attention, Linear)
            else SoftmaxTrunk(settings)
        )
        self.head = None
        if not isinstance(architecture.head, Tied):
            rows, width = architecture.input.predictions, architecture.width
            self.head = RowTable(rows, width, architecture.head)

    @classmethod
    def around(cls, small: "Transformer", numbers: Parametrisation) -> "Transformer":
        """The same network in sizes that a GPU is fast at; `small` itself where it has them."""
        shape = small.architecture
        if widened(shape) == shape:
            return small
        large = cls(widened(shape), numbers, dropout=0.0, inside=shape)
        weights = dict(small.named_parameters())
        with torch.no_grad():
            for name, weight in large.named_parameters():
                weight.zero_()
                part = part_inside(name, weight, shape)
                part.copy_(weights[name].view(part.shape))
        return large

    def copy_weights(self) -> None:
        """Keep bfloat16 copies of matrices and biases in blocks; who calls the network refreshes
        them. A cast of each where it is used is one kernel in seven of a small network."""
        linear = [part for part in self.trunk.modules() if isinstance(part, nn.Linear)]
        self.copied = [weight for layer in linear for weight in layer.parameters()]
        self.copies = [torch.empty_like(w, dtype=torch.bfloat16) for w in self.copied]
        for weight, copy in zip(self.copied, self.copies, strict=True):
            weight.coarse_copy = copy  # type: ignore[attr-defined]  # see product_kernels.coarse

    @torch.no_grad()
    def refresh_copies(self) -> None:
        """Make them what the weights are now."""
        if self.copies:
            torch._foreach_copy_(self.copies, [*self.copied])

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


def initialise(model: Transformer, numbers: Parametrisation, *, seed: int) -> None:
    """Fill the weights of `model` in place."""
    shape = model.architecture
    # Vectors that the head reads have entries of size 1, so a row of std s gives s sqrt(width).
    head_std = LOGIT_STD / (math.sqrt(shape.width) * numbers.logit_multiplier)
    head_std = min(INITIAL_STD, head_std)
    std = head_std if model.head is None else numbers.table_std
    parts = shape.input.tokens_per_position  # rows that add up to one vector
    with torch.no_grad():
        _fill_table(model.embedding.tokens, std / math.sqrt(parts), "embedding.tokens", seed)
        if model.embedding.positions is not None:
            _fill_table(model.embedding.positions, std, "embedding.positions", seed)
        if model.head is not None:
            _fill_table(model.head, head_std, "head", seed)
        for at, block in enumerate(model.trunk.blocks):
            name = f"trunk.blocks.{at}"
            if isinstance(block, Block):
                _fill_block(block, numbers, name, seed)
            elif isinstance(block, layers.LinearAttention):
                # Sizes that keep a cubic layer of `context` positions from growing.
                _normal(block.qkv.weight, 1 / math.sqrt(shape.width), f"{name}.qkv", seed)
                out_std = 1 / (shape.context * math.sqrt(block.out.in_features))
                _normal(block.out.weight, out_std, f"{name}.out", seed)


def _fill_table(table: RowTable, std: float, name: str, seed: int) -> None:
    if table.mix_ID is None:
        _normal(table.rows_RI, std, f"{name}.rows", seed)
    else:
        inner, width = table.mix_ID.shape
        # The coordinates that a full table has are drawn like its own, the surplus by itself.
        _normal(table.rows_RI[:, :width], std, f"{name}.rows", seed)
        _normal(table.rows_RI[:, width:], std, f"{name}.surplus", seed)
        if inner >= width:
            nn.init.eye_(table.mix_ID)
        else:
            gain, generator = math.sqrt(width / inner), _generator(f"{name}.mix", seed)
            nn.init.orthogonal_(table.mix_ID, gain, generator=generator)


def _fill_block(block: Block, numbers: Parametrisation, name: str, seed: int) -> None:
    for linear, std, part in (
        (block.attention.qkv, numbers.hidden_std, "qkv"),
        (block.attention.out, numbers.projection_std, "out"),
        (block.feed_forward.up, numbers.hidden_std, "up"),
        (block.feed_forward.down, numbers.projection_std, "down"),
    ):
        _normal(linear.weight, std, f"{name}.{part}", seed)
        if linear.bias is not None:
            linear.bias.zero_()


def _normal(weight: Tensor, std: float, name: str, seed: int) -> None:
    weight.copy_(torch.empty(weight.shape).normal_(0.0, std, generator=_generator(name, seed)))


def _generator(name: str, seed: int) -> torch.Generator:
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little"))
