"""Published models out of the table that ships with archfit.

`zoo.json` holds their sizes as the pages print them, `zoo_rules.toml` how each row is counted.
"""

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, cast

from archfit.audit import families
from archfit.audit.families import Family, Sizes, piece_value
from archfit.audit.model import InputKind, InputMap, Model
from archfit.spec.packed import packed_file, packed_table

Row = Mapping[str, Any]
LONGEST_NAME, ALIKE = 200, 0.6  # characters that are compared; share of them in common
ZOO_RULES = packed_table("zoo_rules.toml")  # how rows are counted
NAMED_IF_MISSING = ("depth", "heads", "head_dim", "feed_forward")  # counted or not


@cache
def zoo_rows() -> Mapping[str, Row]:
    """The rows of the table by id, as the file has them."""
    text = packed_file("zoo.json").read_text(encoding="utf-8")
    _, *rows = json.loads(text)  # the first element explains the others
    return {row["id"]: row for row in rows}


def zoo_names() -> dict[str, str]:
    """Ids of the table, each with its printed name."""
    return {identifier: str(row["name"]) for identifier, row in zoo_rows().items()}


def zoo_models() -> tuple[Model, ...]:
    """All models of the table, in its order."""
    return tuple(map(_model, zoo_rows()))


def zoo_id(name: str) -> str | None:
    """The id of the row that has this id, printed name or other name; None if none has."""
    return _ids().get(_spelling(name))


def zoo_model(name: str) -> Model:
    """The model that is called so; others are told the nearest ones."""
    if identifier := zoo_id(name):
        return _model(identifier)
    near = nearest(name, zoo_rows())
    hint = f"the nearest are {', '.join(near)}" if near else f"it has {len(zoo_rows())} models"
    raise ValueError(f"{name[:60]!r} is not in the table of published models; {hint}")


@cache
def _ids() -> Mapping[str, str]:
    """Ids by every name that is one row's own."""
    names = {other: id_ for id_, others in ZOO_RULES["called"].items() for other in others}
    names |= {printed: id_ for id_, printed in zoo_names().items()}
    names |= {id_: id_ for id_ in zoo_rows()}
    return {_spelling(name): id_ for name, id_ in names.items()}


def _spelling(name: str) -> str:
    """A name without case, hyphens and the like; between digits one stays: 2-7b is not 27b."""
    plain = re.sub(r"[^a-z0-9.]+", " ", name[:LONGEST_NAME].casefold()).strip()
    return re.sub(r"(?<!\d) | (?!\d)", "", plain)


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Up to three names that may be meant: first of the same family, of those first of about the
    same size, then as spelled."""
    word = name[-LONGEST_NAME:].rpartition("/")[2].casefold()
    head, size = _head_and_size(word)
    found = []
    for other in names:
        plain = other.rpartition("/")[2].casefold()
        own_head, own_size = _head_and_size(plain)
        alike = difflib.SequenceMatcher(None, word, plain).ratio()
        away = abs(math.log(own_size / size)) if own_size and size else math.inf
        if own_head == head or alike >= ALIKE:
            found.append((own_head != head, away, -alike, other))
    return [other for *_, other in sorted(found)[:3]]


def _head_and_size(name: str) -> tuple[str, float]:
    """What stands before the first hyphen, and the size that a name ends in; 0 if it has none."""
    sizes = re.findall(r"(?<![\d.])(\d{1,4}(?:\.\d{1,3})?)([mb])\b", name)
    size = float(sizes[-1][0]) * {"m": 1e6, "b": 1e9}[sizes[-1][1]] if sizes else 0.0
    return re.split(r"[^a-z0-9.]", name, maxsplit=1)[0], size


def counting_rule(row: Row) -> Mapping[str, Any]:
    """How a row is counted: by the start of its id, by its family's rule, or as its family.

    A rule has the `family` whose blocks the row has, and may have `facts`, sizes that a row lacks,
    and `has_cross_attention`, of a decoder that stands alone in the table.
    """
    by_start, by_family = ZOO_RULES["by_start"], ZOO_RULES["by_family"]
    starts = [start for start in by_start if row["id"].startswith(start)]
    usual = by_family.get(row["family"], {"family": row["family"]})
    rule: Mapping[str, Any] = by_start[max(starts, key=len)] if starts else usual
    return rule


@cache
def _model(identifier: str) -> Model:
    row = zoo_rows()[identifier]
    rule = counting_rule(row)
    family = replace(families.family_of(rule["family"]), is_gated=bool(row["gated_ff"]))
    outside = _outside(row, family)
    assumed: list[str] = []
    missing: list[str] = []
    sizes = _sizes(row, family, rule.get("facts", ()), assumed, missing)
    is_tied = _tie(row, family, assumed, missing)
    sizes |= {} if is_tied is None else {"is_tied": int(is_tied)}
    stacks = _stacks(row, family, sizes, crosses=rule.get("has_cross_attention", False))
    why = "the row has none, and the embedding needs it"
    missing += [f"{name}: {why}" for name in sorted(absent_sizes(outside, sizes) - {"is_tied"})]
    left_out = f"the count leaves out {family.left_out}" if family.left_out else None
    told = (ZOO_RULES[kind].get(identifier) for kind in ("causes", "notes"))
    notes = (row["notes"], *told, left_out)
    reads = InputMap(
        kind=cast(InputKind, row["input_map"]), inner=row["embedding_size"],
        vocab=row["vocab_size"], vocab_real=row["vocab_size_real"], dimensions=row["input_dims"],
    )  # fmt: skip
    return Model(
        name=row["name"], origin=row["source"], family=row["family"], modality=row["modality"],
        stacks=tuple(families.audited_stack(role, family, found) for role, found in stacks.items()),
        input=reads, is_tied=is_tied,
        parameters=families.parameters(family, stacks.values(), sizes, outside),
        published_params=row["params_published"], assumed=tuple(assumed), missing=tuple(missing),
        doubtful=tuple(ZOO_RULES["doubtful"].get(identifier, ())),
        notes=tuple(note for note in notes if note is not None),
    )  # fmt: skip


def _outside(row: Row, family: Family) -> list[str]:
    """The pieces outside the blocks, less those that the row says it has not, or nobody found."""
    dropped = ["position_table"] if row["position_kind"] == "rotary" else []
    if row["heads"] is None:
        dropped.append("contact_head")  # depth * heads + 1: thousands among millions
    pieces = family.embedding + next(iter(family.outputs.values()))
    return [piece for piece in pieces if piece not in dropped]


def absent_sizes(pieces: Sequence[str], sizes: Sizes) -> set[str]:
    """Sizes for want of which the pieces cannot be counted."""
    absent = set()
    for piece in pieces:
        try:
            piece_value(piece, sizes)
        except KeyError as problem:
            absent.add(str(problem.args[0]))
    return absent


def _sizes(
    row: Row, family: Family, facts: Sequence[str], assumed: list[str], missing: list[str]
) -> dict[str, int]:
    """The sizes in a row, with the facts of its family for those that it lacks."""
    columns = ZOO_RULES["columns"]
    sizes = {name: row[at] for name, at in columns.items() if row[at] is not None}
    for fact in (ZOO_RULES["facts"][name] for name in facts):
        name = fact["size"]
        if name not in sizes:
            sizes[name] = piece_value(fact["value"], sizes)
            assumed.append(f"{name}={sizes[name]}: {fact['source']}")
    if "feed_forward" not in sizes and family.feed_forward_multiple:
        sizes["feed_forward"] = family.feed_forward_multiple * sizes["width"]
    lacking = [name for name in NAMED_IF_MISSING if name not in sizes]
    missing += [f"{name}: the row has no {columns[name]}" for name in lacking]
    if row["moe"]:  # hidden units of one expert, and nobody said how many experts there are
        sizes["expert_feed_forward"] = sizes.pop("feed_forward")
        missing.append("experts: the row does not say how many there are")
    if "heads" in sizes and "head_dim" in sizes:
        head_dim, kv_heads = sizes["head_dim"], sizes.get("kv_heads", sizes["heads"])
        sizes |= {"attention": sizes["heads"] * head_dim, "key_value": kv_heads * head_dim}
    elif family.is_square:
        sizes |= {"attention": sizes["width"], "key_value": sizes["width"]}
    return sizes


def _stacks(row: Row, family: Family, sizes: Sizes, *, crosses: bool) -> dict[str, Sizes]:
    """Encoder and decoder, as far as there are such; a decoder after an encoder attends to it."""
    stacks: dict[str, Sizes] = {}
    for role in ("encoder", "decoder"):
        depth = row[f"{role}_layers"]
        if depth == 0:
            continue
        own = {**sizes, "crosses": int(crosses or bool(stacks))}
        own.pop("depth", None)
        if depth is not None:
            own |= {"depth": depth, "distinct": row["shared_layers"] or depth}
        stacks["vision" if family.input == "linear_patch" else role] = own
    return stacks


def _tie(row: Row, family: Family, assumed: list[str], missing: list[str]) -> bool | None:
    """Whether the head is tied: as the row says, else as every model of the class."""
    stated, default = row["tied_embeddings"], family.defaults.get("tie_word_embeddings")
    if stated is not None:
        return bool(stated)
    if not isinstance(default, bool):
        return None
    if row["id"].startswith(tuple(ZOO_RULES["tie_varies"])):
        missing.append("is_tied: the row does not say, and small and large models differ in it")
        return None
    source = families.knowledge()["read_from"]
    assumed.append(f"is_tied={default}: default of {family.config_class} ({source})")
    return default
