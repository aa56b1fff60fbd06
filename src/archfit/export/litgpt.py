"""LitGPT: a model_config.yaml of litgpt.Config, biased blocks with rotary positions."""

from archfit.export.counting import biased_blocks, padded
from archfit.export.format import Format, Params
from archfit.export.obstacles import even_heads, full_embedding
from archfit.export.shape import ExportShape
from archfit.export.yaml_text import as_yaml

ROWS_MULTIPLE = 64


def _obstacles(shape: ExportShape) -> tuple[str, ...]:
    tied = ("a tied head is --train.tie_embeddings of litgpt pretrain, no key of it",)
    return full_embedding(shape) + (tied if shape.tied else ()) + even_heads(shape)


def _params(shape: ExportShape) -> Params:
    rows = padded(shape.vocab, ROWS_MULTIPLE)
    return Params(blocks=biased_blocks(shape), embedding=2 * rows * shape.width)


def _files(shape: ExportShape) -> dict[str, str]:
    config = {
        "name": f"archfit-{shape.depth}x{shape.width}",
        "block_size": shape.context,
        "vocab_size": shape.vocab,
        "padding_multiple": ROWS_MULTIPLE,
        "padded_vocab_size": padded(shape.vocab, ROWS_MULTIPLE),
        "n_layer": shape.depth,
        "n_embd": shape.width,
        "n_head": shape.heads,
        "head_size": shape.head_dim,
        "n_query_groups": shape.kv_heads,
        "intermediate_size": shape.hidden_units(gated=False),
        "mlp_class_name": "GptNeoxMLP",
        "gelu_approximate": "none",
        "norm_class_name": "LayerNorm",
        "norm_eps": 1e-5,
        "parallel_residual": False,
        "shared_attention_norm": False,
        "bias": True,
        "lm_head_bias": False,
        "rotary_percentage": 1.0,
        "rope_base": 10000,
    }
    return {"model_config.yaml": as_yaml(config)}


def _notes(shape: ExportShape) -> tuple[str, ...]:
    rows = padded(shape.vocab, ROWS_MULTIPLE)
    return (
        "positions are rotary: litgpt has no learned ones",
        f"both tables have {rows:,} rows, the vocabulary of {shape.vocab:,} padded to a multiple "
        f"of {ROWS_MULTIPLE}",
        "for litgpt pretrain NAME --model_config model_config.yaml",
    )


LITGPT = Format(name="litgpt", obstacles=_obstacles, params=_params, files=_files, notes=_notes)
