"""Published models out of the table that ships with archfit."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import cast, get_args

from archfit.audit import pieces
from archfit.audit.count import SizedStack, absent_sizes, parameters
from archfit.audit.defaults import DEFAULTS, READ_FROM
from archfit.audit.family import Family
from archfit.audit.family_parts import gated, ungated
from archfit.audit.model import InputKind, InputMap, Model
from archfit.audit.stack_sizes import audited_stack
from archfit.audit.zoo_kin import CAUSES, DOUBTFUL, NOTES, TIE_VARIES, Kin, kin_of

Row = Mapping[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class ZooRow:
    """A published model and where its numbers come from."""

    identifier: str
    model: Model
    year: int
    params_basis: str | None  # page, name or memory: what the published count rests on
    status: str  # verified, or memory where a size rests on recall
    memory_fields: tuple[str, ...]  # fields that were not read anywhere


def zoo_models() -> tuple[Model, ...]:
    """All models of the table, in its order."""
    return tuple(row.model for row in zoo_rows())


def zoo_names() -> dict[str, str]:
    """Ids of the table, each with its printed name."""
    return {row.identifier: row.model.name for row in zoo_rows()}


def known_shapes() -> list[tuple[str, int, int]]:
    """Name, depth and width of decoders and encoders; an encoder-decoder is two stacks, not one."""
    stacks = [(model.name, model.stacks) for model in zoo_models() if len(model.stacks) == 1]
    return [
        (name, stack.depth, stack.width) for name, (stack,) in stacks if stack.depth is not None
    ]


def zoo_model(name: str) -> Model:
    """The model with this id or printed name, in any case of letters."""
    return zoo_row(name).model


def zoo_row(name: str) -> ZooRow:
    """The row with this id or printed name; a name that is not there is told the nearest ones."""
    wanted = name.casefold()
    for row in zoo_rows():
        if wanted in (row.identifier.casefold(), row.model.name.casefold()):
            return row
    import difflib

    known = [row.identifier for row in zoo_rows()]
    near = difflib.get_close_matches(wanted[:80], known, n=3, cutoff=0.4)
    hint = f"the nearest are {', '.join(near)}" if near else f"it has {len(known)} models"
    raise ValueError(f"{name[:60]!r} is not in the table of published models; {hint}")


@cache
def zoo_rows() -> tuple[ZooRow, ...]:
    """The table, read once."""
    text = resources.files("archfit.resources").joinpath("zoo.json").read_text(encoding="utf-8")
    _, *rows = json.loads(text)  # the first element explains the others
    return tuple(_zoo_row(row) for row in rows)


def _zoo_row(row: Row) -> ZooRow:
    return ZooRow(
        identifier=str(row["id"]),
        model=_model(row),
        year=cast(int, row["year"]),
        params_basis=cast(str | None, row["params_basis"]),
        status=str(row["status"]),
        memory_fields=tuple(cast(list[str], row["memory_fields"])),
    )


def _model(row: Row) -> Model:
    identifier = str(row["id"])
    kin = kin_of(identifier, str(row["family"]))
    family = _family(row, kin)
    found, assumed, missing = _sizes(row, kin)
    is_tied = _tie(row, kin, assumed, missing)
    sizes = found if is_tied is None else found | {"is_tied": int(is_tied)}
    stacks = _stacks(row, kin, sizes)
    lacking = absent_sizes(family, sizes=sizes, output=kin.output) - {"is_tied"}
    missing += [f"{name}: the row has none, and the embedding needs it" for name in sorted(lacking)]
    notes = (row["notes"], CAUSES.get(identifier), NOTES.get(identifier), _left_out(family))
    return Model(
        name=str(row["name"]),
        origin=str(row["source"]),
        family=str(row["family"]),
        modality=str(row["modality"]),
        stacks=tuple(audited_stack(family, stack) for stack in stacks),
        input=_input_map(row),
        is_tied=is_tied,
        parameters=parameters(family, stacks, sizes=sizes, output=kin.output),
        published_params=_number(row, "params_published"),
        assumed=tuple(assumed),
        missing=tuple(missing),
        doubtful=DOUBTFUL.get(identifier, ()),
        notes=tuple(str(note) for note in notes if note is not None),
    )


def _family(row: Row, kin: Kin) -> Family:
    """The family with what the row says of it: gating, positions, and heads that nobody found."""
    family = (gated if row["gated_ff"] else ungated)(kin.family)
    dropped = set()
    if row["position_kind"] == "rotary":
        dropped.add(pieces.position_table)
    if row["heads"] is None:
        dropped.add(pieces.contact_head)  # depth * heads + 1: thousands among millions
    outputs = {
        end: tuple(piece for piece in parts if piece not in dropped)
        for end, parts in family.outputs.items()
    }
    embedding = tuple(piece for piece in family.embedding if piece not in dropped)
    return replace(family, outputs=outputs, embedding=embedding)


_COLUMNS = {
    "depth": "depth",
    "width": "width",
    "heads": "heads",
    "head_dim": "head_dim",
    "kv_heads": "kv_heads",
    "feed_forward": "d_ff",
    "vocab": "vocab_size",
    "inner": "embedding_size",
    "positions": "max_positions",
    "target_positions": "max_positions",
    "patch_dimensions": "input_dims",
    "stem_last": "input_dims",
}
_SHOWN = ("depth", "heads", "head_dim", "feed_forward")  # a stack shows them, counted or not


def _sizes(row: Row, kin: Kin) -> tuple[dict[str, int], list[str], list[str]]:
    """The sizes in a row, with the facts of its family for those that it lacks."""
    sizes: dict[str, int] = {}
    assumed: list[str] = []
    missing: list[str] = []
    for name, column in _COLUMNS.items():
        value = _number(row, column)
        if value is not None:
            sizes[name] = value
    for name, fact in kin.facts.items():
        if name not in sizes:
            sizes[name] = fact.value * (sizes["width"] if fact.is_multiple else 1)
            assumed.append(f"{name}={sizes[name]}: {fact.source}")
    if "feed_forward" not in sizes and kin.family.feed_forward_multiple is not None:
        sizes["feed_forward"] = kin.family.feed_forward_multiple * sizes["width"]
    missing += [f"{name}: the row has no {_COLUMNS[name]}" for name in _SHOWN if name not in sizes]
    if row["moe"]:  # hidden units of one expert, and nobody said how many experts there are
        sizes["expert_feed_forward"] = sizes.pop("feed_forward")
        missing.append("experts: the row does not say how many there are")
    return sizes | _attention(sizes, kin), assumed, missing


def _attention(sizes: dict[str, int], kin: Kin) -> dict[str, int]:
    if "heads" in sizes and "head_dim" in sizes:
        kv_heads = sizes.get("kv_heads", sizes["heads"])
        return {
            "attention": sizes["heads"] * sizes["head_dim"],
            "key_value": kv_heads * sizes["head_dim"],
        }
    width = sizes["width"]
    return {"attention": width, "key_value": width} if kin.family.is_square else {}


def _stacks(row: Row, kin: Kin, sizes: dict[str, int]) -> tuple[SizedStack, ...]:
    stacks: list[SizedStack] = []
    for role in ("encoder", "decoder"):
        depth = _number(row, f"{role}_layers")
        if depth == 0:
            continue
        own = {name: size for name, size in sizes.items() if name != "depth"}
        if depth is not None:
            own |= {"depth": depth, "distinct": _number(row, "shared_layers") or depth}
        follows = role == "decoder" and bool(stacks)
        stacks.append(
            SizedStack(
                role="vision" if kin.family.input == "linear_patch" else role,
                has_cross_attention=follows or kin.has_cross_attention,
                sizes=own,
            )
        )
    return tuple(stacks)


def _tie(row: Row, kin: Kin, assumed: list[str], missing: list[str]) -> bool | None:
    """Whether the head is tied: as the row says, else as every model of the class."""
    stated = row["tied_embeddings"]
    if isinstance(stated, bool):
        return stated
    default = DEFAULTS.get(kin.model_type or "", {}).get("tie_word_embeddings")
    if not isinstance(default, bool):
        return None
    if str(row["id"]).startswith(TIE_VARIES):
        missing.append("is_tied: the row does not say, and small and large models differ in it")
        return None
    assumed.append(f"is_tied={default}: default of {kin.family.config_class} ({READ_FROM})")
    return default


def _input_map(row: Row) -> InputMap:
    kind = str(row["input_map"])
    assert kind in get_args(InputKind)
    return InputMap(
        kind=cast(InputKind, kind),
        vocab=_number(row, "vocab_size"),
        vocab_real=_number(row, "vocab_size_real"),
        inner=_number(row, "embedding_size"),
        dimensions=_number(row, "input_dims"),
    )


def _left_out(family: Family) -> str | None:
    return None if family.left_out is None else f"the count leaves out {family.left_out}"


def _number(row: Row, column: str) -> int | None:
    value = row[column]
    assert value is None or type(value) is int
    return value
