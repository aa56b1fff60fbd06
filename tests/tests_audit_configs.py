"""Small configs of every family, drawn with a seed, for its class to build."""

import dataclasses
import random

from archfit.audit.families import Family, family_of, knowledge

_MANY = {
    "positions": (16, 50),
    "types": (1, 3),
    "inner": (8, 12),
    "groups": (1, 2),
    "experts": (2, 4),
    "expert_feed_forward": (12, 20),
    "shared_feed_forward": (16, 24),
    "buckets": (8, 32),
    "mel_bins": (20, 80),
    "source_positions": (30, 40),
    "target_positions": (20, 28),
    "position_groups": (2, 4),
    "position_taps": (8, 16),
    "classes": (20, 30),
}


def random_config(name: str, keys: set[str], seed: int) -> dict[str, object]:
    """A config of the family `name` whose class reads `keys`."""
    draw = random.Random(f"{name} {seed}")
    family = family_of(name)
    sizes = _attention(name, draw) | {"vocab": (draw.randint(60, 400),)}
    sizes |= {size: _MANY[size] for size in family.needs if size in _MANY}
    config: dict[str, object] = {"model_type": name, "pad_token_id": 0}
    for stack in knowledge()["stacks"][family.stacks]:
        for size, values in (sizes | {"depth": (1, 2, 3, 5), "feed_forward": (20, 33)}).items():
            spellings = stack.get("keys", {}).get(size, knowledge()["keys"][size])
            key = next((key for key in spellings if key in keys), None)
            if key is not None:
                config[key] = draw.choice(values)
    if name == "gpt_neo":
        config["attention_types"] = [[["global"], config["num_layers"]]]
    return config | _switches(family, keys, draw) | _input_of(name, keys, draw)


def _attention(name: str, draw: random.Random) -> dict[str, tuple[int, ...]]:
    family = family_of(name)
    heads, head_dim = draw.choice((2, 4, 6)), draw.choice((4, 8, 16))
    if "position_groups" in family.needs:
        return {"width": (heads * 16,), "heads": (heads,)}
    divisors = tuple(number for number in range(1, heads + 1) if heads % number == 0)
    sizes: dict[str, tuple[int, ...]] = {"width": (heads * head_dim,), "heads": (heads,)}
    if "kv_heads" in family.needs or name == "falcon":
        sizes["kv_heads"] = divisors
    if "head_dim" in family.needs and (draw.random() < 0.7 or not family.is_square):
        sizes |= {"width": (heads * 8, heads * 12), "head_dim": (head_dim,)}
    return sizes


def _switches(family: Family, keys: set[str], draw: random.Random) -> dict[str, object]:
    turned = {switch["key"]: switch["value"] for switch in family.switches if draw.random() < 0.4}
    if "layer_scale_init_value" in turned:
        turned["layer_scale_init_value"] = 0.0  # the class insists on a point
    if "add_cross_attention" in turned:
        turned |= {"is_decoder": True, "multi_query": False}  # no class crosses without
    return {key: value for key, value in turned.items() if key in keys}


def _input_of(name: str, keys: set[str], draw: random.Random) -> dict[str, object]:
    family = family_of(name)
    if family.input == "linear_patch":
        image, patch = draw.choice((32, 64)), draw.choice((8, 16))
        return {"image_size": image, "patch_size": patch, "num_channels": draw.choice((1, 3))}
    if family.input == "linear_on_conv_features":
        return {"conv_dim": [8, 12, 16], "conv_kernel": [5, 3, 2], "conv_stride": [2, 2, 2]}
    if name not in ("t5", "mt5") and draw.random() < 0.5:  # those two always tie, see test_count
        return {"tie_word_embeddings": draw.random() < 0.5}
    if family.feed_forward_multiple and draw.random() < 0.3:
        return {"n_inner": None} if "n_inner" in keys else {}
    return {}


def class_keys(config_class: type) -> set[str]:
    """The keys that a config class reads."""
    return {field.name for field in dataclasses.fields(config_class)}
