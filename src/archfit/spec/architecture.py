"""What an architecture is: the numbers that fix a Transformer's shape, and what they cost.

The network is decoder-only, with pre-norm blocks, a GELU feed-forward layer, learned positions
and the biases of GPT-2, or the bare network of the theorems; docs/notation.md names every symbol.
"""

from dataclasses import dataclass

from archfit.spec.attention import Attention, Linear, Softmax
from archfit.spec.checks import check_at_least, check_type
from archfit.spec.inputs import Input, Patches, Tokens
from archfit.spec.tables import Factorised, Full, Head, Table, Tied


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """The shape of one Transformer."""

    depth: int  # L, blocks
    width: int  # d_x, residual stream
    heads: int  # H
    head_dim: int  # d_a; heads * head_dim need not equal width
    attention: Attention
    feed_forward_multiple: int  # hidden units of the feed-forward layer over width
    context: int  # N, positions seen at once
    input: Input
    embedding: Table
    positions: Table
    head: Head

    def __post_init__(self) -> None:
        check_at_least(
            1,
            depth=self.depth,
            width=self.width,
            heads=self.heads,
            head_dim=self.head_dim,
            context=self.context,
        )
        check_type(Attention, attention=self.attention)
        self._check_feed_forward()
        check_type(Input, input=self.input)
        check_type(Table, embedding=self.embedding, positions=self.positions)
        check_type(Head, head=self.head)
        if (
            isinstance(self.head, Tied)
            and isinstance(self.input, Patches)
            and self.input.encoding == "scalar"
        ):
            raise ValueError(
                f"head=tied needs one row for each of {self.input.predictions} predictions, and "
                f"a scalar patch has {self.input.dimensions}; use a full head or one-hot patches"
            )

    def _check_feed_forward(self) -> None:
        is_linear = isinstance(self.attention, Linear)
        if is_linear and self.feed_forward_multiple != 0:
            raise ValueError(
                f"feed_forward_multiple={self.feed_forward_multiple} with linear attention; the "
                "analysed network has no feed-forward layer: use 0"
            )
        check_at_least(0 if is_linear else 1, feed_forward_multiple=self.feed_forward_multiple)

    @property
    def embedding_rank(self) -> int:
        """r, the most dimensions in which inputs differ: min(width, input dimensions, inner)."""
        return self.embedding.inner_limit(min(self.width, self.input.dimensions))

    @property
    def position_rank(self) -> int:
        """r_e, the most dimensions in which positions can differ."""
        return self.positions.inner_limit(min(self.width, self.context))

    @property
    def attention_ratio(self) -> float:
        """H d_a / d_x; above 1 the attention is wider than the stream it reads (Wies 5.3)."""
        return self.heads * self.head_dim / self.width

    @property
    def block_params(self) -> int:
        """Weight matrices of all blocks, L (4 d_x H d_a + 2 m d_x^2): the papers' 12 L d_x^2."""
        attention = 4 * self.width * self.heads * self.head_dim
        feed_forward = 2 * self.feed_forward_multiple * self.width**2
        return self.depth * (attention + feed_forward)

    @property
    def params_without_embeddings(self) -> int:
        """Blocks with their biases and norms, and the last norm; no table of any kind."""
        if isinstance(self.attention, Linear):  # it has neither
            return self.block_params
        biases = 3 * self.heads * self.head_dim + (2 + self.feed_forward_multiple) * self.width
        norms = 4 * self.width  # two a block, each a scale and a shift
        return self.block_params + self.depth * (biases + norms) + 2 * self.width

    @property
    def embedding_params(self) -> int:
        """The input embedding, positions and head; a tied head has none of its own."""
        tables = self.embedding.params(self.input.dimensions, self.width)
        tables += self.positions.params(self.context, self.width)
        return tables + self._head_params

    @property
    def params(self) -> int:
        """All parameters."""
        return self.params_without_embeddings + self.embedding_params

    @property
    def training_flops_per_position(self) -> int:
        """Floating point operations to train on one position, forward and backward.

        6 for each weight that multiplies (blocks, head, the second factor of a factorised
        embedding; a table look-up multiplies nothing) and 12 L H d_a N for scores and values,
        all N positions counted as if there were no mask (PaLM, appendix B). The factorised
        position table is multiplied once a batch and left out.
        """
        attention = 12 * self.depth * self.heads * self.head_dim * self.context
        return 6 * (self.block_params + self._multiplied_table_weights) + attention

    @property
    def training_flops_per_token(self) -> float:
        """The same for each token of the source, of which a patch holds several."""
        return self.training_flops_per_position / self.input.tokens_per_position

    @property
    def activations_per_sequence(self) -> int:
        """The least numbers that the backward pass over one sequence needs.

        In each block two norms' inputs, queries, keys, values and what they give, the feed-forward
        layer before and after GELU; and the logits with their gradient.
        """
        attention = 4 * self.heads * self.head_dim
        block = 2 * self.width + attention + 2 * self.feed_forward_multiple * self.width
        return self.context * (self.depth * block + 2 * self.input.predictions)

    @property
    def _head_params(self) -> int:
        if isinstance(self.head, Tied):
            return 0
        return self.head.params(self.input.predictions, self.width)

    @property
    def _multiplied_table_weights(self) -> int:
        head = self._head_params
        if isinstance(self.head, Tied):
            head = self.embedding.params(self.input.dimensions, self.width)
        is_looked_up = isinstance(self.input, Tokens) or self.input.encoding == "one-hot"
        if not is_looked_up:
            return head + self.embedding.params(self.input.dimensions, self.width)
        if isinstance(self.embedding, Factorised):
            return head + self.embedding.inner * self.width
        return head


def standard_architecture(
    *, depth: int, width: int, heads: int, vocab: int, context: int
) -> Architecture:
    """The usual shape: head_dim = width / heads, feed-forward 4 x width, full untied tables.

    This is the network that the papers trained.
    """
    check_at_least(1, depth=depth, width=width, heads=heads)
    if width % heads:
        below = width - width % heads
        nearest = below if below and width - below <= heads // 2 else below + heads
        raise ValueError(
            f"width={width} is not a multiple of heads={heads}, so head_dim would be a fraction; "
            f"use width={nearest}, or give head_dim"
        )
    return Architecture(
        depth=depth,
        width=width,
        heads=heads,
        head_dim=width // heads,
        attention=Softmax(),
        feed_forward_multiple=4,
        context=context,
        input=Tokens(vocab=vocab),
        embedding=Full(),
        positions=Full(),
        head=Full(),
    )
