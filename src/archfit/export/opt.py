"""OPT as Hugging Face writes it: the one format here with a factorised embedding."""

from archfit.export.counting import biased_blocks
from archfit.export.format import Format, Params
from archfit.export.gpt2 import as_json, special_tokens
from archfit.export.obstacles import every_head_has_its_keys, heads_fill_the_width
from archfit.export.shape import ExportShape
from archfit.spec import Factorised

UNUSED_POSITIONS = 2  # OPT's position table starts two rows early


def _obstacles(shape: ExportShape) -> tuple[str, ...]:
    square = (
        (f"it projects only where rank differs from width, and both are {shape.width}",)
        if isinstance(shape.embedding, Factorised) and shape.embedding.inner == shape.width
        else ()
    )
    return heads_fill_the_width(shape) + every_head_has_its_keys(shape) + square


def _inner(shape: ExportShape) -> int:
    return shape.embedding.inner if isinstance(shape.embedding, Factorised) else shape.width


def _params(shape: ExportShape) -> Params:
    inner = _inner(shape)
    tokens = shape.vocab * inner * (1 if shape.tied else 2)
    projections = 2 * shape.width * inner if inner != shape.width else 0
    positions = (shape.context + UNUSED_POSITIONS) * shape.width
    return Params(blocks=biased_blocks(shape), embedding=tokens + projections + positions)


def _files(shape: ExportShape) -> dict[str, str]:
    config = {
        "model_type": "opt",
        "architectures": ["OPTForCausalLM"],
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "hidden_size": shape.width,
        "word_embed_proj_dim": _inner(shape),
        "num_hidden_layers": shape.depth,
        "num_attention_heads": shape.heads,
        "ffn_dim": shape.hidden_units(gated=False),
        "activation_function": "gelu",
        "do_layer_norm_before": True,
        "enable_bias": True,
        "layer_norm_elementwise_affine": True,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "layerdrop": 0.0,
        "tie_word_embeddings": shape.tied,
        **special_tokens(shape),
        "dtype": "float32",
    }
    return {"config.json": as_json(config)}


def _notes(shape: ExportShape) -> tuple[str, ...]:
    notes = ["OPT with GELU instead of its ReLU; two of its positions are never used"]
    if isinstance(shape.embedding, Factorised):
        rank = shape.embedding.inner
        notes.append(
            f"OPT factorises input and head alike: {shape.vocab} x {rank} tables, each with a "
            f"{rank} x {shape.width} projection of its own"
            + (", so a tied head shares the table but not the projection" if shape.tied else "")
        )
    return tuple(notes)


HF_OPT = Format(name="hf-opt", obstacles=_obstacles, params=_params, files=_files, notes=_notes)
