"""The formats of other tools: what each can express, what it will build, and its files.

A format is one table of resources/export_formats.toml, which names its keys; this file has the
rules that formats refuse shapes by, and the four ways in which files are written.
"""

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

from archfit.export.shape import ExportShape
from archfit.spec import InvalidValue
from archfit.spec.counting import (
    BARE_STYLE,
    GPT2_STYLE,
    LLAMA_STYLE,
    QWEN3_STYLE,
    BlockStyle,
    NetworkSizes,
)

STYLES = {"gpt2": GPT2_STYLE, "llama": LLAMA_STYLE, "qwen3": QWEN3_STYLE, "bare": BARE_STYLE}
# nanochat: first coordinates of the stream that gates read, and smear_lambda, backout_lambda.
VALUE_GATE_INPUTS, SMEAR_GATE_INPUTS, SCALARS = 12, 24, 2
LEFT_OUT = object()  # the value of a key that a shape has no use for


def _heads_fill_the_width(shape: ExportShape) -> str:
    inner = shape.heads * shape.head_dim
    product = f"heads x head_dim = {shape.heads} x {shape.head_dim} = {inner}"
    return "" if inner == shape.width else f"{product} is not width = {shape.width}"


def _heads_divide_the_width(shape: ExportShape) -> str:
    wanted = f"transformers wants a width that heads = {shape.heads} divides, not {shape.width}"
    return wanted if shape.width % shape.heads else ""


def _no_grouped_keys(shape: ExportShape) -> str:
    if shape.kv_heads == shape.heads:
        return ""
    return f"kv_heads = {shape.kv_heads} is not heads = {shape.heads}"


def _full_embedding(shape: ExportShape) -> str:
    inner = shape.embedding.inner_size
    return "" if inner is None else f"its embedding is one matrix, not factorised to rank = {inner}"


def _rank_differs_from_width(shape: ExportShape) -> str:
    if shape.embedding.inner_size != shape.width:
        return ""
    return f"it projects only where rank differs from width, and both are {shape.width}"


def _even_heads(shape: ExportShape) -> str:
    odd = f"its rotary positions need an even head_dim, not {shape.head_dim}"
    return odd if shape.head_dim % 2 else ""


def _even_units(shape: ExportShape) -> str:
    units = shape.hidden_units(gated=False)
    rounds = "it rounds one of the two feed-forward matrices to an even size"
    return f"{rounds}, and {units} is odd" if units % 2 else ""


def _four_times_the_width(shape: ExportShape) -> str:
    units, usual = shape.hidden_units(gated=False), 4 * shape.width
    wanted = f"its feed-forward layer has 4 width = {usual} units, not {units}"
    return "" if units == usual else wanted


def _width_for_the_gates(shape: ExportShape) -> str:
    read = f"its gates read {SMEAR_GATE_INPUTS} coordinates of width = {shape.width}"
    return read if shape.width < SMEAR_GATE_INPUTS else ""


def _width_of_an_aspect_ratio(shape: ExportShape) -> str:
    """nanochat's width is depth times the aspect ratio, rounded up to a multiple of head_dim."""
    if _padded(shape.width // shape.depth * shape.depth, shape.head_dim) == shape.width:
        return ""
    return (
        f"no whole aspect ratio times depth = {shape.depth} rounds up to width = {shape.width} "
        f"in steps of head_dim = {shape.head_dim}"
    )


LITGPT_TIED = "a tied head is --train.tie_embeddings of litgpt pretrain, no key of it"
# Why a format cannot express a shape: the middle of a sentence, or nothing.
RULES: Mapping[str, Callable[[ExportShape], str]] = {
    "heads fill the width": _heads_fill_the_width,
    "heads divide the width": _heads_divide_the_width,
    "no grouped keys": _no_grouped_keys,
    "full embedding": _full_embedding,
    "rank differs from width": _rank_differs_from_width,
    "even heads": _even_heads,
    "even units": _even_units,
    "untied": lambda shape: "its head cannot be tied" if shape.tied else "",
    "untied by an option": lambda shape: LITGPT_TIED if shape.tied else "",
    "four times the width": _four_times_the_width,
    "width for the gates": _width_for_the_gates,
    "width of an aspect ratio": _width_of_an_aspect_ratio,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportParams:
    """What the tool will build, every weight, bias and scale counted."""

    blocks: int  # blocks and the last norm: all that is not a table
    embedding: int  # tokens, positions, head, and what projects them to the width
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportFormat:
    """How one tool writes down a network, as resources/export_formats.toml has it."""

    name: str
    style: str
    rules: list[str]
    files: list[dict[str, Any]]  # each with its name, form and keys
    notes: list[str]
    rows_multiple: int = 1
    positions: int | None = None  # rows beyond the context; None without a table of positions
    value_embeddings: bool = False

    def obstacles(self, shape: ExportShape) -> tuple[str, ...]:
        """Why it cannot express a shape."""
        return tuple(filter(None, (RULES[rule](shape) for rule in self.rules)))

    def params(self, shape: ExportShape) -> ExportParams:
        """What the tool will build of the shape."""
        style, width = STYLES[self.style], shape.width
        rows, inner = _padded(shape.vocab, self.rows_multiple), shape.embedding.inner_size
        sizes = NetworkSizes(
            depth=shape.depth,
            width=width,
            query=shape.heads * shape.head_dim,
            key_value=shape.kv_heads * shape.head_dim,
            head_dim=shape.head_dim,
            hidden=shape.hidden_units(gated=style.is_gated),
            style=style,
            tables=(),
        )
        blocks = int(sizes.block_matrices + sizes.biases_and_norms)
        embedding = rows * (inner or width) * (1 if shape.tied else 2)
        embedding += 0 if inner is None else 2 * width * inner  # input and head project alike
        if self.positions is not None:
            embedding += (shape.context + self.positions) * width
        if self.value_embeddings:
            layers = (shape.depth + 1) // 2
            blocks += layers * VALUE_GATE_INPUTS * shape.kv_heads + SMEAR_GATE_INPUTS
            blocks += 2 * shape.depth + SCALARS  # of each layer: its stream, and the first one
            embedding += layers * rows * width
        return ExportParams(blocks=blocks, embedding=embedding, total=blocks + embedding)


def _read_formats() -> dict[str, ExportFormat]:
    file = resources.files("archfit.resources").joinpath("export_formats.toml")
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return {name: ExportFormat(name=name, **table) for name, table in tables.items()}


FORMATS = _read_formats()


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """The content of the files, what the tool will build of them, and what to know."""

    format: str
    files: dict[str, str]
    params: ExportParams
    notes: tuple[str, ...]


def export_config(shape: ExportShape, name: str) -> Export:
    """The files that describe `shape` to a tool; refused with the formats that can, if it can't."""
    if name not in FORMATS:
        raise InvalidValue("format", name, "is unknown", f"use one of {', '.join(FORMATS)}")
    wanted = FORMATS[name]
    if obstacles := wanted.obstacles(shape):
        able = [other.name for other in FORMATS.values() if not other.obstacles(shape)]
        none = "no format here can express all of it at once"
        way_out = f"{', '.join(able)} can" if able else none
        raise ValueError(f"{name} cannot express this shape: {obstacles[0]}; {way_out}")
    values = format_values(shape, STYLES[wanted.style], wanted.rows_multiple)
    notes = (note.format(**values) for note in wanted.notes)
    return Export(
        format=name,
        files={file["name"]: _content(file, values) for file in wanted.files},
        params=wanted.params(shape),
        notes=tuple(note for note in notes if note),
    )


def format_values(shape: ExportShape, style: BlockStyle, rows_multiple: int) -> dict[str, object]:
    """What {depth}, {rows} … stand for in the keys and notes of a format."""
    is_grouped, hidden = shape.kv_heads != shape.heads, shape.hidden_units(gated=style.is_gated)
    return {
        "depth": shape.depth,
        "width": shape.width,
        "heads": shape.heads,
        "head_dim": shape.head_dim,
        "kv_heads": shape.kv_heads,
        "grouped": is_grouped,
        "grouped_kv_heads": shape.kv_heads if is_grouped else LEFT_OUT,
        "hidden": hidden,
        "vocab": shape.vocab,
        "rows": _padded(shape.vocab, rows_multiple),
        "inner": shape.embedding.inner_size or shape.width,
        "context": shape.context,
        "tied": shape.tied,
        "untied": not shape.tied,
        "separator": shape.separator,
        "nothing": None,
        "aspect_ratio": shape.width // shape.depth,
        "value_layers": (shape.depth + 1) // 2,
        "gate_note": _gate_note(shape, hidden),
        "rank_note": _rank_note(shape),
        "flash_note": f"head_dim = {shape.head_dim} is no multiple of 8, which FlashAttention needs"
        if shape.head_dim % 8
        else "",
    }


def _gate_note(shape: ExportShape, hidden: int) -> str:
    plain = f"{8 * shape.width**2:,}"
    reason = f"as asked for; the papers have {plain}"
    if shape.feed_forward == "usual":
        reason = f"8/3 width to a multiple of 64, for the papers' {plain}"
    return (
        f"the feed-forward layer is gated: three matrices of {shape.width} x {hidden}, "
        f"{3 * shape.width * hidden:,} weights a block ({reason})"
    )


def _rank_note(shape: ExportShape) -> str:
    rank = shape.embedding.inner_size
    if rank is None:
        return ""
    shares = ", so a tied head shares the table but not the projection" if shape.tied else ""
    return (
        f"OPT factorises input and head alike: {shape.vocab} x {rank} tables, each with a "
        f"{rank} x {shape.width} projection of its own{shares}"
    )


def _content(file: dict[str, Any], values: dict[str, object]) -> str:
    """The content of a file: its keys with the values of the shape, in its form."""
    filled = {key: _filled(value, values) for key, value in file["keys"].items()}
    keys = {key: value for key, value in filled.items() if value is not LEFT_OUT}
    return {"json": as_json, "yaml": _yaml, "bash-array": _bash_array, "command": _command}[
        file["form"]
    ](keys)


def _filled(value: object, values: dict[str, object]) -> object:
    """A value of the table: a word in braces stands for the number itself, not for its text."""
    if not isinstance(value, str) or "{" not in value:
        return value
    return values[value[1:-1]] if value[1:-1] in values else value.format(**values)


def as_json(keys: Mapping[str, object]) -> str:
    """The content of a JSON file."""
    return json.dumps(keys, indent=2) + "\n"


def _yaml(keys: Mapping[str, object]) -> str:
    """One line a key; a YAML reader would take 1e-05 for a word, so numbers are written out."""
    lines = {
        key: f"{Decimal(repr(value)):f}" if isinstance(value, float) else json.dumps(value)
        for key, value in keys.items()
    }
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def _bash_array(keys: Mapping[str, object]) -> str:
    """Megatron-LM's arguments; one that is true has no value, one that is false is left out."""
    words = [
        f"--{key}" + ("" if v is True else f" {v}") for key, v in keys.items() if v is not False
    ]
    body = "".join(f"    {line}\n" for line in words)
    usage = '# Source it, then: torchrun pretrain_gpt.py "${GPT_MODEL_ARGS[@]}" ...'
    return f"{usage}\nGPT_MODEL_ARGS=(\n{body})\n"


def _command(keys: Mapping[str, object]) -> str:
    """nanochat's command line."""
    line = " ".join(f"--{key}={value}" for key, value in keys.items())
    return f'#!/bin/sh\n# In the folder of nanochat.\npython -m scripts.base_train {line} "$@"\n'


def _padded(rows: int, multiple: int) -> int:
    """Rows of a table that a tool pads to a multiple."""
    return -(-rows // multiple) * multiple


def write_files(export: Export, folder: Path) -> None:
    """Write new files into a folder that is there, and put them on disk."""
    for name, content in export.files.items():
        with open(folder / name, "x", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
