"""What tells one family of models from another, read from `resources/families.toml`.

An entry says how the blocks of a family are built and what lies outside of them; `like` takes over
another entry. Its file explains the fields, and the pieces that parameters are counted in.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from archfit.audit.model import InputKind
from archfit.spec.counting import BlockStyle

Document = Mapping[str, object]
CLASS_ENDS = ("LMHeadModel", "EncoderModel", "DoubleHeadsModel", "Model")


@dataclass(frozen=True, kw_only=True, slots=True)
class StackKeys:
    """One stack of a family, and where a config writes its sizes."""

    role: str
    has_cross_attention: bool = False
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # instead of the usual ones


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """What changes in a family where a key of the config has a certain value."""

    key: str
    value: object
    changed: Mapping[str, Any] = field(default_factory=dict)  # field of the family -> new value
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # field -> parts
    added: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def is_on(self, document: Document) -> bool:
        """Whether the config has the value."""
        value = document.get(self.key)
        return type(value) in (bool, int, float, str) and value == self.value


@dataclass(frozen=True, kw_only=True, slots=True)
class Family(BlockStyle):
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
    switches: tuple[Switch, ...]
    is_exact: bool
    left_out: str
    defaults: Mapping[str, object]
    part_defaults: Mapping[str, object]

    @property
    def stack_keys(self) -> tuple[StackKeys, ...]:
        """Its stacks, the one that reads the input first."""
        return tuple(StackKeys(**stack) for stack in knowledge()["stacks"][self.stacks])

    def switched(self, document: Document) -> "Family":
        """The family with the switches that this config turns."""
        family = self
        for switch in (switch for switch in self.switches if switch.is_on(document)):
            changes = dict(switch.changed)
            for name in (*switch.dropped, *switch.added):
                kept = getattr(family, name)
                kept = [part for part in kept if part not in switch.dropped.get(name, ())]
                changes[name] = (*kept, *switch.added.get(name, ()))
            family = replace(family, **changes)
        return family

    def without_pieces(self, *pieces: str) -> "Family":
        """The family less these pieces outside its blocks."""

        def kept(parts: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(piece for piece in parts if piece not in pieces)

        outputs = {end: kept(parts) for end, parts in self.outputs.items()}
        return replace(self, outputs=outputs, embedding=kept(self.embedding))


@cache
def knowledge() -> Mapping[str, Any]:
    """All that `families.toml` says, its lists as tuples; read once, in about 10 ms."""
    file = resources.files("archfit.resources").joinpath("families.toml")
    document: Mapping[str, Any] = _frozen(tomllib.loads(file.read_text(encoding="utf-8")))
    return document


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return {key: _frozen(part) for key, part in value.items()}
    return value


def families() -> tuple[str, ...]:
    """Names of the families that a config can have, its `model_type`s."""
    return tuple(knowledge()["families"])


@cache
def family_of(name: str) -> Family:
    """The entry of this name: a family of configs, or a variant."""
    entry = dict(knowledge()["families"].get(name) or knowledge()["variants"][name])
    if "switches" in entry:
        shared = knowledge()["switches"]  # which several families have, by name
        entries = [shared[each] if isinstance(each, str) else each for each in entry["switches"]]
        entry["switches"] = tuple(Switch(**each) for each in entries)
    if "like" not in entry:
        return Family(**entry)
    base = family_of(entry.pop("like"))
    if "config_class" in entry:  # another class has defaults of its own
        base = replace(base, defaults={}, part_defaults={})
    return replace(base, **entry)


def keys_of(size: str) -> tuple[str, ...]:
    """The keys under which configs write a size, the usual one first."""
    keys: tuple[str, ...] = knowledge()["keys"][size]
    return keys


def tensor_names(part: str) -> tuple[str, ...]:
    """How the names of tensors end that hold this part of a model."""
    names: tuple[str, ...] = knowledge()["tensors"][part]
    return names


def family_name(document: Document) -> str | None:
    """The `model_type` of a config, or what its `architectures` or keys give away."""
    named = document.get("model_type")
    if named is not None and not isinstance(named, str):
        why = "a config names its family there, or leaves it out"
        raise ValueError(f"model_type is no string; {why}")
    built = class_name(document)
    if named is not None and (named in families() or not built):
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
