"""What an architecture is: the numbers that fix a Transformer's shape, and what they cost.

The network is decoder-only, with pre-norm blocks, a GELU feed-forward layer, learned positions
and the biases of GPT-2, or the bare network of the theorems; docs/notation.md names every symbol.
"""

from dataclasses import dataclass

from archfit.spec.counting import BARE_STYLE, GPT2_STYLE, NetworkSizes, Parts, table_weights
from archfit.spec.errors import InvalidValue, check_at_least, check_type
from archfit.spec.parts import (
    Attention,
    Factorised,
    Full,
    Head,
    Input,
    Linear,
    Patches,
    Softmax,
    Table,
    Tied,
    Tokens,
)


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
        check_at_least(1, depth=self.depth, width=self.width, heads=self.heads)
        check_at_least(1, head_dim=self.head_dim, context=self.context)
        check_type(Attention, attention=self.attention)
        multiple, is_linear = self.feed_forward_multiple, isinstance(self.attention, Linear)
        if is_linear and multiple != 0:
            way_out = "the analysed network has no feed-forward layer: use 0"
            raise InvalidValue("feed_forward_multiple", multiple, "with linear attention", way_out)
        check_at_least(0 if is_linear else 1, feed_forward_multiple=multiple)
        check_type(Input, input=self.input)
        check_type(Table, embedding=self.embedding, positions=self.positions)
        check_type(Head, head=self.head)
        is_scalar = isinstance(self.input, Patches) and self.input.encoding == "scalar"
        if isinstance(self.head, Tied) and is_scalar:
            predictions, dimensions = self.input.predictions, self.input.dimensions
            rule = (
                f"needs {predictions} rows, one a prediction, and a scalar patch has {dimensions}"
            )
            raise InvalidValue("head", "tied", rule, "use a full head or one-hot patches")

    @property
    def embedding_rank(self) -> int:
        """r, the most dimensions in which inputs differ: min(width, input dimensions, inner)."""
        largest = min(self.width, self.input.dimensions)
        return min(largest, self.embedding.inner_size or largest)

    @property
    def position_rank(self) -> int:
        """r_e, the most dimensions in which positions can differ."""
        largest = min(self.width, self.context)
        return min(largest, self.positions.inner_size or largest)

    @property
    def attention_ratio(self) -> float:
        """H d_a / d_x; above 1 the attention is wider than the stream it reads (Wies 5.3)."""
        return self.heads * self.head_dim / self.width

    @property
    def feed_forward(self) -> int:
        """Hidden units of the feed-forward layer."""
        return self.feed_forward_multiple * self.width

    @property
    def sizes(self) -> NetworkSizes:
        """The numbers that every count follows from."""
        tables = [(self.input.dimensions, self.embedding.inner_size)]
        tables.append((self.context, self.positions.inner_size))
        if not isinstance(self.head, Tied):
            tables.append((self.input.predictions, self.head.inner_size))
        return NetworkSizes(
            depth=self.depth,
            width=self.width,
            query=self.heads * self.head_dim,
            key_value=self.heads * self.head_dim,
            head_dim=self.head_dim,
            hidden=self.feed_forward,
            style=BARE_STYLE if isinstance(self.attention, Linear) else GPT2_STYLE,
            tables=tuple(tables),
        )

    @property
    def block_params(self) -> int:
        """Weight matrices of all blocks, L (4 d_x H d_a + 2 m d_x^2): the papers' 12 L d_x^2."""
        return int(self.sizes.block_matrices)

    @property
    def params_without_embeddings(self) -> int:
        """Blocks with their biases and norms, and the last norm; no table of any kind."""
        return self.block_params + int(self.sizes.biases_and_norms)

    @property
    def embedding_params(self) -> int:
        """The input embedding, positions and head; a tied head has none of its own."""
        return int(self.sizes.embedding)

    @property
    def params(self) -> int:
        """All parameters."""
        return int(self.sizes.total)

    @property
    def parts(self) -> Parts:
        """All parameters by where they are."""
        sizes = self.sizes
        return Parts(
            blocks=int(sizes.block_matrices),
            biases_and_norms=int(sizes.biases_and_norms),
            embedding=int(sizes.embedding),
            total=int(sizes.total),
        )

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
        block = 2 * self.width + attention + 2 * self.feed_forward
        return self.context * (self.depth * block + 2 * self.input.predictions)

    @property
    def _multiplied_table_weights(self) -> int:
        """Weights of head and embedding that are multiplied, not looked up."""
        table = table_weights(self.input.dimensions, self.width, self.embedding.inner_size)
        head = table
        if not isinstance(self.head, Tied):
            head = table_weights(self.input.predictions, self.width, self.head.inner_size)
        is_looked_up = isinstance(self.input, Tokens) or self.input.encoding == "one-hot"
        if not is_looked_up:
            return head + table
        if isinstance(self.embedding, Factorised):
            return head + self.embedding.inner * self.width
        return head


def head_dim_of(width: int, heads: int) -> int:
    """width / heads; a width that is no multiple is told the nearest that is."""
    check_at_least(1, width=width, heads=heads)
    if width % heads:
        below = width - width % heads
        nearest = below if below and width - below <= heads // 2 else below + heads
        rule = f"is not a multiple of {{heads}}={heads}, so {{head_dim}} would be a fraction"
        raise InvalidValue("width", width, rule, f"use {{width}}={nearest}, or give {{head_dim}}")
    return width // heads


def standard_architecture(
    *, depth: int, width: int, heads: int, vocab: int, context: int
) -> Architecture:
    """The usual shape: head_dim = width / heads, feed-forward 4 x width, full untied tables.

    This is the network that the papers trained.
    """
    check_at_least(1, depth=depth)
    return Architecture(
        depth=depth,
        width=width,
        heads=heads,
        head_dim=head_dim_of(width, heads),
        attention=Softmax(),
        feed_forward_multiple=4,
        context=context,
        input=Tokens(vocab=vocab),
        embedding=Full(),
        positions=Full(),
        head=Full(),
    )
