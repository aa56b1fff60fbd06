"""GPT-2 as Hugging Face writes it: the network of the papers, with heads that fill the width."""

import json
from collections.abc import Mapping

from archfit.export.counting import biased_blocks
from archfit.export.format import Format, Params
from archfit.export.obstacles import every_head_has_its_keys, full_embedding, heads_fill_the_width
from archfit.export.shape import ExportShape

NORM_EPSILON = 1e-5


def _obstacles(shape: ExportShape) -> tuple[str, ...]:
    return heads_fill_the_width(shape) + every_head_has_its_keys(shape) + full_embedding(shape)


def _params(shape: ExportShape) -> Params:
    tables = shape.vocab * (1 if shape.tied else 2) + shape.context
    return Params(blocks=biased_blocks(shape), embedding=tables * shape.width)


def _files(shape: ExportShape) -> dict[str, str]:
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": shape.vocab,
        "n_positions": shape.context,
        "n_embd": shape.width,
        "n_layer": shape.depth,
        "n_head": shape.heads,
        "n_inner": shape.hidden_units(gated=False),
        "activation_function": "gelu",  # by erf; "gelu_new" is the approximation
        "layer_norm_epsilon": NORM_EPSILON,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "scale_attn_weights": True,
        "tie_word_embeddings": shape.tied,
        **special_tokens(shape),
        "dtype": "float32",
    }
    return {"config.json": as_json(config)}


def _notes(_: ExportShape) -> tuple[str, ...]:
    return ("the network that archfit trains: exact GELU, learned positions, no dropout",)


def special_tokens(shape: ExportShape) -> dict[str, int | None]:
    """Ids inside the vocabulary, or none: the defaults of Hugging Face are those of big ones."""
    return {"bos_token_id": shape.separator, "eos_token_id": shape.separator, "pad_token_id": None}


def as_json(document: Mapping[str, object]) -> str:
    """The content of a JSON file."""
    return json.dumps(document, indent=2) + "\n"


HF_GPT2 = Format(name="hf-gpt2", obstacles=_obstacles, params=_params, files=_files, notes=_notes)
