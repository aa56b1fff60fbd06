"""How many weights the parts of a Transformer have: the one home of these formulas.

`Architecture`, the planner, the auditor and the exports all count with them. Sizes may be real
numbers, since a planner looks between whole shapes; whole numbers stay exact.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeVar

Number = TypeVar("Number", int, float)
Biased = Literal["query", "key", "value", "out", "feed_forward"]
EVERY_BIAS: frozenset[Biased] = frozenset(("query", "key", "value", "out", "feed_forward"))
NO_BIAS: frozenset[Biased] = frozenset()
BYTES_A_TRAINED_PARAMETER = 16  # float32 weight, gradient and two moments of Adam


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockStyle:
    """What one block stores beside the sizes of its matrices."""

    norm: int  # parameters for each unit of width: 2 scale and shift, 1 scale, 0 neither
    norms: int  # norms over the width
    biases: Collection[Biased]
    is_gated: bool  # three feed-forward matrices instead of two
    head_norm: Literal["none", "head", "all"]  # of queries and keys: over one head, or over all


GPT2_STYLE = BlockStyle(norm=2, norms=2, biases=EVERY_BIAS, is_gated=False, head_norm="none")
LLAMA_STYLE = BlockStyle(norm=1, norms=2, biases=NO_BIAS, is_gated=True, head_norm="none")
QWEN3_STYLE = BlockStyle(norm=1, norms=2, biases=NO_BIAS, is_gated=True, head_norm="head")
BARE_STYLE = BlockStyle(norm=0, norms=0, biases=NO_BIAS, is_gated=False, head_norm="none")


def attention_matrices(width: Number, query: Number, key_value: Number) -> Number:
    """Weights of queries and outputs (`query` wide), keys and values (`key_value` wide)."""
    return 2 * width * (query + key_value)


def feed_forward_matrices(width: Number, hidden: Number, *, is_gated: bool) -> Number:
    """Weights of a feed-forward layer of `hidden` units; a gate is a third matrix."""
    return (3 if is_gated else 2) * width * hidden


def attention_biases(
    biases: Collection[Biased], *, width: Number, query: Number, key_value: Number
) -> Number:
    """Biases of those attention matrices that have one."""
    lengths = {"query": query, "key": key_value, "value": key_value, "out": width}
    return sum((length for bias, length in lengths.items() if bias in biases), start=0 * width)


def feed_forward_biases(style: BlockStyle, *, width: Number, hidden: Number) -> Number:
    """Biases of the feed-forward layer, if it has any."""
    if "feed_forward" not in style.biases:
        return 0 * width
    return (2 if style.is_gated else 1) * hidden + width


def head_norms(style: BlockStyle, *, head_dim: Number, query: Number, key_value: Number) -> Number:
    """Scales of queries and keys: one vector for all heads, or one for each."""
    scales = {"none": 0 * head_dim, "head": 2 * head_dim, "all": query + key_value}
    return scales[style.head_norm]


def table_weights(rows: Number, width: Number, inner: Number | None) -> Number:
    """Weights of a table: one matrix, or two that meet at `inner` dimensions."""
    return rows * width if inner is None else (rows + width) * inner


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkSizes:
    """The numbers that the parameter count of a decoder or encoder follows from."""

    depth: float
    width: float
    query: float  # heads * head_dim
    key_value: float  # key-value heads * head_dim
    head_dim: float
    hidden: float  # units of the feed-forward layer
    style: BlockStyle
    tables: tuple[tuple[float, float | None], ...]  # rows and inner size of each stored table

    @property
    def blocks(self) -> float:
        """Weight matrices of all blocks: the papers' 12 L d^2 for the usual shape."""
        attention = attention_matrices(self.width, self.query, self.key_value)
        feed_forward = feed_forward_matrices(self.width, self.hidden, is_gated=self.style.is_gated)
        return self.depth * (attention + feed_forward)

    @property
    def biases_and_norms(self) -> float:
        """All other parameters of the blocks, and the norm after the last one."""
        style, width = self.style, self.width
        sides = {"query": self.query, "key_value": self.key_value}
        biases = attention_biases(style.biases, width=width, **sides)
        biases += feed_forward_biases(style, width=width, hidden=self.hidden)
        norms = style.norms * style.norm * width
        norms += head_norms(style, head_dim=self.head_dim, **sides)
        return self.depth * (biases + norms) + style.norm * width

    @property
    def embedding(self) -> float:
        """Every table that is stored: tokens, positions, predictions."""
        return sum(table_weights(rows, self.width, inner) for rows, inner in self.tables)

    @property
    def total(self) -> float:
        """All parameters."""
        return self.blocks + self.biases_and_norms + self.embedding


# ZeRO (Rajbhandari et al. 2020): mixed-precision Adam, bytes a parameter
WEIGHT_BYTES, GRADIENT_BYTES, OPTIMISER_BYTES = 2, 2, 12
# A position, unit of width and layer; Korthikanti et al. 2022, no scores kept
ACTIVATION_BYTES = 34
LOGIT_BYTES = 6  # a 16-bit logit and its 32-bit gradient


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingMemory:
    """Bytes on the device, nothing sharded or recomputed."""

    weights: int
    gradients: int
    optimiser: int
    activations: int
    batch_sequences: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.gradients + self.optimiser + self.activations


def training_memory(
    params: int, *, layer_units: int, context: int, outputs: int, batch_sequences: int
) -> TrainingMemory:
    """Memory of mixed-precision Adam; `layer_units` is depth times width, `outputs` the logits."""
    positions = batch_sequences * context
    return TrainingMemory(
        weights=WEIGHT_BYTES * params,
        gradients=GRADIENT_BYTES * params,
        optimiser=OPTIMISER_BYTES * params,
        activations=positions * (ACTIVATION_BYTES * layer_units + LOGIT_BYTES * outputs),
        batch_sequences=batch_sequences,
    )
