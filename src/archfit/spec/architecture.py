"""What an architecture is: the numbers that fix a Transformer's shape, and what they cost.

Blocks are pre-norm: `gpt2` has layer norms, GELU, learned positions and biases; `llama` has RMS
norms, SwiGLU, rotary positions and no biases; the network of the theorems has none of it. A decoder
predicts the next token (`causal`), an encoder tokens that are hidden from it (`masked`).
docs/notation.md names every symbol.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from archfit.spec import counting, parts
from archfit.spec.counting import BlockStyle, NetworkSizes
from archfit.spec.errors import check_at_least, check_choice, check_types, refusal, refuse_if

BlockFamily = Literal["gpt2", "llama"]
Objective = Literal["causal", "masked"]
GATED_MULTIPLE, FINE_MULTIPLE = 64, 8  # hidden units of a gated layer, and of a narrow one
MOST_ROUNDING = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """The shape of one Transformer."""

    # What 0.1 had in the fields that it did not know.
    USUAL: ClassVar[dict[str, object]] = {
        "block": "gpt2", "kv_heads": None, "qk_norm": False, "objective": "causal"
    }  # fmt: skip

    depth: int  # L, blocks
    width: int  # d_x, residual stream
    heads: int  # H
    head_dim: int  # d_a; heads * head_dim need not equal width
    attention: parts.Attention
    feed_forward: int  # hidden units of the feed-forward layer
    context: int  # N, positions seen at once
    input: parts.Input
    embedding: parts.Table
    positions: parts.Positions
    head: parts.Head
    block: BlockFamily = "gpt2"
    kv_heads: int | None = None  # heads of keys and values, if fewer: each serves several heads
    qk_norm: bool = False  # RMS norms of queries and keys, over each head
    objective: Objective = "causal"

    def __post_init__(self) -> None:
        check_at_least(1, depth=self.depth, width=self.width, heads=self.heads)
        check_at_least(1, head_dim=self.head_dim, context=self.context)
        check_at_least(1, kv_heads=self.key_value_heads)
        check_choice(get_args(BlockFamily), block=self.block)
        check_choice(get_args(Objective), objective=self.objective)
        check_types(self, "qk_norm", "attention", "input", "embedding", "positions", "head")
        if self.kv_heads == self.heads:
            object.__setattr__(self, "kv_heads", None)  # one network, one value
        self._check_block()
        self._check_tables()

    def _check_block(self) -> None:
        is_linear, hidden = isinstance(self.attention, parts.Linear), self.feed_forward
        refuse_if(is_linear and hidden != 0, "linear-feed-forward", hidden)
        check_at_least(0 if is_linear else 1, feed_forward=hidden)
        refuse_if(is_linear and self.block != "gpt2", "linear-block", self.block)
        check_groups(self.heads, self.key_value_heads)
        if self.block == "gpt2" and (self.kv_heads is not None or self.qk_norm):
            field = "qk_norm" if self.qk_norm else "kv_heads"
            raise refusal("not-in-gpt2", getattr(self, field), field=field)
        refuse_if(self.block == "llama" and self.head_dim % 2 > 0, "odd-head", self.head_dim)

    def _check_tables(self) -> None:
        if isinstance(self.positions, parts.Rotary) != (self.block == "llama"):
            usual = "rotary" if self.block == "llama" else "full"
            raise refusal("block-positions", self.positions.TAG, block=self.block, usual=usual)
        if isinstance(self.head, parts.Tied) and getattr(self.input, "encoding", "") == "scalar":
            rows, dimensions = self.input.predictions, self.input.dimensions
            raise refusal("tied-scalars", "tied", rows=rows, dimensions=dimensions)
        if self.objective == "masked" and isinstance(self.input, parts.Patches):
            raise refusal("masked-patches", "masked", size=self.input.size)

    @staticmethod
    def shortened(document: dict[str, Any]) -> dict[str, Any]:
        """The JSON of 0.1, whose feed-forward layer was a multiple of the width."""
        width, hidden = document["width"], document["feed_forward"]
        if hidden % width == 0:
            del document["feed_forward"]
            document["feed_forward_multiple"] = hidden // width
        return document

    @staticmethod
    def completed(document: Mapping[str, object]) -> dict[str, object]:
        """The same with hidden units."""
        filled = dict(document)
        multiple, width = filled.get("feed_forward_multiple"), filled.get("width")
        if type(multiple) is int and type(width) is int and "feed_forward" not in filled:
            del filled["feed_forward_multiple"]
            filled["feed_forward"] = multiple * width
        return filled

    @property
    def embedding_rank(self) -> int:
        """r, the most dimensions in which inputs differ: min(width, input dimensions, inner)."""
        largest = min(self.width, self.input.dimensions)
        return min(largest, self.embedding.inner_size or largest)

    @property
    def position_rank(self) -> int:
        """r_e, the most dimensions in which positions can differ; rotary ones add none."""
        if isinstance(self.positions, parts.Rotary):
            return 0
        largest = min(self.width, self.context)
        return min(largest, self.positions.inner_size or largest)

    @property
    def attention_ratio(self) -> float:
        """H d_a / d_x; above 1 the attention is wider than the stream it reads (Wies 5.3)."""
        return self.heads * self.head_dim / self.width

    @property
    def key_value_heads(self) -> int:
        """Heads of keys and values; each serves heads / key_value_heads heads."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def is_causal(self) -> bool:
        """Whether a position sees only itself and those before it."""
        causal = self.objective == "causal"
        return self.attention.causal if isinstance(self.attention, parts.Linear) else causal

    @property
    def style(self) -> BlockStyle:
        """What a block stores beside its matrices."""
        if isinstance(self.attention, parts.Linear):
            return counting.BARE_STYLE
        if self.block == "gpt2":
            return counting.GPT2_STYLE
        return counting.QWEN3_STYLE if self.qk_norm else counting.LLAMA_STYLE

    @property
    def sizes(self) -> NetworkSizes:
        """The numbers that every count follows from."""
        tables = [(self.input.dimensions, self.embedding.inner_size)]
        if not isinstance(self.positions, parts.Rotary):
            tables.append((self.context, self.positions.inner_size))
        if not isinstance(self.head, parts.Tied):
            tables.append((self.input.predictions, self.head.inner_size))
        return NetworkSizes(
            depth=self.depth,
            width=self.width,
            query=self.heads * self.head_dim,
            key_value=self.key_value_heads * self.head_dim,
            head_dim=self.head_dim,
            hidden=self.feed_forward,
            style=self.style,
            tables=tuple(tables),
        )

    @property
    def block_params(self) -> int:
        """Weight matrices of all blocks; for the usual shape the papers' 12 L d_x^2."""
        return int(self.sizes.blocks)

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
    def training_flops_per_position(self) -> int:
        """Floating point operations to train on one position, forward and backward.

        6 for each weight that multiplies (blocks, head, the second factor of a factorised
        embedding; a table look-up multiplies nothing) and 12 L H d_a N for scores and values,
        all N positions counted as if there were no mask (PaLM, appendix B). The factorised
        position table is multiplied once a batch and left out.
        """
        attention = 12 * self.depth * self.heads * self.head_dim * self.context
        inner, width = self.embedding.inner_size, self.width
        table = head = counting.table_weights(self.input.dimensions, width, inner)
        if not isinstance(self.head, parts.Tied):
            head = counting.table_weights(self.input.predictions, width, self.head.inner_size)
        is_looked_up = getattr(self.input, "encoding", "") != "scalar"
        entering = (inner or 0) * width if is_looked_up else table
        return 6 * (self.block_params + head + entering) + attention

    @property
    def training_flops_per_token(self) -> float:
        """The same for each token of the source, of which a patch holds several."""
        return self.training_flops_per_position / self.input.tokens_per_position

    @property
    def activations_per_sequence(self) -> int:
        """The least numbers that the backward pass over one sequence needs.

        In each block two norms' inputs, queries, keys, values and what they give, the feed-forward
        layer before and after its activation; and the logits with their gradient.
        """
        attention = 2 * (self.heads + self.key_value_heads) * self.head_dim
        hidden = (3 if self.style.is_gated else 2) * self.feed_forward
        block = 2 * self.width + attention + hidden
        return self.context * (self.depth * block + 2 * self.input.predictions)


def check_groups(heads: int, kv_heads: int) -> None:
    """Refuse heads that cannot share that many keys and values."""
    if heads % kv_heads:
        divisors = [number for number in range(1, min(heads, 10**4) + 1) if not heads % number]
        nearest = min(divisors, key=lambda number: abs(number - kv_heads))
        raise refusal("unequal-groups", kv_heads, heads=heads, nearest=nearest)


def gated_units(width: int) -> int:
    """Hidden units with which a gated layer of three matrices has about 8 width^2 weights.

    8/3 width, to the nearest multiple of 64, which GPUs like, or of 8 where that is 5 % off.
    """
    exact = 8 * width / 3
    coarse = max(1, round(exact / GATED_MULTIPLE)) * GATED_MULTIPLE
    if abs(coarse / exact - 1) <= MOST_ROUNDING:
        return coarse
    return max(1, round(exact / FINE_MULTIPLE)) * FINE_MULTIPLE


def head_dim_of(width: int, heads: int) -> int:
    """width / heads; a width that is no multiple is told the nearest that is."""
    check_at_least(1, width=width, heads=heads)
    if width % heads:
        below = width - width % heads
        nearest = below if below and width - below <= heads // 2 else below + heads
        raise refusal("no-head-dim", width, heads=heads, nearest=nearest)
    return width // heads
