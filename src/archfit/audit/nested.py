"""Configs of several models in one: text and vision, encoder and decoder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from archfit.audit.defaults import OF_A_PART
from archfit.audit.families import TEXT_PARTS, VISION_PARTS
from archfit.audit.fields import Document, part, whole
from archfit.audit.model import Model, Parameters, Stack
from archfit.audit.spellings import SPELLINGS

_TEXT = ("text_config", "llm_config", "language_config")


def parts_of(document: Document) -> tuple[Document, ...]:
    """The configs inside a config, the one that reads the input first; none where it has none."""
    encoder, decoder = document.get("encoder"), document.get("decoder")
    if isinstance(decoder, Mapping):
        if isinstance(encoder, Mapping):
            return encoder, decoder
        if not _has(document, "width"):
            return (decoder,)
    vision = part(document, "vision_config")
    text = next((found for key in _TEXT if (found := part(document, key)) is not None), None)
    if text is None and vision is not None and _has(document, "width"):
        text = document  # some write the text beside vision_config
    if text is None:
        return ()
    return _with_type(text, document, TEXT_PARTS), *_readable(vision, document)


def whole_of(document: Document, models: Sequence[Model]) -> Model:
    """One model of several: the input of the first, the stacks and parameters of all."""
    first, *others = models
    named = document.get("model_type")
    family = named if isinstance(named, str) else None
    connector = _connector(document, family, models)
    notes = [note for model in models for note in model.notes]
    missing = [line for model in models for line in model.missing]
    counts = _sum([model.parameters for model in models], connector or 0)
    if connector is None and others:
        notes.append(
            "what joins its parts (a projection, cross-attention) is counted only where the config "
            "of a part names it"
        )
    if not others and part(document, "vision_config") is not None:
        missing.append("vision stack: looked for depth and width in vision_config")
        counts = Parameters(blocks=None, embedding=None, total=None)
    return replace(
        first,
        family=family,
        stacks=tuple(stack for at, model in enumerate(models) for stack in _stacks(model, at)),
        parameters=counts,
        assumed=tuple(line for model in models for line in model.assumed),
        missing=tuple(missing),
        doubtful=(),
        notes=tuple(notes),
    )


def _has(document: Document, size: str) -> bool:
    return any(document.get(key) is not None for key in SPELLINGS[size])


def _readable(vision: Document | None, outer: Document) -> tuple[Document, ...]:
    """The vision part, where it or its class says how deep and wide it is; otherwise the text
    stands alone."""
    if vision is None:
        return ()
    typed = _with_type(vision, outer, VISION_PARTS)
    is_sized = _has(vision, "depth") and _has(vision, "width")
    return (typed,) if is_sized or typed.get("model_type") in tuple(OF_A_PART) else ()


def _stacks(model: Model, at: int) -> tuple[Stack, ...]:
    """The stacks of a part; what follows the first sees pixels or decodes, whatever its class."""
    if at == 0:
        return model.stacks
    role = "vision" if model.input.kind == "linear_patch" else "decoder"
    return tuple(replace(stack, role=role) for stack in model.stacks)


def _with_type(inner: Document, outer: Document, types: Mapping[str, str]) -> Document:
    """The inner config with what stands outside: the family, and whether the head is tied."""
    document = dict(inner)
    outer_type = outer.get("model_type")
    if "model_type" not in inner and isinstance(outer_type, str) and outer_type in types:
        document["model_type"] = types[outer_type]
    if "tie_word_embeddings" not in inner and "tie_word_embeddings" in outer:
        document["tie_word_embeddings"] = outer["tie_word_embeddings"]
    return document


def _connector(document: Document, family: str | None, models: Sequence[Model]) -> int | None:
    """Parameters of what joins text and vision, where it is known."""
    if len(models) != 2:
        return None
    text, vision = models[0].width, models[1].width
    if family == "gemma3":  # a norm and a matrix
        return vision * text + vision
    if family == "clip" and "projection_dim" in document:  # two matrices, and the temperature
        return whole("projection_dim", document["projection_dim"]) * (text + vision) + 1
    if family == "llava" and not isinstance(document.get("vision_feature_layer"), list):
        bias = document.get("multimodal_projector_bias", True) is True  # of two layers
        return (vision + bias) * text + (text + bias) * text
    return None


def _sum(parts: Sequence[Parameters], connector: int) -> Parameters:
    blocks = [part.blocks for part in parts if part.blocks is not None]
    embedding = [part.embedding for part in parts if part.embedding is not None]
    all_blocks = sum(blocks) if len(blocks) == len(parts) else None
    all_tables = sum(embedding) + connector if len(embedding) == len(parts) else None
    total = None if all_blocks is None or all_tables is None else all_blocks + all_tables
    return Parameters(blocks=all_blocks, embedding=all_tables, total=total)
