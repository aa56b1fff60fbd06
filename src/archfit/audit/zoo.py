"""Published models out of the table that ships with archfit.

`zoo.json` holds their sizes as the pages print them, `zoo_rules.toml` how each row is counted.
"""

import difflib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, cast

from archfit.audit.count import SizedStack, absent_sizes, parameters, piece_value
from archfit.audit.families import Family, family_of, knowledge
from archfit.audit.model import InputKind, InputMap, Model

Row = Mapping[str, Any]
NAMED_IF_MISSING = ("depth", "heads", "head_dim", "feed_forward")  # counted or not


@dataclass(frozen=True, kw_only=True, slots=True)
class CountingRule:
    """The family whose blocks a row has, and what else its count needs."""

    family: str
    facts: tuple[str, ...] = ()
    has_cross_attention: bool = False  # in a decoder that stands alone in the table


@dataclass(kw_only=True, slots=True)
class RowSizes:
    """The sizes of a row, with what was assumed and what is missing; grows while it is read."""

    sizes: dict[str, int]
    assumed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@cache
def zoo_rows() -> Mapping[str, Row]:
    """The rows of the table by id, as the file has them."""
    _, *rows = json.loads(_resource("zoo.json"))  # the first element explains the others
    return {row["id"]: row for row in rows}


@cache
def zoo_rules() -> Mapping[str, Any]:
    """How rows are counted, as the file says."""
    return tomllib.loads(_resource("zoo_rules.toml"))


def zoo_names() -> dict[str, str]:
    """Ids of the table, each with its printed name."""
    return {identifier: str(row["name"]) for identifier, row in zoo_rows().items()}


def zoo_models() -> tuple[Model, ...]:
    """All models of the table, in its order."""
    return tuple(map(_model, zoo_rows()))


def known_shapes() -> list[tuple[str, int, int]]:
    """Name, depth and width of decoders and encoders; an encoder-decoder is two stacks, not one."""
    lone = [(model.name, model.stacks[0]) for model in zoo_models() if len(model.stacks) == 1]
    return [(name, stack.depth, stack.width) for name, stack in lone if stack.depth is not None]


def zoo_model(name: str) -> Model:
    """The model with this id or printed name, in any case; others are told the nearest ones."""
    wanted = name.casefold()
    for identifier, printed in zoo_names().items():
        if wanted in (identifier.casefold(), printed.casefold()):
            return _model(identifier)
    known = list(zoo_rows())
    near = difflib.get_close_matches(wanted[:80], known, n=3, cutoff=0.4)
    hint = f"the nearest are {', '.join(near)}" if near else f"it has {len(known)} models"
    raise ValueError(f"{name[:60]!r} is not in the table of published models; {hint}")


def counting_rule(identifier: str, family: str) -> CountingRule:
    """How a row is counted: by the start of its id, by its family's rule, or as its family."""
    by_start = zoo_rules()["by_start"]
    starts = [start for start in by_start if identifier.startswith(start)]
    if starts:
        return CountingRule(**by_start[max(starts, key=len)])
    return CountingRule(**zoo_rules()["by_family"].get(family, {"family": family}))


def _resource(name: str) -> str:
    return resources.files("archfit.resources").joinpath(name).read_text(encoding="utf-8")


@cache
def _model(identifier: str) -> Model:
    row, rules = zoo_rows()[identifier], zoo_rules()
    rule = counting_rule(identifier, row["family"])
    family = _family(row, rule)
    output = next(iter(family.outputs))
    read = _sizes(row, family, rule)
    is_tied = _tie(row, family, read)
    if is_tied is not None:
        read.sizes["is_tied"] = int(is_tied)
    stacks = _stacks(row, family, rule, read.sizes)
    lacking = absent_sizes(family, sizes=read.sizes, output=output) - {"is_tied"}
    why = "the row has none, and the embedding needs it"
    read.missing += [f"{name}: {why}" for name in sorted(lacking)]
    left_out = f"the count leaves out {family.left_out}" if family.left_out else None
    notes = (row["notes"], *(rules[kind].get(identifier) for kind in ("causes", "notes")), left_out)
    return Model(
        name=row["name"],
        origin=row["source"],
        family=row["family"],
        modality=row["modality"],
        stacks=tuple(stack.audited(family) for stack in stacks),
        input=InputMap(
            kind=cast(InputKind, row["input_map"]),
            vocab=row["vocab_size"],
            vocab_real=row["vocab_size_real"],
            inner=row["embedding_size"],
            dimensions=row["input_dims"],
        ),
        is_tied=is_tied,
        parameters=parameters(family, stacks, sizes=read.sizes, output=output),
        published_params=row["params_published"],
        assumed=tuple(read.assumed),
        missing=tuple(read.missing),
        doubtful=tuple(rules["doubtful"].get(identifier, ())),
        notes=tuple(note for note in notes if note is not None),
    )


def _family(row: Row, rule: CountingRule) -> Family:
    """The family with what the row says of it: gating, positions, and heads that nobody found."""
    dropped = ["position_table"] if row["position_kind"] == "rotary" else []
    if row["heads"] is None:
        dropped.append("contact_head")  # depth * heads + 1: thousands among millions
    family = family_of(rule.family).without_pieces(*dropped)
    return replace(family, is_gated=bool(row["gated_ff"]))


def _sizes(row: Row, family: Family, rule: CountingRule) -> RowSizes:
    """The sizes in a row, with the facts of its family for those that it lacks."""
    columns = zoo_rules()["columns"]
    sizes = {name: row[at] for name, at in columns.items() if row[at] is not None}
    read = RowSizes(sizes=sizes)
    for fact in (zoo_rules()["facts"][name] for name in rule.facts):
        name = fact["size"]
        if name not in sizes:
            sizes[name] = piece_value(fact["value"], sizes)
            read.assumed.append(f"{name}={sizes[name]}: {fact['source']}")
    if "feed_forward" not in sizes and family.feed_forward_multiple:
        sizes["feed_forward"] = family.feed_forward_multiple * sizes["width"]
    lacking = [name for name in NAMED_IF_MISSING if name not in sizes]
    read.missing += [f"{name}: the row has no {columns[name]}" for name in lacking]
    if row["moe"]:  # hidden units of one expert, and nobody said how many experts there are
        sizes["expert_feed_forward"] = sizes.pop("feed_forward")
        read.missing.append("experts: the row does not say how many there are")
    if "heads" in sizes and "head_dim" in sizes:
        head_dim, kv_heads = sizes["head_dim"], sizes.get("kv_heads", sizes["heads"])
        sizes |= {"attention": sizes["heads"] * head_dim, "key_value": kv_heads * head_dim}
    elif family.is_square:
        sizes |= {"attention": sizes["width"], "key_value": sizes["width"]}
    return read


def _stacks(
    row: Row, family: Family, rule: CountingRule, sizes: Mapping[str, int]
) -> tuple[SizedStack, ...]:
    stacks: list[SizedStack] = []
    for role in ("encoder", "decoder"):
        depth = row[f"{role}_layers"]
        if depth == 0:
            continue
        own = {name: size for name, size in sizes.items() if name != "depth"}
        if depth is not None:
            own |= {"depth": depth, "distinct": row["shared_layers"] or depth}
        crosses = bool(stacks) or rule.has_cross_attention  # a decoder that follows an encoder
        name = "vision" if family.input == "linear_patch" else role
        stacks.append(SizedStack(role=name, has_cross_attention=crosses, sizes=own))
    return tuple(stacks)


def _tie(row: Row, family: Family, read: RowSizes) -> bool | None:
    """Whether the head is tied: as the row says, else as every model of the class."""
    stated, default = row["tied_embeddings"], family.defaults.get("tie_word_embeddings")
    if stated is not None:
        return bool(stated)
    if not isinstance(default, bool):
        return None
    if row["id"].startswith(tuple(zoo_rules()["tie_varies"])):
        why = "the row does not say, and small and large models differ in it"
        read.missing.append(f"is_tied: {why}")
        return None
    source = knowledge()["read_from"]
    read.assumed.append(f"is_tied={default}: default of {family.config_class} ({source})")
    return default
