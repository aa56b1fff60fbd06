"""The sizes in one config document, as its class would read them, and what it did not say.

A refusal never prints a value whole: it may be a number of a million digits or a list nested
without end.
"""

from collections.abc import Mapping
from typing import Any

from archfit.audit.families import Document, Family, knowledge
from archfit.audit.model import InputMap
from archfit.spec.errors import InvalidValue, brief, check_at_least, refuse_if

MOST_LAYERS_OF_A_STEM = 64
BYTES = 256 + 3  # and ByT5's padding, end and unknown
WITH_TOKENS = ("lookup", "factorised_lookup", "nonlinear")  # Whisper's decoder has a table, too


class ConfigReader:
    """A config and, in lists that grow, what was assumed, what is missing and what to note."""

    def __init__(self, document: Document, family: Family, *, is_part: bool) -> None:
        self.document, self.family = document, family
        self.defaults = {**family.defaults, **(family.part_defaults if is_part else {})}
        self.keys: Mapping[str, tuple[str, ...]] = knowledge()["keys"]  # a stack has others
        self.assumed: list[str] = []
        self.missing: list[str] = []
        self.notes: list[str] = []
        self.is_byte_model = document.get("tokenizer_class") == "ByT5Tokenizer"

    def size(self, name: str, *, least: int = 1) -> int | None:
        """The size under the first key that the config has, else the default of the class; None
        where the class does not read it at all."""
        is_unread = name in knowledge()["sizes_of_a_stack"] and name not in self.family.needs
        found = None if is_unread else self.value(name)
        return None if found is None else whole(*found, least=least)

    def value(self, name: str) -> tuple[str, object] | None:
        """The first key that the config has with its value; None where it is null or nowhere.

        A null is left to the rule by which the class computes the size: a default stands only
        for a key that is absent, as in the class.
        """
        keys = self.keys[name]
        key = next((key for key in keys if key in self.document), None)
        if key is not None:
            value = self.document[key]
            for other_key, other in ((key, self.document.get(key)) for key in keys):
                if type(other) is int and other != value:
                    read = f"{key}={brief(value)} was read, not {other_key}={brief(other)}"
                    self.notes += [] if read in self.notes else [read]
            return None if value is None else (key, value)
        key = next((key for key in keys if key in self.defaults), None)
        if key is None:
            return None
        value, source = self.defaults[key], knowledge()["read_from"]
        default = f"{key}={value}: default of {self.family.config_class} ({source})"
        self.assumed += [] if default in self.assumed else [default]
        return key, value

    def is_tied(self) -> bool | None:
        """Whether the token table serves as the head; noted as missing where nothing says so."""
        found = self.noted("is_tied")
        if found is None:
            return None
        key, value = found
        if not isinstance(value, bool):
            raise InvalidValue(key, value, "is neither true nor false", "use one of the two")
        return value

    def lack(self, name: str) -> None:
        """Note that a size was not found, with the keys that would have held it."""
        self.missing.append(f"{name}: looked for {', '.join(self.keys[name])}")

    def required(self, name: str, otherwise: int | None = None) -> int:
        """A size that every model has; refuses a config without it."""
        size = self.size(name) or otherwise
        if size is None:
            self.lack(name)
            raise ValueError(f"the config gives no {self.missing[-1].replace(':', ';')}")
        return size

    def noted(self, name: str) -> tuple[str, object] | None:
        """The value of this name with its key; noted as missing where there is none."""
        found = self.value(name)
        if found is None:
            self.lack(name)
        return found


def whole(key: str, value: object, *, least: int = 1) -> int:
    """`value` as a whole number from `least` to 10^12."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidValue(key, value, "is not a whole number", f"use {least} or more")
    check_at_least(least, **{key: value})
    return value


def _pair(key: str, value: object) -> tuple[int, int]:
    """A side as a whole number, or height and width as a list of two."""
    sides = value if isinstance(value, list | tuple) else (value, value)
    if len(sides) != 2:
        raise InvalidValue(key, value, "is no pair", "use one side, or a list of height and width")
    return whole(key, sides[0]), whole(key, sides[1])


def _wholes(key: str, value: object) -> tuple[int, ...]:
    """A short list of whole numbers."""
    if not isinstance(value, list | tuple):
        raise InvalidValue(key, value, "is no list", "use one number for each convolution")
    if not 1 <= len(value) <= MOST_LAYERS_OF_A_STEM:
        raise ValueError(f"{key} has {len(value)} entries; use 1 to {MOST_LAYERS_OF_A_STEM}")
    return tuple(whole(key, part) for part in value)


# ---- a stack


def stack_sizes(
    reader: ConfigReader, stack: Mapping[str, Any], width: int, before: int | None
) -> dict[str, int]:
    """The sizes of a stack; `before` is the depth of the stack in front of it.

    The decoder of a T5 is as deep as its encoder where the config does not say.
    """
    reader.keys = {**knowledge()["keys"], **stack.get("keys", {})}
    depth, crosses = reader.required("depth", before), stack.get("has_cross_attention", False)
    sizes = {"width": width, "depth": depth, "distinct": depth, "crosses": int(crosses)}
    sizes |= _attention(reader, width)
    feed_forward = reader.size("feed_forward") or reader.family.feed_forward_multiple * width
    if feed_forward:
        sizes["feed_forward"] = feed_forward
    else:
        reader.lack("feed_forward")
    sizes |= _mixture(reader, depth, feed_forward)
    if "groups" in reader.family.needs:
        sizes["distinct"] = (reader.size("groups") or 1) * (reader.size("inner_groups") or 1)
    return sizes


def _attention(reader: ConfigReader, width: int) -> dict[str, int]:
    family, heads = reader.family, reader.size("heads")
    if heads is None:
        reader.lack("heads")
        return {"attention": width, "key_value": width} if family.is_square else {}
    kv_heads = family.fixed_kv_heads or reader.size("kv_heads") or heads
    refuse_if(kv_heads > heads, "more-kv-heads", kv_heads=brief(kv_heads), heads=heads)
    found = {"heads": heads, "kv_heads": kv_heads}
    head_dim = reader.size("head_dim")
    is_fraction = head_dim is None and width % heads > 0
    refuse_if(is_fraction and family.is_square, "fractional-head", width, heads=heads)
    if is_fraction:
        reader.lack("head_dim")
        return found | {"attention": width, "key_value": width * kv_heads // heads}
    if head_dim is None:
        head_dim = width // heads
        if not family.is_square:
            usual = f"head_dim={head_dim}: width / heads, as usual; this family is not known"
            reader.assumed.append(usual)
    sizes = {"attention": heads * head_dim, "key_value": kv_heads * head_dim}
    return found | {"head_dim": head_dim} | sizes


def _mixture(reader: ConfigReader, depth: int, feed_forward: int) -> dict[str, int]:
    """Sizes of the experts; nothing where every layer is dense."""
    experts = reader.size("experts", least=0)
    if not experts:
        return {}
    # Every step-th layer has experts, unless it is listed as dense; no layer is walked through.
    step = reader.size("expert_step") or 1
    listed = reader.document.get("mlp_only_layers") or []
    if not isinstance(listed, list):
        raise InvalidValue("mlp_only_layers", listed, "is no list", "use numbers of layers")
    dense = {at for at in listed if type(at) is int and 0 <= at < depth and (at + 1) % step == 0}
    sizes = {
        "experts": experts,
        "dense": depth - depth // step + len(dense),
        "expert_feed_forward": reader.size("expert_feed_forward") or feed_forward,
        "shared_feed_forward": reader.size("shared_feed_forward") or 0,
    }
    return {name: size for name, size in sizes.items() if size or name == "dense"}


# ---- outside of the stacks


def outside_sizes(reader: ConfigReader, width: int) -> dict[str, int]:
    """The sizes that the parts outside the stacks need; what is not there is noted as missing."""
    sizes: dict[str, int] = {}
    family = reader.family
    names = [name for name in family.needs if name not in knowledge()["sizes_of_a_stack"]]
    for name in ["vocab", *names] if family.input in WITH_TOKENS else names:
        found = reader.value(name) if name == "inner" else reader.noted(name)
        if found is not None:
            sizes[name] = whole(*found, least=0 if name == "types" else 1)
        elif name == "inner":
            sizes[name] = width  # the class takes the width where the key is absent or null
    if family.input == "linear_patch":
        sizes |= _patches(reader)
    if family.input == "linear_on_conv_features":
        sizes |= _stem(reader)
    return sizes


def input_map(reader: ConfigReader, sizes: dict[str, int], width: int) -> InputMap:
    """The way in, with what bounds the rank of the inputs."""
    kind, inner, vocab = reader.family.input, sizes.get("inner"), sizes.get("vocab")
    if kind == "lookup" and inner is not None and inner != width:
        kind = "factorised_lookup"
    dimensions = sizes.get("patch_dimensions", sizes.get("stem_last"))
    if kind == "linear_continuous" and sizes.keys() >= {"state_dimensions", "action_dimensions"}:
        dimensions = sizes["state_dimensions"] + sizes["action_dimensions"] + 1  # and the return
    real = min(BYTES, vocab) if reader.is_byte_model and vocab is not None else None
    return InputMap(kind=kind, vocab=vocab, vocab_real=real, inner=inner, dimensions=dimensions)


def _patches(reader: ConfigReader) -> dict[str, int]:
    channels, patch, image = map(reader.noted, ("channels", "patch_size", "image_size"))
    sizes: dict[str, int] = {}
    if patch is None:
        return sizes
    height, width = _pair(*patch)
    if channels is not None:
        sizes["patch_dimensions"] = height * width * whole(*channels)
    if image is not None:
        image_height, image_width = _pair(*image)
        down, across = image_height // height, image_width // width
        sizes["patches"] = down * across
        # offsets between two patches, and three for those from, to and of the class token
        sizes["patch_offsets"] = max(0, 2 * down - 1) * max(0, 2 * across - 1) + 3
    return sizes


def _stem(reader: ConfigReader) -> dict[str, int]:
    """Sums over the convolutions of a stem that starts from one channel of sound."""
    found = reader.noted("stem_channels")
    if found is None:
        return {}
    channels = _wholes(*found)
    sizes = {"stem_channels": sum(channels), "stem_first": channels[0], "stem_last": channels[-1]}
    kernels = reader.noted("stem_kernels")
    if kernels is None:
        return sizes
    taps = _wholes(*kernels)
    refuse_if(len(taps) != len(channels), "stem", kernels=len(taps), channels=len(channels))
    layers = zip((1, *channels), channels, taps, strict=False)
    return sizes | {"stem_weights": sum(before * after * tap for before, after, tap in layers)}
