"""Llama and Qwen3 as Hugging Face writes them: rotary positions, gated feed-forward layers."""

from archfit.export.counting import gated_blocks
from archfit.export.format import Format, Params
from archfit.export.gpt2 import as_json, special_tokens
from archfit.export.obstacles import even_heads, full_embedding
from archfit.export.shape import ExportShape

ROTARY_BASE = 10000.0


def _llama_obstacles(shape: ExportShape) -> tuple[str, ...]:
    uneven = (f"transformers wants a width that heads = {shape.heads} divides, not {shape.width}",)
    return (uneven if shape.width % shape.heads else ()) + _qwen3_obstacles(shape)


def _qwen3_obstacles(shape: ExportShape) -> tuple[str, ...]:
    return full_embedding(shape) + even_heads(shape)


def _llama_params(shape: ExportShape) -> Params:
    return Params(blocks=gated_blocks(shape, query_key_norm=False), embedding=_tables(shape))


def _qwen3_params(shape: ExportShape) -> Params:
    return Params(blocks=gated_blocks(shape, query_key_norm=True), embedding=_tables(shape))


def _tables(shape: ExportShape) -> int:
    return shape.vocab * shape.width * (1 if shape.tied else 2)


def _llama_files(shape: ExportShape) -> dict[str, str]:
    own = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "mlp_bias": False}
    return {"config.json": as_json(own | _config(shape))}


def _qwen3_files(shape: ExportShape) -> dict[str, str]:
    own = {
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "use_sliding_window": False,
    }
    return {"config.json": as_json(own | _config(shape))}


def _config(shape: ExportShape) -> dict[str, object]:
    return {
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.depth,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.hidden_units(gated=True),
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROTARY_BASE},
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": shape.tied,
        **special_tokens(shape),
        "dtype": "float32",
    }


def _llama_notes(shape: ExportShape) -> tuple[str, ...]:
    return (_gate_note(shape), "rotary positions and RMS norms, without biases")


def _qwen3_notes(shape: ExportShape) -> tuple[str, ...]:
    norms = "rotary positions and RMS norms, also of queries and keys, without biases"
    return (_gate_note(shape), norms)


def _gate_note(shape: ExportShape) -> str:
    units = shape.hidden_units(gated=True)
    usual = (
        f"8/3 width to a multiple of 64, for the papers' {8 * shape.width**2:,}"
        if shape.feed_forward == "usual"
        else f"as asked for; the papers have {8 * shape.width**2:,}"
    )
    return (
        f"the feed-forward layer is gated: three matrices of {shape.width} x {units}, "
        f"{3 * shape.width * units:,} weights a block ({usual})"
    )


HF_LLAMA = Format(
    name="hf-llama",
    obstacles=_llama_obstacles,
    params=_llama_params,
    files=_llama_files,
    notes=_llama_notes,
)
HF_QWEN3 = Format(
    name="hf-qwen3",
    obstacles=_qwen3_obstacles,
    params=_qwen3_params,
    files=_qwen3_files,
    notes=_qwen3_notes,
)
