"""The families that the audit knows, and which of them a config belongs to."""

from collections.abc import Mapping
from dataclasses import replace

from archfit.audit import pieces
from archfit.audit.decoder_families import DECODER_FAMILIES, GPT2
from archfit.audit.encoder_families import ENCODER_FAMILIES
from archfit.audit.family import Family
from archfit.audit.family_parts import GPT2_BLOCK, NONE

FAMILIES: dict[str, Family] = DECODER_FAMILIES | ENCODER_FAMILIES

ROUGH = (
    "biases, norms and tables of positions and takes every layer for a plain one with {} "
    "feed-forward matrices, since this family is not known here: it is rough"
)
UNKNOWN = replace(
    GPT2,
    config_class="",
    block=replace(GPT2_BLOCK, norm=0, biases=NONE),
    is_square=False,
    feed_forward_multiple=None,
    needs=("kv_heads", "head_dim"),
    embedding=(pieces.token_table,),
    outputs={"": (pieces.untied_head,)},
    is_exact=False,
    left_out=ROUGH.format("two"),
)

# A multimodal config names its parts in text_config and vision_config; where those do not say
# what they are, the outer model_type does.
TEXT_PARTS = {
    "clip": "clip_text_model",
    "gemma3": "gemma3_text",
    "llava": "llama",
    "mistral3": "mistral",
    "paligemma": "gemma",
    "smolvlm": "llama",
    "idefics3": "llama",
}
VISION_PARTS = {
    "clip": "clip_vision_model",
    "llava": "clip_vision_model",
    "gemma3": "siglip_vision_model",
    "paligemma": "siglip_vision_model",
}


def _models_prefix(family: Family) -> str:
    return family.config_class.removesuffix("Config").removesuffix("Text").lower()


_BY_PREFIX = {_models_prefix(family): name for name, family in FAMILIES.items()}
_ENDS = ("LMHeadModel", "EncoderModel", "DoubleHeadsModel", "Model")


def family_name(document: Mapping[str, object]) -> str | None:
    """The `model_type` of a config, or what its `architectures` or keys give away."""
    named = document.get("model_type")
    if named is not None and not isinstance(named, str):
        raise ValueError(
            "model_type is no string; a config names its family there, or leaves it out"
        )
    if named is not None and (named in FAMILIES or not class_name(document)):
        return named
    by_class = _BY_PREFIX.get(_prefix(class_name(document)))
    if named is None and by_class is None and "d_kv" in document and "d_ff" in document:
        return "t5"  # files of 2019 name neither family nor class
    return by_class or named


def class_name(document: Mapping[str, object]) -> str:
    """The first name in `architectures`; empty where there is none."""
    named = document.get("architectures")
    if named is None or named == []:
        return ""
    first = named[0] if isinstance(named, list) else named
    if not isinstance(first, str):
        raise ValueError("architectures holds no class names; it should be a list of strings")
    return first


def _prefix(name: str) -> str:
    """`BertForMaskedLM` → `bert`."""
    start, found, _ = name.partition("For")
    if found:
        return start.lower()
    end = next((end for end in _ENDS if name.endswith(end)), "")
    return name.removesuffix(end).lower()
