"""What tells one family of models from another, and how many parameters a model of it stores.

An entry of `resources/families.toml` says how the blocks of a family are built and what lies
outside of them; `like` takes over another entry. The file explains the fields, and the pieces that
parameters are counted in.

Blocks: every weight, bias and norm of the stacks, with cross-attention, the tables of relative
positions that a stack holds, and the norm after its last block. Embedding: the tables of tokens,
positions and segments with their norm, input maps, convolutional stems, class tokens, poolers and
every head. A matrix used twice counts once. What is stored counts, whether it is trained or not.

The formulas of attention, feed-forward layers, biases and norms are those of `spec.counting`; what
other people's families have beyond them are pieces. A size that was not found is not in the
mapping: what needs it raises KeyError, and the count says "not found".
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

from archfit.audit.model import InputKind, Parameters, Stack, sum_if_known
from archfit.spec import counting
from archfit.spec.errors import refusal
from archfit.spec.packed import packed_table

Document: TypeAlias = Mapping[str, object]
# Of a stack or of a whole model. Beside the sizes of a `Stack`: attention is heads * head_dim,
# key_value is kv_heads * head_dim, distinct the sets of weights, experts those of a mixture, dense
# the layers without one; crosses is 1 where the blocks also attend to another stack, else 0.
Sizes: TypeAlias = Mapping[str, int]
CLASS_ENDS = ("LMHeadModel", "EncoderModel", "DoubleHeadsModel", "Model")
DERIVED: dict[str, Callable[[Sizes], int]] = {  # sizes that follow from others
    "columns": lambda sizes: sizes.get("inner", sizes["width"]),
    "narrow": lambda sizes: int(sizes["inner"] != sizes["width"]),
    "group_width": lambda sizes: sizes["width"] // sizes["position_groups"],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Family(counting.BlockStyle):
    """How the models of one `model_type` are built; `variants.base` in the file explains fields."""

    config_class: str
    input: InputKind
    modality: str
    stacks: str
    matrices: tuple[str, ...]
    vectors: tuple[str, ...]
    is_square: bool
    feed_forward_multiple: int
    fixed_kv_heads: int
    has_final_norm: bool
    inside_stack: tuple[str, ...]
    needs: tuple[str, ...]
    embedding: tuple[str, ...]
    outputs: Mapping[str, tuple[str, ...]]
    switches: tuple[Mapping[str, Any], ...]
    is_exact: bool
    left_out: str
    defaults: Mapping[str, object]
    part_defaults: Mapping[str, object]

    def switched(self, document: Document) -> "Family":
        """The family with the switches that this config turns, by the value of a key alone."""
        family = self
        for switch in self.switches:
            value = document.get(switch["key"])
            if type(value) not in (bool, int, float, str) or value != switch["value"]:
                continue
            changes, dropped, added = (switch.get(do, {}) for do in ("changed", "dropped", "added"))
            for name in (*dropped, *added):
                kept = [part for part in getattr(family, name) if part not in dropped.get(name, ())]
                changes = {**changes, name: (*kept, *added.get(name, ()))}
            family = replace(family, **changes)
        return family


@cache
def knowledge() -> Mapping[str, Any]:
    """All that `families.toml` says, its lists as tuples; read once, in about 10 ms."""
    document: Mapping[str, Any] = _frozen(packed_table("families.toml"))
    return document


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return {key: _frozen(part) for key, part in value.items()}
    return value


@cache
def family_of(name: str) -> Family:
    """The entry of this name: a family of configs, or a variant."""
    entry = dict(knowledge()["families"].get(name) or knowledge()["variants"][name])
    if switches := entry.get("switches"):
        shared = knowledge()["switches"]  # which several families have, by name
        entry["switches"] = tuple(shared[s] if isinstance(s, str) else s for s in switches)
    if "like" not in entry:
        return Family(**entry)
    base = family_of(entry.pop("like"))
    if "config_class" in entry:  # another class has defaults of its own
        base = replace(base, defaults={}, part_defaults={})
    return replace(base, **entry)


def tensor_names(part: str) -> tuple[str, ...]:
    """How the names of tensors end that hold this part of a model."""
    names: tuple[str, ...] = knowledge()["tensors"][part]
    return names


def family_name(document: Document) -> str | None:
    """The `model_type` of a config, or what its `architectures` or keys give away."""
    named = document.get("model_type")
    if named is not None and not isinstance(named, str):
        raise refusal("no-model-type")
    built = class_name(document)
    if named is not None and (named in knowledge()["families"] or not built):
        return named
    by_class = _family_of_class(built)
    if named is None and by_class is None and "d_kv" in document and "d_ff" in document:
        return "t5"  # files of 2019 name neither family nor class
    return by_class or named


def class_name(document: Document) -> str:
    """The first name in `architectures`; empty where there is none."""
    named = document.get("architectures")
    if named is None or named == []:
        return ""
    first = named[0] if isinstance(named, list) else named
    if not isinstance(first, str):
        raise ValueError("architectures holds no class names; it should be a list of strings")
    return first


def _family_of_class(name: str) -> str | None:
    """`BertForMaskedLM` → `bert`; None where no family's classes start like this one."""
    start, is_task, _ = name.partition("For")
    if not is_task:
        start = name.removesuffix(next(filter(name.endswith, CLASS_ENDS), ""))
    for family, entry in knowledge()["families"].items():
        stem = entry["config_class"].removesuffix("Config").removesuffix("Text")
        if start.lower() == stem.lower():
            return str(family)
    return None


# ---- counts


def parameters(
    family: Family, stacks: Iterable[Sizes], sizes: Sizes, outside: Iterable[str]
) -> Parameters:
    """What a model of this family stores, with `outside`, pieces of `sizes` beyond its stacks."""
    blocks = if_known(lambda: sum(_stack(family, {**sizes, **stack}) for stack in stacks))
    embedding = if_known(lambda: piece_sum(outside, sizes)) if family.embedding else None
    return Parameters(blocks=blocks, embedding=embedding, total=sum_if_known((blocks, embedding)))


def audited_stack(role: str, family: Family, sizes: Sizes) -> Stack:
    """The stack as an audit shows it."""
    same = {name: sizes.get(name) for name in ("depth", "heads", "head_dim", "kv_heads")}
    return Stack(
        role=role, width=sizes["width"], **same,
        feed_forward=sizes.get("expert_feed_forward", sizes.get("feed_forward")),
        block_weights=if_known(lambda: _matrices(family, sizes)),
        distinct_blocks=sizes.get("distinct"), is_gated=family.is_gated,
    )  # fmt: skip


def piece_sum(pieces: Iterable[str], sizes: Sizes) -> int:
    """Parameters of all the pieces together."""
    return sum(piece_value(piece, sizes) for piece in pieces)


def piece_value(piece: str, sizes: Sizes) -> int:
    """Parameters of a piece, "2*width" or the name of one; KeyError names a size that is absent."""

    def value(name: str) -> int:
        if name in sizes:
            return sizes[name]
        if name in DERIVED:
            return DERIVED[name](sizes)
        return piece_value(knowledge()["pieces"][name], sizes)

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


def if_known(count: Callable[[], int]) -> int | None:
    """What is counted, or None where a size it needs was not found."""
    try:
        return count()
    except KeyError:
        return None


def _stack(family: Family, sizes: Sizes) -> int:
    """All parameters of a stack: matrices; biases, norms and whatever else a block stores; more."""
    crosses, width = sizes["crosses"], sizes["width"]
    query, key_value = sizes["attention"], sizes["key_value"]
    each = counting.attention_biases(family.biases, width=width, query=query, key_value=key_value)
    each = each * (1 + crosses) + family.norm * width * (family.norms + crosses)
    if "feed_forward" in family.biases:
        each += counting.feed_forward_biases(family, width=width, hidden=sizes["feed_forward"])
    head_dim = sizes["head_dim"] if family.head_norm == "head" else 0
    each += counting.head_norms(family, head_dim=head_dim, query=query, key_value=key_value)
    each += piece_sum(family.vectors, sizes)
    last = family.norm * width if family.has_final_norm else 0
    inside = piece_sum(family.inside_stack, sizes)
    return _matrices(family, sizes) + sizes["distinct"] * each + inside + last


def _matrices(family: Family, sizes: Sizes) -> int:
    """The weight matrices of all stored blocks of a stack."""
    attention = counting.attention_matrices(sizes["width"], sizes["attention"], sizes["key_value"])
    each = attention * (1 + sizes["crosses"]) + piece_sum(family.matrices, sizes)
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
