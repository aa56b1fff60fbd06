"""GPT-NeoX: the model part of a configuration, to be given beside one for data and training."""

from archfit.export.counting import biased_blocks, padded
from archfit.export.format import Format, Params
from archfit.export.obstacles import full_embedding, heads_fill_the_width
from archfit.export.shape import ExportShape
from archfit.export.yaml_text import as_yaml

ROWS_MULTIPLE = 128


def _obstacles(shape: ExportShape) -> tuple[str, ...]:
    units = shape.hidden_units(gated=False)
    odd = (
        (f"it rounds one of the two feed-forward matrices to an even size, and {units} is odd",)
        if units % 2
        else ()
    )
    return heads_fill_the_width(shape) + full_embedding(shape) + odd


def learned_position_tables(shape: ExportShape) -> int:
    """Embedding and head with rows padded to a multiple of 128, and positions."""
    rows = padded(shape.vocab, ROWS_MULTIPLE) * (1 if shape.tied else 2)
    return (rows + shape.context) * shape.width


def _params(shape: ExportShape) -> Params:
    return Params(blocks=biased_blocks(shape), embedding=learned_position_tables(shape))


def _files(shape: ExportShape) -> dict[str, str]:
    config = {
        "num_layers": shape.depth,
        "hidden_size": shape.width,
        "num_attention_heads": shape.heads,
        **({"num_kv_heads": shape.kv_heads} if shape.kv_heads != shape.heads else {}),
        "intermediate_size": shape.hidden_units(gated=False),
        "mlp_multiple_of": 1,
        "seq_length": shape.context,
        "max_position_embeddings": shape.context,
        "pos_emb": "learned",
        "norm": "layernorm",
        "layernorm_epsilon": 1e-5,
        "activation": "gelu",
        "no_weight_tying": not shape.tied,
        "gpt_j_residual": False,
        "output_layer_parallelism": "column",
        "make_vocab_size_divisible_by": ROWS_MULTIPLE,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
    }
    return {"model.yml": as_yaml(config)}


def _notes(shape: ExportShape) -> tuple[str, ...]:
    return (
        vocabulary_note("GPT-NeoX", shape),
        "the model only: give it beside a .yml with data, optimiser and parallelism, as in "
        "deepy.py train.py model.yml local_setup.yml",
    )


def vocabulary_note(tool: str, shape: ExportShape) -> str:
    """Where the tool takes the vocabulary from."""
    rows = padded(shape.vocab, ROWS_MULTIPLE)
    return (
        f"{tool} takes the vocabulary from its tokenizer; counted for {shape.vocab:,} padded to "
        f"{rows:,} (one GPU for a model)"
    )


GPT_NEOX = Format(name="gpt-neox", obstacles=_obstacles, params=_params, files=_files, notes=_notes)
