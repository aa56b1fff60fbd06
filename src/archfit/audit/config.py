"""A model from its config document, whichever of the many spellings it uses.

A config may hold those of several models: text and vision, encoder and decoder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from archfit.audit import families
from archfit.audit.config_sizes import ConfigReader, input_map, outside_sizes, stack_sizes, whole
from archfit.audit.families import Document, Family, class_name, family_of, knowledge
from archfit.audit.model import Model, Parameters, model_from_spec, sum_if_known
from archfit.spec.errors import InvalidValue, brief

CLASSIFIERS = ("Classification", "QuestionAnswering", "WithTeacher")  # whose heads are left out
TEXT_CONFIGS = ("text_config", "llm_config", "language_config")
TRAINING_TOKENS = "training_tokens"  # a key that `archfit export` writes


def model_from_config(document: Document, *, name: str, origin: str) -> Model:
    """The model that a parsed `config.json`, or archfit's own `spec.json`, describes.

    Values that the file leaves to its class come from `families.toml` and are listed in `assumed`;
    what stands nowhere is listed in `missing`. Without depth or width there is no model.
    """
    if (own := model_from_spec(document, name=name, origin=origin)) is not None:
        return own
    parts = _parts_of(document)
    if not parts:
        return _single_model(document, name=name, origin=origin, is_part=False)
    models = [_single_model(part, name=name, origin=origin, is_part=True) for part in parts]
    return _joined(document, models)


def _single_model(document: Document, *, name: str, origin: str, is_part: bool) -> Model:
    model_type = families.family_name(document)
    family = _family(document, model_type)
    reader = ConfigReader(document, family, is_part=is_part)
    width = reader.required("width")
    kinds = knowledge()["stacks"][family.stacks]
    has_all = not class_name(document).endswith("EncoderModel")  # T5's keeps the first alone
    stacks: dict[str, dict[str, int]] = {}
    for stack in kinds if has_all else kinds[:1]:
        before = stacks["encoder"]["depth"] if family.stacks == "t5" and stacks else None
        stacks[stack["role"]] = stack_sizes(reader, stack, width, before)
    sizes = stacks[kinds[0]["role"]] | outside_sizes(reader, width)
    has_head = "vocab" in sizes and family.outputs.keys() != {"Model"}
    is_tied = reader.is_tied() if has_head else None
    sizes |= {} if is_tied is None else {"is_tied": int(is_tied)}
    outside = family.embedding + family.outputs[_output(reader, class_name(document))]
    _note_what_is_left_out(reader, model_type)
    modality = "time_series" if "chronos_config" in document else family.modality or None
    tokens = document.get(TRAINING_TOKENS)
    return Model(
        name=name,
        origin=origin,
        family=model_type,
        modality="bytes" if reader.is_byte_model else modality,
        stacks=tuple(families.audited_stack(role, family, found) for role, found in stacks.items()),
        input=input_map(reader, sizes, width),
        is_tied=is_tied,
        parameters=families.parameters(family, stacks.values(), sizes, outside),
        training_tokens=tokens if type(tokens) is int and tokens > 0 else None,
        assumed=tuple(reader.assumed),
        missing=tuple(reader.missing),
        notes=tuple(reader.notes),
    )


def _family(document: Document, model_type: str | None) -> Family:
    """The family with the switches that this config turns; one by generic keys if not known."""
    if model_type in knowledge()["families"]:
        return family_of(model_type).switched(document)
    is_like_llama = "rms_norm_eps" in document and document.get("hidden_act") == "silu"
    family = family_of("unknown_gated" if is_like_llama else "unknown")
    if "patch_size" in document:
        family = replace(family, input="linear_patch", stacks="vision")
        return replace(family, embedding=(), outputs={"": ()})
    if "encoder_layers" in document and "decoder_layers" in document:
        return replace(family, stacks="encoder_and_decoder")
    if "num_decoder_layers" in document:
        return replace(family, stacks="t5")
    if any(key in document for key in knowledge()["keys"]["experts"]):
        return replace(family, needs=(*family.needs, "experts", "expert_feed_forward"))
    return family


def _output(reader: ConfigReader, named: str) -> str:
    """The entry of the family's outputs that the class in `architectures` has."""
    outputs = reader.family.outputs
    if not named:
        return next(iter(outputs))
    end = max((end for end in outputs if named.endswith(end)), key=len, default=None)
    if end is None or end.endswith(CLASSIFIERS):
        reader.notes.append(f"the head of {brief(named)} is left out of the count")
    return "Model" if end is None else end


def _note_what_is_left_out(reader: ConfigReader, model_type: str | None) -> None:
    if reader.family.left_out:
        reader.notes.append(f"the count leaves out {reader.family.left_out}")
    reader.notes += [
        f"{key}={value} adds or drops parameters, which the count does not follow"
        for key, value in knowledge()["not_followed"]
        if reader.document.get(key) == value
    ]
    unusual = [key for key in knowledge()["unusual_layers"] if key in reader.document]
    if unusual and model_type not in knowledge()["families"]:
        reader.notes.append(knowledge()["notes"]["unusual"].format(keys=", ".join(unusual)))


# ---- several models in one config


def _parts_of(document: Document) -> tuple[Document, ...]:
    """The configs inside a config, the one that reads the input first; none where it has none."""
    encoder, decoder = document.get("encoder"), document.get("decoder")
    if isinstance(decoder, Mapping):
        if isinstance(encoder, Mapping):
            return encoder, decoder
        if not _has(document, "width"):
            return (decoder,)
    vision = _part(document, "vision_config")
    texts = (_part(document, key) for key in TEXT_CONFIGS)
    text = next((found for found in texts if found is not None), None)
    if text is None and vision is not None and _has(document, "width"):
        text = document  # some write the text beside vision_config
    if text is None:
        return ()
    typed = _with_type(text, document, "text")
    if vision is None:
        return (typed,)
    seen = _with_type(vision, document, "vision")
    family = knowledge()["families"].get(str(seen.get("model_type")), {})
    if "part_defaults" in family or (_has(vision, "depth") and _has(vision, "width")):
        return typed, seen
    return (typed,)  # nothing says how deep and wide the vision part is: the text stands alone


def _part(document: Document, key: str) -> Document | None:
    """The object under `key`, None where there is none."""
    value = document.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise InvalidValue(key, value, "is no object", "a part of a config is one")
    return value


def _has(document: Document, size: str) -> bool:
    return any(document.get(key) is not None for key in knowledge()["keys"][size])


def _with_type(inner: Document, outer: Document, part: str) -> Document:
    """The inner config with what stands outside: the family, and whether the head is tied."""
    known = knowledge()["multimodal"].get(str(outer.get("model_type")), {}).get(part)
    shared = {key: outer[key] for key in ("tie_word_embeddings",) if key in outer}
    return ({} if known is None else {"model_type": known}) | shared | dict(inner)


def _joined(document: Document, models: Sequence[Model]) -> Model:
    """One model of several: the input of the first, the stacks and parameters of all."""
    first, *others = models
    named = document.get("model_type")
    connector = _connector(document, models)
    stacks = list(first.stacks)
    for model in others:  # they see pixels or decode, whatever their class
        role = "vision" if model.input.kind == "linear_patch" else "decoder"
        stacks += [replace(stack, role=role) for stack in model.stacks]
    notes = [note for model in models for note in model.notes]
    missing = [line for model in models for line in model.missing]
    blocks = sum_if_known(model.parameters.blocks for model in models)
    tables = sum_if_known((connector or 0, *(model.parameters.embedding for model in models)))
    if connector is None and others:
        notes.append(knowledge()["notes"]["joined"])
    if not others and _part(document, "vision_config") is not None:
        missing.append("vision stack: looked for depth and width in vision_config")
        blocks = tables = None
    total = sum_if_known((blocks, tables))
    return replace(
        first,
        family=named if isinstance(named, str) else None,
        stacks=tuple(stacks),
        parameters=Parameters(blocks=blocks, embedding=tables, total=total),
        assumed=tuple(line for model in models for line in model.assumed),
        missing=tuple(missing),
        notes=tuple(notes),
    )


def _connector(document: Document, models: Sequence[Model]) -> int | None:
    """Parameters of what joins text and vision, where it is known."""
    joint = knowledge()["multimodal"].get(str(document.get("model_type")), {})
    piece = joint.get("connector")
    if len(models) != 2 or piece is None:
        return None
    sizes = {"text": models[0].width, "vision": models[1].width}
    if "projection*" in piece and "projection_dim" in document:  # CLIP
        sizes["projection"] = whole("projection_dim", document["projection_dim"])
    if not isinstance(document.get("vision_feature_layer"), list):  # LLaVA
        sizes["projector_bias"] = document.get("multimodal_projector_bias", True) is True
    return families.if_known(lambda: families.piece_value(piece, sizes))
