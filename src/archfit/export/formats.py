"""The formats of other tools: what each can express, what it will build, and its files.

A format is one table of resources/export_formats.toml, which names its keys; this file has the
rules that formats refuse shapes by, and the four ways in which files are written.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from string import Template
from typing import Any, Literal

from archfit.spec import Architecture, Factorised, Patches, Softmax, Tied, parts
from archfit.spec.architecture import check_groups, gated_units
from archfit.spec.counting import BARE_STYLE, GPT2_STYLE, LLAMA_STYLE, QWEN3_STYLE, NetworkSizes
from archfit.spec.errors import check_at_least, check_choice, check_types, refusal, refuse_if
from archfit.spec.files import TOKENIZER, TOKENIZER_CONFIG, packed_file, write_whole
from archfit.spec.packed import packed_table
from archfit.spec.rates import CHINCHILLA_TOKENS, EPOCHS, starting_point, training_tokens
from archfit.spec.run_options import FAN_IN_VARIANCE

STYLES = {"gpt2": GPT2_STYLE, "llama": LLAMA_STYLE, "qwen3": QWEN3_STYLE, "bare": BARE_STYLE}
# nanochat: first coordinates of the stream that gates read, and smear_lambda, backout_lambda.
VALUE_GATE_INPUTS, SMEAR_GATE_INPUTS, SCALARS = 12, 24, 2
LEFT_OUT = object()  # the value of a key that a shape has no use for
TOKENS_AT_ONCE = 8192  # of a recipe's batch, that a GPU has at a time
TRAINED_EPSILON = 1e-5  # of the norms of networks that archfit trains


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportShape:
    """An architecture as other tools describe one.

    Beyond `Architecture` it has the token that ends a document and what it will be trained on; it
    leaves out the block, which the format decides, and what no other tool has.
    """

    depth: int
    width: int
    heads: int
    head_dim: int
    kv_heads: int  # each is shared by heads / kv_heads query heads
    feed_forward: int | Literal["usual"] = "usual"  # hidden units; usual: 8 width^2 weights
    vocab: int
    context: int
    embedding: parts.Table
    tied: bool
    separator: int | None  # the token that ends a document; None where there is no tokenizer
    rms_epsilon: float = 1e-6  # Llama's
    tokens_per_param: float = CHINCHILLA_TOKENS  # to train on
    data_tokens: int | None = None  # of the data that are there for it; None where not known

    def __post_init__(self) -> None:
        check_at_least(1, depth=self.depth, width=self.width, heads=self.heads)
        check_at_least(1, head_dim=self.head_dim, kv_heads=self.kv_heads, context=self.context)
        check_at_least(2, vocab=self.vocab)
        if self.feed_forward != "usual":
            check_at_least(1, feed_forward=self.feed_forward)
        check_types(self, "embedding")
        check_groups(self.heads, self.kv_heads)
        is_there = self.separator is None or 0 <= self.separator < self.vocab
        refuse_if(not is_there, "export-separator", self.separator, last=self.vocab - 1)

    def hidden_units(self, *, gated: bool) -> int:
        """Units of the feed-forward layer: those asked for, or those of 8 width^2 weights."""
        if self.feed_forward != "usual":
            return self.feed_forward
        return gated_units(self.width) if gated else 4 * self.width


def shape_of(architecture: Architecture) -> ExportShape:
    """The same network as other tools describe it; refused where none of them could."""
    head, reads = architecture.head, architecture.input
    inner = architecture.positions.inner_size
    refuse_if(not isinstance(architecture.attention, Softmax), "export-linear")
    refuse_if(isinstance(reads, Patches), "export-patches", size=reads.tokens_per_position)
    refuse_if(inner is not None, "export-positions", inner=inner)
    if isinstance(head, Factorised) and head != architecture.embedding:
        raise refusal("export-head", inner=head.inner)
    same = ("depth", "width", "heads", "head_dim", "feed_forward", "context", "embedding")
    return ExportShape(
        **{name: getattr(architecture, name) for name in same},
        kv_heads=architecture.key_value_heads, vocab=reads.vocab,
        tied=isinstance(head, Tied), separator=None, rms_epsilon=TRAINED_EPSILON,
    )  # fmt: skip


# What a format may ask of a shape; why it cannot express others stands in the file of the formats.
RULES: Mapping[str, Callable[[ExportShape], bool]] = {
    "heads fill the width": lambda shape: shape.heads * shape.head_dim == shape.width,
    "heads divide the width": lambda shape: shape.width % shape.heads == 0,
    "no grouped keys": lambda shape: shape.kv_heads == shape.heads,
    "full embedding": lambda shape: shape.embedding.inner_size is None,
    "rank differs from width": lambda shape: shape.embedding.inner_size != shape.width,
    "even heads": lambda shape: shape.head_dim % 2 == 0,
    "even units": lambda shape: shape.hidden_units(gated=False) % 2 == 0,
    "untied": lambda shape: not shape.tied,
    "untied by an option": lambda shape: not shape.tied,
    "four times the width": lambda shape: shape.hidden_units(gated=False) == 4 * shape.width,
    "width for the gates": lambda shape: shape.width >= SMEAR_GATE_INPUTS,
    # nanochat's width is depth times the aspect ratio, rounded up to a multiple of head_dim.
    "width of an aspect ratio": lambda shape: (
        shape.width == _padded(shape.width // shape.depth * shape.depth, shape.head_dim)
    ),
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
    spare_rows: int = 0
    has_head: bool = True
    positions: int | None = None  # rows beyond the context; None without a table of positions
    value_embeddings: bool = False
    weights: dict[str, Any] = field(default_factory=dict)  # empty: it takes no trained ones

    def obstacles(self, shape: ExportShape) -> tuple[str, ...]:
        """Why it cannot express a shape."""
        broken = [_OBSTACLES[rule] for rule in self.rules if not RULES[rule](shape)]
        return tuple(why.format(**self.values(shape)) for why in broken)

    def values(self, shape: ExportShape) -> dict[str, object]:
        """What {depth}, {rows} … stand for in its keys and notes, and in why it refuses a shape."""
        hidden = shape.hidden_units(gated=STYLES[self.style].is_gated)
        is_grouped, rank = shape.kv_heads != shape.heads, shape.embedding.inner_size
        values = asdict(shape) | {
            "attention": shape.heads * shape.head_dim,
            "grouped": is_grouped,
            "grouped_kv_heads": shape.kv_heads if is_grouped else LEFT_OUT,
            "hidden": hidden,
            "usual_hidden": 4 * shape.width,
            "rows": self.rows(shape),
            "positions": shape.context + (self.positions or 0),
            "inner": rank or shape.width,
            "untied": not shape.tied,
            "nothing": None,
            "gate_inputs": SMEAR_GATE_INPUTS,
            "aspect_ratio": shape.width // shape.depth,
            "value_layers": (shape.depth + 1) // 2,
            "gated_weights": 3 * shape.width * hidden,
            "plain_weights": 8 * shape.width**2,
            "hidden_multiple": 64 if hidden % 64 == 0 else 8,
            **self._recipe(shape),
        }
        noted = {
            "gate_note": "usual_gate" if shape.feed_forward == "usual" else "wanted_gate",
            "rank_note": "" if rank is None else "tied_rank" if shape.tied else "rank",
            "flash_note": "slow_heads" if shape.head_dim % 8 else "",
        }
        return values | {name: _NOTES[note].format(**values) for name, note in noted.items()}

    def _recipe(self, shape: ExportShape) -> dict[str, object]:
        """How to begin training it, as a plan says it, too."""
        params, each = self.params(shape).total, shape.tokens_per_param
        tokens = training_tokens(params, each, shape.data_tokens)
        length = f"{each:.3g} tokens a parameter"
        if tokens < training_tokens(params, each):
            length = f"{EPOCHS} epochs of the data"
        start = starting_point(
            "llama" if STYLES[self.style].is_gated else "gpt2",
            depth=shape.depth, width=shape.width, context=shape.context, tokens=tokens,
        )  # fmt: skip
        sequences, at_once = start.batch_tokens // shape.context, TOKENS_AT_ONCE // shape.context
        steps = max(1, round(tokens / start.batch_tokens))
        return asdict(start) | {
            "sequences": sequences,
            "at_once": max(n for n in range(1, max(1, at_once) + 1) if sequences % n == 0),
            "steps": steps,
            "epochs": EPOCHS,
            "length": length,
            "training_tokens": tokens,
            "warmup": 3 * steps // 10,
            "initial_std": float(f"{math.sqrt(FAN_IN_VARIANCE / shape.width):.3g}"),
        }

    def rows(self, shape: ExportShape) -> int:
        """Rows of the table of tokens."""
        return _padded(shape.vocab, self.rows_multiple) + self.spare_rows

    def params(self, shape: ExportShape) -> ExportParams:
        """What the tool will build of the shape."""
        style, width = STYLES[self.style], shape.width
        rows, inner = self.rows(shape), shape.embedding.inner_size
        sizes = NetworkSizes(
            depth=shape.depth, width=width, head_dim=shape.head_dim, style=style, tables=(),
            query=shape.heads * shape.head_dim, key_value=shape.kv_heads * shape.head_dim,
            hidden=shape.hidden_units(gated=style.is_gated),
        )  # fmt: skip
        blocks = int(sizes.blocks + sizes.biases_and_norms)
        embedding = rows * (inner or width) * (1 if shape.tied or not self.has_head else 2)
        embedding += 0 if inner is None else 2 * width * inner  # input and head project alike
        if self.positions is not None:
            embedding += (shape.context + self.positions) * width
        if self.value_embeddings:
            layers = (shape.depth + 1) // 2
            blocks += layers * VALUE_GATE_INPUTS * shape.kv_heads + SMEAR_GATE_INPUTS
            blocks += 2 * shape.depth + SCALARS  # of each layer: its stream, and the first one
            embedding += layers * rows * width
        return ExportParams(blocks=blocks, embedding=embedding, total=blocks + embedding)


_TABLES = packed_table("export_formats.toml")
_OBSTACLES: Mapping[str, str] = _TABLES["obstacles"]
_NOTES: Mapping[str, str] = {"": "", **_TABLES["notes"]}
FORMATS = {
    name: ExportFormat(name=name, **table) for name, table in _TABLES.items() if "style" in table
}
# What exports write, but for weights: a folder that holds nothing else may be replaced.
EXPORTED_FILES = {file["name"] for each in FORMATS.values() for file in each.files}
EXPORTED_FILES |= {TOKENIZER, TOKENIZER_CONFIG}


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """The content of the files, what the tool will build of them, and what to know."""

    format: str
    files: dict[str, str]
    params: ExportParams
    notes: tuple[str, ...]


def export_config(shape: ExportShape, name: str) -> Export:
    """The files that describe `shape` to a tool; refused with the formats that can, if it can't."""
    check_choice(tuple(FORMATS), format=name)
    wanted = FORMATS[name]
    if obstacles := wanted.obstacles(shape):
        alike = [other for other in FORMATS.values() if other.has_head == wanted.has_head]
        able = [other.name for other in alike if not other.obstacles(shape)]
        none = "no format here can express all of it at once"
        way_out = f"{', '.join(able)} can" if able else none
        raise ValueError(f"{name} cannot express this shape: {obstacles[0]}; {way_out}")
    values = wanted.values(shape)
    notes = (note.format(**values) for note in wanted.notes)
    return Export(
        format=name,
        files={file["name"]: _content(file, values) for file in wanted.files},
        params=wanted.params(shape),
        notes=tuple(note for note in notes if note),
    )


def _content(file: dict[str, Any], values: dict[str, object]) -> str:
    """The content of a file: its keys with the values of the shape, in its form."""
    if "template" in file:
        template = packed_file(file["template"]).read_text(encoding="utf-8")
        return Template(template).substitute(values)
    keys = _filled(file["keys"], values)
    forms = {"json": as_json, "yaml": _yaml, "bash-array": _bash_array}
    return forms[file["form"]](keys)


def _filled(value: Any, values: dict[str, object]) -> Any:
    """A value of the table: a word in braces stands for the number itself, not for its text."""
    if isinstance(value, dict):
        filled = {key: _filled(part, values) for key, part in value.items()}
        return {key: part for key, part in filled.items() if part is not LEFT_OUT}
    if not isinstance(value, str) or "{" not in value:
        return value
    return values[value[1:-1]] if value[1:-1] in values else value.format(**values)


def as_json(keys: Mapping[str, object]) -> str:
    """The content of a JSON file."""
    return json.dumps(keys, indent=2) + "\n"


def _yaml(keys: Mapping[str, object], indent: str = "") -> str:
    """One line a key; a YAML reader would take 1e-05 for a word, so numbers are written out."""
    text = ""
    for key, value in keys.items():
        if isinstance(value, Mapping):
            text += f"{indent}{key}:\n{_yaml(value, indent + '  ')}"
        else:
            is_real = isinstance(value, float)
            shown = f"{Decimal(repr(value)):f}" if is_real else json.dumps(value)
            text += f"{indent}{key}: {shown}\n"
    return text


def _bash_array(keys: Mapping[str, object]) -> str:
    """Megatron-LM's arguments; one that is true has no value, one that is false is left out."""
    said = {key: "" if v is True else f" {v}" for key, v in keys.items() if v is not False}
    body = "".join(f"    --{key}{value}\n" for key, value in said.items())
    usage = '# Source it, then: torchrun pretrain_gpt.py "${GPT_MODEL_ARGS[@]}" ...'
    return f"{usage}\nGPT_MODEL_ARGS=(\n{body})\n"


def _padded(rows: int, multiple: int) -> int:
    """Rows of a table that a tool pads to a multiple."""
    return -(-rows // multiple) * multiple


def write_files(export: Export, folder: Path) -> None:
    """Write the files into a folder that is there, and put them on disk."""
    for name, content in export.files.items():
        write_whole(folder / name, content.encode())
