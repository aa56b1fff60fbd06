"""Blocks, stacks and switches that several families share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from archfit.audit.family import Biased, Block, Family, Piece, StackPlan, Switch

ATTENTION: frozenset[Biased] = frozenset(("query", "key", "value", "out"))
FEED_FORWARD: frozenset[Biased] = frozenset(("feed_forward",))
ALL = ATTENTION | FEED_FORWARD
NONE: frozenset[Biased] = frozenset()

GPT2_BLOCK = Block(
    norm=2, norms=2, biases=ALL, is_gated=False, head_norm="none", matrices=(), vectors=()
)
LLAMA_BLOCK = Block(
    norm=1, norms=2, biases=NONE, is_gated=True, head_norm="none", matrices=(), vectors=()
)

ENCODER = (StackPlan(role="encoder", has_cross_attention=False, keys={}),)
DECODER = (StackPlan(role="decoder", has_cross_attention=False, keys={}),)
VISION = (StackPlan(role="vision", has_cross_attention=False, keys={}),)


def with_biases(*added: Biased) -> Callable[[Family], Family]:
    """A change that adds these biases."""
    return lambda family: _with_block(family, biases=family.block.biases | set(added))


def without_biases(*dropped: Biased) -> Callable[[Family], Family]:
    """A change that drops these biases."""
    return lambda family: _with_block(family, biases=family.block.biases - set(dropped))


def _with_block(family: Family, *, biases: frozenset[Biased]) -> Family:
    return replace(family, block=replace(family.block, biases=biases))


def gated(family: Family) -> Family:
    """The family with three feed-forward matrices."""
    return replace(family, block=replace(family.block, is_gated=True))


def ungated(family: Family) -> Family:
    """The family with two feed-forward matrices."""
    return replace(family, block=replace(family.block, is_gated=False))


def norms(number: int) -> Callable[[Family], Family]:
    """A change to this many norms a block."""
    return lambda family: replace(family, block=replace(family.block, norms=number))


def block_vectors(*pieces: Piece) -> Callable[[Family], Family]:
    """A change that adds parameters to each block."""
    return lambda family: replace(
        family, block=replace(family.block, vectors=family.block.vectors + pieces)
    )


def head_norm(kind: Literal["head", "all"]) -> Callable[[Family], Family]:
    """A change that adds scales for queries and keys: one for all heads, or one for each."""
    return lambda family: replace(family, block=replace(family.block, head_norm=kind))


def without_norm_parameters(family: Family) -> Family:
    """The family with norms that store nothing."""
    return replace(family, block=replace(family.block, norm=0))


def with_cross_attention(family: Family) -> Family:
    """The family as the decoder of another model's output."""
    stacks = tuple(replace(stack, has_cross_attention=True) for stack in family.stacks)
    return replace(family, stacks=stacks)


def without_block_vectors(family: Family) -> Family:
    """The family without further parameters in its blocks."""
    return replace(family, block=replace(family.block, vectors=()))


def inside_stack(*pieces: Piece) -> Callable[[Family], Family]:
    """A change that adds parts to each stack."""
    return lambda family: replace(family, inside_stack=family.inside_stack + pieces)


def embedding(*pieces: Piece) -> Callable[[Family], Family]:
    """A change that adds parts outside the blocks."""
    return lambda family: replace(family, embedding=family.embedding + pieces)


def less_embedding(*pieces: Piece) -> Callable[[Family], Family]:
    """A change that takes parts outside the blocks away."""
    return lambda family: replace(
        family, embedding=tuple(piece for piece in family.embedding if piece not in pieces)
    )


def without_final_norm(family: Family) -> Family:
    """The family without the norm after its last block."""
    return replace(family, has_final_norm=False)


def full_key_value_heads(family: Family) -> Family:
    """The family with as many key-value heads as heads."""
    return replace(family, fixed_kv_heads=None)


def grouped_key_value_heads(family: Family) -> Family:
    """The family with the key-value heads that the config names."""
    return replace(family, fixed_kv_heads=None, needs=(*family.needs, "kv_heads"))


def switch(key: str, value: object, change: Callable[[Family], Family]) -> Switch:
    """Where `key` has `value`, the family is built with `change`."""
    return Switch(key=key, value=value, change=change)
