"""Megatron-LM: the model arguments of pretrain_gpt.py, as a bash array as its examples have it."""

from archfit.export.counting import biased_blocks
from archfit.export.format import Format, Params
from archfit.export.neox import ROWS_MULTIPLE, learned_position_tables, vocabulary_note
from archfit.export.obstacles import full_embedding
from archfit.export.shape import ExportShape


def _params(shape: ExportShape) -> Params:
    return Params(blocks=biased_blocks(shape), embedding=learned_position_tables(shape))


def _files(shape: ExportShape) -> dict[str, str]:
    lines = [
        f"--num-layers {shape.depth}",
        f"--hidden-size {shape.width}",
        f"--num-attention-heads {shape.heads}",
        f"--kv-channels {shape.head_dim}",
        *_groups(shape),
        f"--ffn-hidden-size {shape.hidden_units(gated=False)}",
        f"--seq-length {shape.context}",
        f"--max-position-embeddings {shape.context}",
        "--position-embedding-type learned_absolute",
        "--normalization LayerNorm",
        "--norm-epsilon 1e-5",
        f"--make-vocab-size-divisible-by {ROWS_MULTIPLE}",
        *([] if shape.tied else ["--untie-embeddings-and-output-weights"]),
        "--hidden-dropout 0.0",
        "--attention-dropout 0.0",
    ]
    body = "".join(f"    {line}\n" for line in lines)
    usage = '# Source it, then: torchrun pretrain_gpt.py "${GPT_MODEL_ARGS[@]}" ...'
    return {"model_args.sh": f"{usage}\nGPT_MODEL_ARGS=(\n{body})\n"}


def _groups(shape: ExportShape) -> list[str]:
    if shape.kv_heads == shape.heads:
        return []
    return ["--group-query-attention", f"--num-query-groups {shape.kv_heads}"]


def _notes(shape: ExportShape) -> tuple[str, ...]:
    return (vocabulary_note("Megatron-LM", shape), "the model only: data and training are yours")


MEGATRON = Format(
    name="megatron", obstacles=full_embedding, params=_params, files=_files, notes=_notes
)
