"""How many parameters a model stores.

Blocks: every weight, bias and norm of the stacks, with cross-attention, the tables of relative
positions that a stack holds, and the norm after its last block. Embedding: the tables of tokens,
positions and segments with their norm, input maps, convolutional stems, class tokens, poolers and
every head. A matrix used twice counts once. What is stored counts, whether it is trained or not.

The formulas of attention, feed-forward layers, biases and norms are those of `spec.counting`; what
other people's families have beyond them are pieces, written in `families.toml`. A size that was not
found is not in the mapping: what needs it raises KeyError, and the count says "not found".
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from archfit.audit.families import Family, knowledge
from archfit.audit.model import Parameters, Stack
from archfit.spec import counting

Sizes = Mapping[str, int]
DERIVED: dict[str, Callable[[Sizes], int]] = {  # sizes that follow from others
    "columns": lambda sizes: sizes.get("inner", sizes["width"]),
    "untied": lambda sizes: 1 - sizes["is_tied"],
    "narrow": lambda sizes: int(sizes["inner"] != sizes["width"]),
    "group_width": lambda sizes: sizes["width"] // sizes["position_groups"],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SizedStack:
    """A stack with the sizes found for it.

    Beside the sizes of a `Stack`: attention is heads * head_dim, key_value is kv_heads * head_dim,
    distinct the sets of weights, experts those of a mixture, dense the layers without one.
    """

    role: str
    has_cross_attention: bool
    sizes: Sizes

    def audited(self, family: Family) -> Stack:
        """The stack as an audit shows it."""
        sizes = self.sizes
        return Stack(
            role=self.role,
            depth=sizes.get("depth"),
            width=sizes["width"],
            heads=sizes.get("heads"),
            head_dim=sizes.get("head_dim"),
            kv_heads=sizes.get("kv_heads"),
            feed_forward=sizes.get("expert_feed_forward", sizes.get("feed_forward")),
            block_weights=_if_known(lambda: _matrices(family, self, sizes)),
            distinct_blocks=sizes.get("distinct"),
        )


def parameters(
    family: Family, stacks: Iterable[SizedStack], *, sizes: Sizes, output: str
) -> Parameters:
    """What a model of this family stores; `sizes` are those outside its stacks."""
    outside = family.embedding + family.outputs[output]
    blocks = _if_known(lambda: sum(_stack(family, stack, sizes) for stack in stacks))
    embedding = _if_known(lambda: piece_sum(outside, sizes)) if family.embedding else None
    total = None if blocks is None or embedding is None else blocks + embedding
    return Parameters(blocks=blocks, embedding=embedding, total=total)


def absent_sizes(family: Family, *, sizes: Sizes, output: str) -> set[str]:
    """Sizes for want of which the embedding cannot be counted."""
    absent = set()
    for piece in family.embedding + family.outputs[output]:
        try:
            piece_value(piece, sizes)
        except KeyError as problem:
            absent.add(str(problem.args[0]))
    return absent


def piece_sum(pieces: Iterable[str], sizes: Sizes) -> int:
    """Parameters of all the pieces together."""
    return sum(piece_value(piece, sizes) for piece in pieces)


def piece_value(piece: str, sizes: Sizes) -> int:
    """Parameters of a piece, "2*width" or the name of one; KeyError names a size that is absent."""
    pieces = knowledge()["pieces"]

    def value(name: str) -> int:
        if name in sizes:
            return sizes[name]
        if name in DERIVED:
            return DERIVED[name](sizes)
        return piece_value(pieces[name], sizes)

    return sum(number * math.prod(map(value, names)) for number, names in _terms(piece))


@cache
def _terms(piece: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The products that a piece adds up: their whole numbers multiplied, and the names."""
    terms = []
    for term in filter(None, piece.replace(" ", "").replace("-", "+-").split("+")):
        factors = term.removeprefix("-").split("*")
        number = math.prod(int(factor) for factor in factors if factor.isdecimal())
        names = tuple(factor for factor in factors if not factor.isdecimal())
        terms.append((-number if term.startswith("-") else number, names))
    return tuple(terms)


def _if_known(count: Callable[[], int]) -> int | None:
    """What is counted, or None where a size it needs was not found."""
    try:
        return count()
    except KeyError:
        return None


def _stack(family: Family, stack: SizedStack, outside: Sizes) -> int:
    """All parameters of a stack."""
    sizes = {**outside, **stack.sizes}
    last = family.norm * sizes["width"] if family.has_final_norm else 0
    others = sizes["distinct"] * _beside_matrices(family, stack, sizes)
    inside = piece_sum(family.inside_stack, sizes)
    return _matrices(family, stack, sizes) + others + inside + last


def _matrices(family: Family, stack: SizedStack, sizes: Sizes) -> int:
    """The weight matrices of all stored blocks of a stack."""
    attention = counting.attention_matrices(sizes["width"], sizes["attention"], sizes["key_value"])
    each = attention * (1 + stack.has_cross_attention) + piece_sum(family.matrices, sizes)
    return sizes["distinct"] * each + _feed_forward(family, sizes)


def _feed_forward(family: Family, sizes: Sizes) -> int:
    """The feed-forward matrices of all layers; a mixture has a router and may share an expert."""
    width, distinct = sizes["width"], sizes["distinct"]

    def layer(hidden: str) -> int:
        return counting.feed_forward_matrices(width, sizes[hidden], is_gated=family.is_gated)

    if "experts" not in sizes:
        return distinct * layer("feed_forward")
    experts = sizes["experts"] * (layer("expert_feed_forward") + width)
    if "shared_feed_forward" in sizes:
        experts += layer("shared_feed_forward") + width  # and its gate
    dense = sizes["dense"] * layer("feed_forward") if sizes["dense"] else 0
    return (distinct - sizes["dense"]) * experts + dense


def _beside_matrices(family: Family, stack: SizedStack, sizes: Sizes) -> int:
    """Biases, norms and whatever else one block stores."""
    crosses, width = stack.has_cross_attention, sizes["width"]
    query, key_value = sizes["attention"], sizes["key_value"]
    total = counting.attention_biases(family.biases, width=width, query=query, key_value=key_value)
    total = total * (1 + crosses) + family.norm * width * (family.norms + crosses)
    if "feed_forward" in family.biases:
        total += counting.feed_forward_biases(family, width=width, hidden=sizes["feed_forward"])
    head_dim = sizes["head_dim"] if family.head_norm == "head" else 0
    total += counting.head_norms(family, head_dim=head_dim, query=query, key_value=key_value)
    return total + piece_sum(family.vectors, sizes)
