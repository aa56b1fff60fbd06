"""The shape that an export writes down: what formats of other tools know of a network."""

from dataclasses import dataclass
from typing import Literal

from archfit.spec import Architecture, Factorised, InvalidValue, Patches, Softmax, Table, Tied
from archfit.spec.architecture import gated_units, grouping_error
from archfit.spec.errors import check_at_least, check_type

TRAINED_EPSILON = 1e-5  # of the norms of networks that archfit trains


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportShape:
    """An architecture as other tools describe one.

    Beyond `Architecture` it has the token that ends a document; it leaves out the block, which the
    format decides, and what no other tool has.
    """

    depth: int
    width: int
    heads: int
    head_dim: int
    kv_heads: int  # each is shared by heads / kv_heads query heads
    feed_forward: int | Literal["usual"]  # hidden units; usual: 8 width^2 weights
    vocab: int
    context: int
    embedding: Table
    tied: bool
    separator: int | None  # the token that ends a document; None where there is no tokenizer
    rms_epsilon: float = 1e-6  # Llama's

    def __post_init__(self) -> None:
        check_at_least(1, depth=self.depth, width=self.width, heads=self.heads)
        check_at_least(1, head_dim=self.head_dim, kv_heads=self.kv_heads, context=self.context)
        check_at_least(2, vocab=self.vocab)
        if self.feed_forward != "usual":
            check_at_least(1, feed_forward=self.feed_forward)
        check_type(Table, embedding=self.embedding)
        if self.heads % self.kv_heads:
            raise grouping_error(self.heads, self.kv_heads)
        if self.separator is not None and not 0 <= self.separator < self.vocab:
            rule = f"is not in 0..{self.vocab - 1}"
            raise InvalidValue("separator", self.separator, rule, "use a {vocab} above it")

    def hidden_units(self, *, gated: bool) -> int:
        """Units of the feed-forward layer: those asked for, or those of 8 width^2 weights."""
        if self.feed_forward != "usual":
            return self.feed_forward
        return gated_units(self.width) if gated else 4 * self.width


def shape_of(architecture: Architecture) -> ExportShape:
    """The same network as other tools describe it; refused where none of them could."""
    if not isinstance(architecture.attention, Softmax):
        raise ValueError(
            "attention=linear is the analysed network, which no format has; "
            "export one with softmax attention"
        )
    if isinstance(architecture.input, Patches):
        raise ValueError(
            f"patches of {architecture.input.size} tokens are embedded at once, which no format "
            "has; export a network that reads tokens"
        )
    if isinstance(architecture.positions, Factorised):
        raise ValueError(
            f"positions=factorised({architecture.positions.inner}) is a table that no format has; "
            "use a full one"
        )
    head, embedding = architecture.head, architecture.embedding
    if isinstance(head, Factorised) and head != embedding:
        raise ValueError(
            f"head=factorised({head.inner}) is not factorised as the embedding is, and no format "
            "has that; use a full or a tied head"
        )
    return ExportShape(
        depth=architecture.depth,
        width=architecture.width,
        heads=architecture.heads,
        head_dim=architecture.head_dim,
        kv_heads=architecture.key_value_heads,
        feed_forward=architecture.feed_forward,
        vocab=architecture.input.vocab,
        context=architecture.context,
        embedding=embedding,
        tied=isinstance(head, Tied),
        separator=None,
        rms_epsilon=TRAINED_EPSILON,
    )
