"""A finished run, read with suspicion, and its weights as Hugging Face has their like: tables
multiplied out, multipliers folded in.

Shape letters: R rows, I inner size, D width.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from archfit.export import formats
from archfit.spec import Architecture, Full, RunRecord, RunSpec, files, parts
from archfit.spec import lazy_numpy as np
from archfit.spec.counting import table_weights
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.lazy_numpy import NDArray
from archfit.spec.run import LearningRateRule
from archfit.spec.run_options import BASE_DEPTH, BASE_HEAD_DIM, BASE_WIDTH

Shape: TypeAlias = tuple[int, ...]
TensorFile: TypeAlias = Any  # what safe_open of safetensors opens; it carries no types
OTHER_TENSORS = 8  # at most: three tables of two factors, the last norm
LENGTH_BYTES = 8  # before a header, which say how long it is
METADATA = {"format": "pt", "made_by": "archfit export"}  # "pt" is what transformers asks for
SEPARATORS = (",", ":")
MARK = f'{{"__metadata__":{json.dumps(METADATA, separators=SEPARATORS)}'.encode()
BYTES_OF_AN_ENTRY, MOST_HEADER_BYTES = 1000, 16 * 10**6  # an entry has about 120


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedRun:
    """A run that is done, and the file of its weights."""

    spec: RunSpec
    weights: Path

    @property
    def format(self) -> formats.ExportFormat:
        """The one that holds its weights, by block, norms of queries and keys, and objective."""
        shape = self.spec.architecture
        network = [shape.block, shape.qk_norm, shape.objective]
        for each in formats.FORMATS.values():
            if each.weights.get("network") == network:
                return each
        raise refusal("export-llama-encoder")


def open_run(folder: Path) -> TrainedRun:
    """The finished run in `folder`; a sentence says what is missing or damaged."""
    where, weights = repr(str(folder)), folder / files.WEIGHTS
    refuse_if(not (folder / files.SPEC).is_file(), "export-no-run", where=where)
    refuse_if(not (folder / files.RECORD).is_file(), "export-unfinished", where=where)
    path = folder / files.SPEC
    try:
        spec = files.load_file(RunSpec, path, most_bytes=files.LARGEST_SPEC)
        path = folder / files.RECORD
        record = files.load_file(RunRecord, path, most_bytes=files.LARGEST_RECORD)
    except ValueError as problem:
        raise ValueError(f"{path} is damaged: {problem}; train the run again") from problem
    if record.spec != spec:
        raise refusal("export-mixed", where=where, record=record.spec.name, spec=spec.name)
    if record.status != "finished":
        raise refusal("export-diverged", where=where, step=record.diverged_at_step)
    refuse_if(not weights.is_file(), "export-no-weights", where=where)
    return TrainedRun(spec=spec, weights=weights)


def export_run(run: TrainedRun, *, separator: int | None) -> formats.Export:
    """The config.json of the trained network, its factorised tables multiplied out."""
    given, tables = run.spec.architecture, ("embedding", "positions", "head")
    factorised = [name for name in tables if isinstance(getattr(given, name), parts.Factorised)]
    merged = replace(given, **dict.fromkeys(factorised, Full()))  # type: ignore[arg-type]  # tables
    try:
        each = run.spec.training_tokens / given.params
        shape = replace(formats.shape_of(merged), separator=separator, tokens_per_param=each)
    except ValueError as problem:
        raise ValueError(f"{problem}; its weights stay usable by archfit") from problem
    if obstacles := run.format.obstacles(shape):
        raise refusal("export-weights", format=run.format.name, obstacle=obstacles[0])
    export = formats.export_config(shape, run.format.name)
    return replace(export, notes=(*export.notes, *_notes(run, shape)))


def _notes(run: TrainedRun, shape: formats.ExportShape) -> list[str]:
    architecture, rule = run.spec.architecture, run.spec.recipe.learning_rate_rule
    notes = [f"trained weights of run {run.spec.name} in float32"]
    tables: list[tuple[str, int, parts.Positions | parts.Head]] = [
        ("tokens", shape.vocab, architecture.embedding),
        ("positions", shape.context, architecture.positions),
        *([("predictions", shape.vocab, architecture.head)] if run.format.has_head else []),
    ]
    notes += [
        f"the table of {name} was factorised to {table.inner} and is multiplied out: "
        f"{table_weights(rows, shape.width, table.inner):,} parameters became "
        f"{rows * shape.width:,}"
        for name, rows, table in tables
        if isinstance(table, parts.Factorised)
    ]
    if rule == "completep":
        notes.append("the multipliers of completep are folded into the weights")
    return notes


def multipliers(architecture: Architecture, rule: LearningRateRule) -> tuple[float, float, float]:
    """Constant factors of a network, which formats have not: they move into the weights.

    Of what a branch adds to the stream, of logits, and of queries (on top of 1 / sqrt(head_dim));
    only completep has some that are not one.
    """
    if rule != "completep":
        return 1.0, 1.0, 1.0
    query = math.sqrt(BASE_HEAD_DIM / architecture.head_dim)
    return BASE_DEPTH / architecture.depth, BASE_WIDTH / architecture.width, query


@contextlib.contextmanager
def open_tensors(run: TrainedRun) -> Iterator[TensorFile]:
    """The tensors of the run's network, and no others, from a file that can never run code.

    A header too long for them is refused before a library spends its time on it.
    """
    from safetensors import SafetensorError, safe_open

    architecture = run.spec.architecture
    in_blocks = len(_with_biases(architecture, _block_layers(architecture))) * architecture.depth
    most = in_blocks + OTHER_TENSORS
    with files.open_regular(run.weights) as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
    if length > min(BYTES_OF_AN_ENTRY * most, MOST_HEADER_BYTES):
        raise _damaged(run, f"its header of {length:,} bytes is not that of {most:,} tensors")
    try:
        opened = safe_open(run.weights, framework="numpy")
    except SafetensorError as problem:
        raise _damaged(run, str(problem)) from problem
    with opened as tensors:
        found = len(tensors.keys())
        if not in_blocks <= found <= most:  # a spec may claim a depth that nobody could list
            raise _damaged(run, f"{found} tensors are not {architecture.depth} blocks")
        expected = expected_shapes(architecture)
        if odd := sorted(set(tensors.keys()) ^ expected.keys()):
            raise _damaged(run, f"the file and the network differ in {odd[0]!r}")
        for name, shape in expected.items():
            part = tensors.get_slice(name)
            held = part.get_dtype(), tuple(part.get_shape())
            if held != ("F32", shape):
                raise _damaged(run, f"{name} is {held[0]} {held[1]}, not F32 {shape}")
        yield tensors


def expected_shapes(architecture: Architecture) -> dict[str, Shape]:
    """Names and shapes of the tensors of a softmax network, as `archfit train` writes them."""
    width, vocab = architecture.width, architecture.input.vocab
    tables: dict[str, tuple[int, parts.Positions | parts.Head]] = {
        "embedding.tokens": (vocab, architecture.embedding),
        "embedding.positions": (architecture.context, architecture.positions),
        "head": (vocab, architecture.head),
    }
    shapes: dict[str, Shape] = {}
    for name, (rows, table) in tables.items():
        inner = table.inner if isinstance(table, parts.Factorised) else width
        if not isinstance(table, parts.Rotary | parts.Tied):
            shapes[f"{name}.rows_RI"] = (rows, inner)
        if isinstance(table, parts.Factorised):
            shapes[f"{name}.mix_ID"] = (inner, width)
    layers: dict[str, Shape] = {"trunk.norm": (width,)}
    for at in range(architecture.depth):
        block = _block_layers(architecture).items()
        layers |= {f"trunk.blocks.{at}.{name}": shape for name, shape in block}
    return shapes | _with_biases(architecture, layers)


def _block_layers(architecture: Architecture) -> dict[str, Shape]:
    """The linear layers and norms of one block, by the shapes of their weights."""
    width, hidden, head_dim = architecture.width, architecture.feed_forward, architecture.head_dim
    inner, keys = architecture.heads * head_dim, architecture.key_value_heads * head_dim
    layers: dict[str, Shape] = {
        "attention_norm": (width,),
        "feed_forward_norm": (width,),
        "attention.qkv": (inner + 2 * keys, width),
        "attention.out": (width, inner),
        "feed_forward.up": (hidden * (1 + architecture.style.is_gated), width),  # of gate and up
        "feed_forward.down": (width, hidden),
    }
    if architecture.qk_norm:
        layers |= {"attention.query_norm": (head_dim,), "attention.key_norm": (head_dim,)}
    return layers


def _with_biases(architecture: Architecture, layers: dict[str, Shape]) -> dict[str, Shape]:
    """The weight and, in a block of GPT-2, the bias of each layer."""
    shapes = {f"{name}.weight": shape for name, shape in layers.items()}
    if architecture.block == "gpt2":
        shapes |= {f"{name}.bias": shape[:1] for name, shape in layers.items()}
    return shapes


def exported_tensors(file: TensorFile, run: TrainedRun) -> dict[str, NDArray[np.float32]]:
    """The tensors of the format, with which it has the logits of the trained network.

    Each layer is one of the file, or some rows of it, times their factors. Scores scale with the
    queries, or with the norm of these; a tied head is the embedding itself, so its factor goes
    where the head reads from.
    """
    shape, wanted = run.spec.architecture, run.format
    names, rows = wanted.weights, _rows_of_parts(shape)
    residual, logit, query = multipliers(shape, run.spec.recipe.learning_rate_rule)
    is_tied = isinstance(shape.head, parts.Tied)
    factors = {
        ("attention.out", ""): residual,
        ("feed_forward.down", ""): residual,
        ("attention.query_norm", "") if shape.qk_norm else ("attention.qkv", "query"): query,
        ("norm", ""): logit if is_tied and "head" in names else 1.0,
    }
    found = {names["tokens"]: _table(file, "embedding.tokens", 1, wanted.spare_rows)}
    if "positions" in names:
        spare = wanted.positions or 0
        found[names["positions"]] = _table(file, "embedding.positions", 1, spare)
    layers = [
        (f"trunk.blocks.{at}", ours, stacked, f"{names['block'].format(at=at)}.{theirs}")
        for at in range(shape.depth)
        for ours, stacked, theirs in names["layers"]
    ]
    for within, ours, stacked, theirs in [*layers, ("trunk", "norm", [], names["norm"])]:
        for kind in ("weight", "bias") if shape.block == "gpt2" else ("weight",):
            tensor = file.get_tensor(f"{within}.{ours}.{kind}")
            each = ((part, factors.get((ours, part), 1)) for part in stacked or [""])
            whole = np.concatenate([_scaled(tensor[rows[part]], by) for part, by in each])
            whole = whole.T if names.get("is_transposed") else whole
            found[f"{theirs}.{kind}"] = np.ascontiguousarray(whole)
    if "head" in names and not is_tied:
        found[names["head"]] = _table(file, "head", logit)
    return found


def _table(file: TensorFile, ours: str, factor: float, spare: int = 0) -> NDArray[np.float32]:
    """A (rows x width) table, its two factors multiplied in double precision, and rows that no
    token has."""
    table_RD = file.get_tensor(f"{ours}.rows_RI").astype(np.float64)
    if f"{ours}.mix_ID" in file.keys():  # noqa: SIM118  # it is no dictionary
        table_RD = table_RD @ file.get_tensor(f"{ours}.mix_ID").astype(np.float64)
    return np.pad(_scaled(table_RD, factor), ((0, spare), (0, 0)))


def _scaled(tensor: NDArray[np.floating], factor: float) -> NDArray[np.float32]:
    """A tensor times a factor, rounded once."""
    return (tensor.astype(np.float64) * factor).astype(np.float32)


def _rows_of_parts(shape: Architecture) -> dict[str, slice]:
    """Where a part of a stacked matrix stands; without a name it is all of it."""
    query = shape.heads * shape.head_dim
    keys, hidden = shape.key_value_heads * shape.head_dim, shape.feed_forward
    return {
        "": slice(None),
        "query": slice(0, query),
        "key": slice(query, query + keys),
        "value": slice(query + keys, query + 2 * keys),
        "gate": slice(0, hidden),
        "up": slice(hidden, 2 * hidden),
    }


def _damaged(run: TrainedRun, what: str) -> ValueError:
    return ValueError(f"{run.weights} is damaged: {what}; train the run again")


def is_export(path: Path) -> bool:
    """Whether a file starts as those that `write_weights` wrote."""
    with files.open_regular(path) as file:
        return file.read(LENGTH_BYTES + len(MARK))[LENGTH_BYTES:] == MARK


def write_weights(run: TrainedRun, folder: Path) -> None:
    """Write model.safetensors with the weights of the run as its format has them.

    The library would write the metadata in any order; one run gives one file.
    """
    with open_tensors(run) as file:
        tensors = exported_tensors(file, run)
    entries: dict[str, object] = {"__metadata__": METADATA}
    needed = 0
    for name, tensor in tensors.items():
        place = needed, needed + tensor.nbytes
        entries[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": place}
        needed += tensor.nbytes
    free = shutil.disk_usage(folder).free
    refuse_if(needed > free, "export-disk", needed=f"{needed:,}", free=f"{free:,}")
    header = json.dumps(entries, separators=SEPARATORS).encode()
    header += b" " * (-len(header) % LENGTH_BYTES)  # tensors begin at a multiple of it
    with open(folder / files.WEIGHTS, "xb") as target:
        target.write(len(header).to_bytes(LENGTH_BYTES, "little") + header)
        target.writelines(tensor.astype("<f4").tobytes() for tensor in tensors.values())
        target.flush()
        os.fsync(target.fileno())
