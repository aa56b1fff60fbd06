"""nanochat: the flags of its base_train that give this shape, and its GPTConfig as JSON.

The shape follows from depth, aspect ratio and head_dim: width is depth times the aspect ratio,
rounded up to a multiple of head_dim. The network has tables of its own: every other layer, the
last one always, adds an embedding of the token to its values through a gate.
"""

from archfit.export.counting import padded
from archfit.export.format import Format, Params
from archfit.export.gpt2 import as_json
from archfit.export.obstacles import (
    even_heads,
    every_head_has_its_keys,
    full_embedding,
    heads_fill_the_width,
)
from archfit.export.shape import ExportShape

ROWS_MULTIPLE = 64
VALUE_GATE_INPUTS, SMEAR_GATE_INPUTS = 12, 24  # first coordinates of the stream that gates read
SCALARS = 2  # smear_lambda, backout_lambda


def _obstacles(shape: ExportShape) -> tuple[str, ...]:
    return (
        heads_fill_the_width(shape)
        + every_head_has_its_keys(shape)
        + full_embedding(shape)
        + even_heads(shape)
        + _own_obstacles(shape)
    )


def _own_obstacles(shape: ExportShape) -> tuple[str, ...]:
    units, found = shape.hidden_units(gated=False), []
    if shape.tied:
        found.append("its head cannot be tied")
    if units != 4 * shape.width:
        found.append(f"its feed-forward layer has 4 width = {4 * shape.width} units, not {units}")
    if shape.width < SMEAR_GATE_INPUTS:
        found.append(f"its gates read {SMEAR_GATE_INPUTS} coordinates of width = {shape.width}")
    if _width(shape) != shape.width:
        found.append(
            f"no whole aspect ratio times depth = {shape.depth} rounds up to width = {shape.width} "
            f"in steps of head_dim = {shape.head_dim}"
        )
    return tuple(found)


def _width(shape: ExportShape) -> int:
    return padded(shape.depth * _aspect_ratio(shape), shape.head_dim)


def _aspect_ratio(shape: ExportShape) -> int:
    return shape.width // shape.depth


def _params(shape: ExportShape) -> Params:
    with_values = (shape.depth + 1) // 2
    matrices = shape.depth * 12 * shape.width**2
    gates = with_values * VALUE_GATE_INPUTS * shape.kv_heads + SMEAR_GATE_INPUTS
    scalars = 2 * shape.depth + SCALARS  # of each layer: its stream, and the first one
    tables = (2 + with_values) * padded(shape.vocab, ROWS_MULTIPLE) * shape.width
    return Params(blocks=matrices + gates + scalars, embedding=tables)


def _files(shape: ExportShape) -> dict[str, str]:
    config: dict[str, object] = {
        "sequence_len": shape.context,
        "vocab_size": shape.vocab,
        "n_layer": shape.depth,
        "n_head": shape.heads,
        "n_kv_head": shape.kv_heads,
        "n_embd": shape.width,
        "window_pattern": "L",
    }
    flags = {
        "depth": shape.depth,
        "aspect-ratio": _aspect_ratio(shape),
        "head-dim": shape.head_dim,
        "max-seq-len": shape.context,
        "window-pattern": "L",
    }
    line = " ".join(f"--{flag}={value}" for flag, value in flags.items())
    script = f'#!/bin/sh\n# In the folder of nanochat.\npython -m scripts.base_train {line} "$@"\n'
    return {"base_train.sh": script, "gpt_config.json": as_json(config)}


def _notes(shape: ExportShape) -> tuple[str, ...]:
    rows = padded(shape.vocab, ROWS_MULTIPLE)
    notes = [
        f"nanochat takes the vocabulary from its tokenizer; counted for {shape.vocab:,} padded to "
        f"{rows:,}, with a value embedding in {(shape.depth + 1) // 2} of {shape.depth} layers",
        "rotary positions, squared ReLU, norms without weights; every layer sees the whole "
        "context (window pattern L)",
    ]
    if shape.head_dim % 8:
        notes.append(f"head_dim = {shape.head_dim} is no multiple of 8, which FlashAttention needs")
    return tuple(notes)


NANOCHAT = Format(name="nanochat", obstacles=_obstacles, params=_params, files=_files, notes=_notes)
