"""A model from its config document, whichever of the many spellings it uses."""

from collections.abc import Mapping
from dataclasses import replace

from archfit.audit.architecture import (
    is_own,
    model_from_architecture,
    own_architecture,
)
from archfit.audit.config_inputs import input_map, outside_sizes
from archfit.audit.count import SizedStack, parameters
from archfit.audit.decoder_families import ENCODER_AND_DECODER, T5
from archfit.audit.families import FAMILIES, ROUGH, UNKNOWN, class_name, family_name
from archfit.audit.family import Family, StackPlan
from archfit.audit.family_parts import VISION, gated
from archfit.audit.fields import shown
from archfit.audit.model import Model
from archfit.audit.nested import parts_of, whole_of
from archfit.audit.reader import Reader
from archfit.audit.spellings import SPELLINGS
from archfit.audit.stack_sizes import audited_stack, sized_stack

_NO_PLAIN_LAYERS = (
    "kv_lora_rank",
    "q_lora_rank",
    "ssm_cfg",
    "state_size",
    "mamba_d_state",
    "layers_block_type",
    "n_shared_experts",
    "first_k_dense_replace",
)
_CLASSIFIERS = ("Classification", "QuestionAnswering", "WithTeacher")
_NOT_FOLLOWED: tuple[tuple[str, object], ...] = (  # keys of known families that change the count
    ("add_adapter", True),  # wav2vec2
    ("conv_pos_batch_norm", True),  # HuBERT
    ("feat_proj_layer_norm", False),
    ("norm_bias", True),  # ModernBERT
    ("classifier_bias", True),
    ("decoder_bias", False),
    ("share_encoder_decoder_embeddings", False),  # Marian
    ("position_embedding_type", "relative_key"),
    ("position_embedding_type", "relative_key_query"),
)


def model_from_config(document: Mapping[str, object], *, name: str, origin: str) -> Model:
    """The model that a parsed `config.json`, or archfit's own `spec.json`, describes.

    Values that the file leaves to its class come from `defaults.py` and are listed in `assumed`;
    what stands nowhere is listed in `missing`. Without depth or width there is no model.
    """
    if is_own(document):
        return model_from_architecture(own_architecture(document), name=name, origin=origin)
    parts = parts_of(document)
    if not parts:
        return _single_model(document, name=name, origin=origin, is_part=False)
    models = [_single_model(part, name=name, origin=origin, is_part=True) for part in parts]
    return whole_of(document, models)


def _single_model(
    document: Mapping[str, object], *, name: str, origin: str, is_part: bool
) -> Model:
    model_type = family_name(document)
    family = _family(document, model_type)
    reader = Reader(document, family, model_type, is_part=is_part)
    width = reader.size("width")
    if width is None:
        raise reader.refuse("width")
    plans = _plans(document, family)
    stacks = _stacks(reader, plans, width)
    sizes = dict(stacks[0].sizes) | outside_sizes(reader, width)
    is_tied = _tie(reader, sizes)
    output = _output(reader, class_name(document))
    _note_what_is_left_out(reader, model_type)
    return Model(
        name=name,
        origin=origin,
        family=model_type,
        modality=_modality(document, family),
        stacks=tuple(audited_stack(family, stack) for stack in stacks),
        input=input_map(reader, sizes, width),
        is_tied=is_tied,
        parameters=parameters(family, stacks, sizes=sizes, output=output),
        published_params=None,
        assumed=tuple(reader.assumed),
        missing=tuple(reader.missing),
        doubtful=(),
        notes=tuple(reader.notes),
    )


def _family(document: Mapping[str, object], model_type: str | None) -> Family:
    """The family with the switches that this config turns."""
    family = FAMILIES.get(model_type or "")
    if family is None:
        return _unknown(document)
    for switch in family.switches:
        value = document.get(switch.key)
        if type(value) in (bool, int, float, str) and value == switch.value:
            family = switch.change(family)
    return family


def _unknown(document: Mapping[str, object]) -> Family:
    """Generic keys; gated where the config speaks as the descendants of Llama do."""
    family = UNKNOWN
    if "rms_norm_eps" in document and document.get("hidden_act") == "silu":
        family = replace(gated(family), left_out=ROUGH.format("three"))
    if "patch_size" in document:
        return replace(family, input="linear_patch", stacks=VISION, embedding=(), outputs={"": ()})
    if "encoder_layers" in document and "decoder_layers" in document:
        return replace(family, stacks=ENCODER_AND_DECODER)
    if "num_decoder_layers" in document:
        return replace(family, stacks=T5.stacks)
    if any(key in document for key in SPELLINGS["experts"]):
        return replace(family, needs=(*family.needs, "experts", "expert_feed_forward"))
    return family


def _plans(document: Mapping[str, object], family: Family) -> tuple[StackPlan, ...]:
    """The stacks; a class such as T5EncoderModel keeps the first alone."""
    only_encoder = class_name(document).endswith("EncoderModel")
    return family.stacks[:1] if only_encoder else family.stacks


def _stacks(reader: Reader, plans: tuple[StackPlan, ...], width: int) -> tuple[SizedStack, ...]:
    stacks: list[SizedStack] = []
    for plan in plans:
        follows = reader.family.stacks == T5.stacks and stacks
        before = stacks[0].sizes["depth"] if follows else None
        stacks.append(sized_stack(reader, plan, width, before))
    return tuple(stacks)


def _tie(reader: Reader, sizes: dict[str, int]) -> bool | None:
    """Whether the head is tied, also written into `sizes`; None without a token table or a head."""
    if "vocab" not in sizes or reader.family.outputs.keys() == {"Model"}:
        return None
    is_tied = reader.is_tied()
    if is_tied is None:
        reader.lack("is_tied")
    else:
        sizes["is_tied"] = int(is_tied)
    return is_tied


def _output(reader: Reader, named: str) -> str:
    """The entry of the family's outputs that the class in `architectures` has."""
    outputs = reader.family.outputs
    if not named:
        return next(iter(outputs))
    end = max((end for end in outputs if named.endswith(end)), key=len, default=None)
    if end is None or end.endswith(_CLASSIFIERS):
        reader.notes.append(f"the head of {shown(named)} is left out of the count")
    return "Model" if end is None else end


def _note_what_is_left_out(reader: Reader, model_type: str | None) -> None:
    family = reader.family
    if family.left_out is not None:
        reader.notes.append(f"the count leaves out {family.left_out}")
    reader.notes += [
        f"{key}={value} adds or drops parameters, which the count does not follow"
        for key, value in _NOT_FOLLOWED
        if reader.document.get(key) == value
    ]
    unusual = [key for key in _NO_PLAIN_LAYERS if key in reader.document]
    if unusual and model_type not in FAMILIES:
        reader.notes.append(
            f"{', '.join(unusual)}: its layers are not plain ones; the count takes them as such"
        )


def _modality(document: Mapping[str, object], family: Family) -> str | None:
    if document.get("tokenizer_class") == "ByT5Tokenizer":
        return "bytes"
    return "time_series" if "chronos_config" in document else family.modality
