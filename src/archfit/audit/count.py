"""How many parameters a model stores.

Blocks: every weight, bias and norm of the stacks, with cross-attention, the tables of relative
positions that a stack holds, and the norm after its last block. Embedding: the tables of tokens,
positions and segments with their norm, input maps, convolutional stems, class tokens, poolers and
every head. A matrix used twice counts once. What is stored counts, whether it is trained or not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from archfit.audit.family import Biased, Block, Family, Piece, Sizes
from archfit.audit.model import Parameters


@dataclass(frozen=True, kw_only=True, slots=True)
class SizedStack:
    """A stack with the sizes found for it.

    Beside the sizes of a `Stack`: attention is heads * head_dim, key_value is kv_heads * head_dim,
    distinct the sets of weights, experts those of a mixture, dense the layers without one.
    """

    role: str
    has_cross_attention: bool
    sizes: Mapping[str, int]


def parameters(
    family: Family, stacks: Iterable[SizedStack], *, sizes: Sizes, output: str
) -> Parameters:
    """What a model of this family stores; `sizes` are those outside its stacks."""
    blocks = _whole(_stack_parameters(family, stack, {**sizes, **stack.sizes}) for stack in stacks)
    pieces = family.embedding + family.outputs[output]
    embedding = _whole(known(piece, sizes) for piece in pieces) if family.embedding else None
    return Parameters(blocks=blocks, embedding=embedding, total=_whole((blocks, embedding)))


def absent_sizes(family: Family, *, sizes: Sizes, output: str) -> set[str]:
    """Sizes for want of which the embedding cannot be counted."""
    absent = set()
    for piece in family.embedding + family.outputs[output]:
        try:
            piece(sizes)
        except KeyError as problem:
            absent.add(str(problem.args[0]))
    return absent


def block_weights(family: Family, stack: SizedStack) -> int | None:
    """The weight matrices of all stored blocks of a stack."""
    return known(lambda sizes: _matrices(family.block, stack, sizes), stack.sizes)


def _stack_parameters(family: Family, stack: SizedStack, found: Sizes) -> int | None:
    """All parameters of a stack."""

    def count(sizes: Sizes) -> int:
        every = sum(piece(sizes) for piece in family.inside_stack)
        last = family.block.norm * sizes["width"] if family.has_final_norm else 0
        others = sizes["distinct"] * _beside_matrices(family.block, stack, sizes)
        return _matrices(family.block, stack, sizes) + others + every + last

    return known(count, found)


def known(piece: Piece, sizes: Sizes) -> int | None:
    """The piece's parameters, or None where a size it needs was not found."""
    try:
        return piece(sizes)
    except KeyError:
        return None


def _whole(parts: Iterable[int | None]) -> int | None:
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _matrices(block: Block, stack: SizedStack, sizes: Sizes) -> int:
    width, distinct = sizes["width"], sizes["distinct"]
    attention = 2 * width * (sizes["attention"] + sizes["key_value"])
    if stack.has_cross_attention:
        attention *= 2
    more = sum(piece(sizes) for piece in block.matrices)
    return distinct * (attention + more) + _feed_forward(block, sizes)


def _feed_forward(block: Block, sizes: Sizes) -> int:
    """The feed-forward matrices of all layers; a mixture has a router and may share an expert."""
    width, matrices = sizes["width"], 3 if block.is_gated else 2
    if "experts" not in sizes:
        return sizes["distinct"] * matrices * width * sizes["feed_forward"]
    experts = sizes["experts"] * (matrices * width * sizes["expert_feed_forward"] + width)
    if "shared_feed_forward" in sizes:
        experts += matrices * width * sizes["shared_feed_forward"] + width  # and its gate
    dense = sizes["dense"] * matrices * width * sizes["feed_forward"] if sizes["dense"] else 0
    return (sizes["distinct"] - sizes["dense"]) * experts + dense


def _beside_matrices(block: Block, stack: SizedStack, sizes: Sizes) -> int:
    """Biases, norms and whatever else one block stores."""
    width, crosses = sizes["width"], stack.has_cross_attention
    attention = _attention_biases(block.biases, sizes) * (2 if crosses else 1)
    feed_forward = 0
    if "feed_forward" in block.biases:
        feed_forward = (2 if block.is_gated else 1) * sizes["feed_forward"] + width
    norms = block.norm * width * (block.norms + crosses)
    more = sum(piece(sizes) for piece in block.vectors)
    return attention + feed_forward + norms + _head_norms(block, sizes) + more


def _attention_biases(biases: frozenset[Biased], sizes: Sizes) -> int:
    lengths: dict[Biased, str] = {
        "query": "attention",
        "key": "key_value",
        "value": "key_value",
        "out": "width",
    }
    return sum(sizes[length] for bias, length in lengths.items() if bias in biases)


def _head_norms(block: Block, sizes: Sizes) -> int:
    if block.head_norm == "head":
        return 2 * sizes["head_dim"]
    if block.head_norm == "all":
        return sizes["attention"] + sizes["key_value"]
    return 0
