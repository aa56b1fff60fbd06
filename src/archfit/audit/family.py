"""What tells one family of models from another: how its blocks are built and what lies outside.

A `Family` is a value; `families.py` is the table of them. A piece is the number of parameters of
one part as a function of the sizes; a size that was not found is not in the mapping, so that a
piece which needs it raises KeyError and the count says "not found" and not a wrong number.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from archfit.audit.model import InputKind

Sizes = Mapping[str, int]
Piece = Callable[[Sizes], int]
Biased = Literal["query", "key", "value", "out", "feed_forward"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """What one block stores beside the matrices that every Transformer has."""

    norm: int  # parameters for each unit of width: 2 scale and shift, 1 scale, 0 neither
    norms: int  # norms over the width
    biases: frozenset[Biased]
    is_gated: bool  # three feed-forward matrices instead of two
    head_norm: Literal["none", "head", "all"]  # of queries and keys: over one head, or over all
    matrices: tuple[Piece, ...]  # further weight matrices
    vectors: tuple[Piece, ...]  # further parameters that are none


@dataclass(frozen=True, kw_only=True, slots=True)
class StackPlan:
    """Where the sizes of one stack are written."""

    role: str
    has_cross_attention: bool
    keys: Mapping[str, tuple[str, ...]]  # by size, in place of the usual spellings


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """A key of the config whose value changes how the family is built."""

    key: str
    value: object
    change: "Callable[[Family], Family]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """How the models of one `model_type` are built."""

    config_class: str  # in transformers; its name less "Config" starts the names of the models
    input: InputKind
    modality: str | None  # None where a config does not say what its tokens stand for
    stacks: tuple[StackPlan, ...]
    block: Block
    is_square: bool  # head_dim is width / heads where the config gives none
    feed_forward_multiple: int | None  # of the width where the config gives none
    fixed_kv_heads: int | None  # 1 in multi-query attention; None: as many as the config says
    has_final_norm: bool
    inside_stack: tuple[Piece, ...]  # once a stack, counted with its blocks
    needs: tuple[str, ...]  # sizes that the class reads beside heads, feed-forward and vocabulary
    embedding: tuple[Piece, ...]
    outputs: Mapping[str, tuple[Piece, ...]]  # by the end of the class's name; the first is usual
    switches: tuple[Switch, ...]
    is_exact: bool  # whether the count was checked against the class itself
    left_out: str | None  # what an inexact count leaves out
