"""Trained weights as a format has them: tables multiplied out, multipliers folded in.

Shape letters: R rows, I inner size, D width.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from archfit.spec import Factorised, Rotary, Tied, open_regular
from archfit.spec import lazy_numpy as np
from archfit.spec.files import WEIGHTS
from archfit.spec.lazy_numpy import NDArray
from archfit.spec.run import LearningRateRule
from archfit.spec.run_options import BASE_DEPTH, BASE_HEAD_DIM, BASE_WIDTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from archfit.export.trained import TrainedRun
    from archfit.spec import Architecture, Head, Positions

    Array = NDArray[np.float32]
    Shape = tuple[int, ...]

TensorFile: TypeAlias = Any  # what safe_open of safetensors opens; it carries no types
OTHER_TENSORS = 8  # at most: three tables of two factors, the last norm
LENGTH_BYTES = 8  # before a header, which say how long it is
METADATA = {"format": "pt", "made_by": "archfit export"}  # "pt" is what transformers asks for
SEPARATORS = (",", ":")
MARK = f'{{"__metadata__":{json.dumps(METADATA, separators=SEPARATORS)}'.encode()
BYTES_OF_AN_ENTRY, MOST_HEADER_BYTES = 1000, 16 * 10**6  # an entry has about 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Multipliers:
    """Constant factors of a trained network, which formats have not: they move into the weights."""

    residual: float  # of what a branch adds to the stream
    logit: float
    query: float  # on top of 1 / sqrt(head_dim)


def multipliers(architecture: Architecture, rule: LearningRateRule) -> Multipliers:
    """Those of a learning-rate rule; only completep has some that are not one."""
    if rule != "completep":
        return Multipliers(residual=1.0, logit=1.0, query=1.0)
    return Multipliers(
        residual=BASE_DEPTH / architecture.depth,
        logit=BASE_WIDTH / architecture.width,
        query=math.sqrt(BASE_HEAD_DIM / architecture.head_dim),
    )


@contextlib.contextmanager
def open_tensors(run: TrainedRun) -> Iterator[TensorFile]:
    """The tensors of the run's network, and no others, from a file that can never run code.

    A header too long for them is refused before a library spends its time on it.
    """
    from safetensors import SafetensorError, safe_open

    architecture = run.spec.architecture
    in_blocks = len(_block_shapes(architecture)) * architecture.depth
    most = in_blocks + OTHER_TENSORS
    with open_regular(run.weights) as file:
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
        _check_tensors(tensors, run)
        yield tensors


def _check_tensors(file: TensorFile, run: TrainedRun) -> None:
    """Refuse a file that does not hold exactly the tensors of the run's network."""
    expected = expected_shapes(run.spec.architecture)
    if odd := sorted(set(file.keys()) ^ expected.keys()):
        raise _damaged(run, f"the file and the network differ in {odd[0]!r}")
    for name, shape in expected.items():
        found = file.get_slice(name)
        if tuple(found.get_shape()) != shape or found.get_dtype() != "F32":
            held = f"{found.get_dtype()} {tuple(found.get_shape())}"
            raise _damaged(run, f"{name} is {held}, not F32 {shape}")


def expected_shapes(architecture: Architecture) -> dict[str, Shape]:
    """Names and shapes of the tensors of a softmax network, as `archfit train` writes them."""
    width, vocab = architecture.width, architecture.input.vocab
    tables: dict[str, tuple[int, Positions | Head]] = {
        "embedding.tokens": (vocab, architecture.embedding),
        "embedding.positions": (architecture.context, architecture.positions),
        "head": (vocab, architecture.head),
    }
    shapes: dict[str, Shape] = {}
    for name, (rows, table) in tables.items():
        inner = table.inner if isinstance(table, Factorised) else width
        if not isinstance(table, Rotary | Tied):
            shapes[f"{name}.rows_RI"] = (rows, inner)
        if isinstance(table, Factorised):
            shapes[f"{name}.mix_ID"] = (inner, width)
    block = _block_shapes(architecture)
    for at in range(architecture.depth):
        shapes |= {f"trunk.blocks.{at}.{name}": shape for name, shape in block.items()}
    return shapes | _layer_shapes(architecture, "trunk.norm", (width,))


def _block_shapes(architecture: Architecture) -> dict[str, Shape]:
    """Those of one block."""
    width, hidden, head_dim = architecture.width, architecture.feed_forward, architecture.head_dim
    inner, keys = architecture.heads * head_dim, architecture.key_value_heads * head_dim
    units = 2 * hidden if architecture.style.is_gated else hidden  # of gate and up
    layers: dict[str, Shape] = {
        "attention_norm": (width,),
        "feed_forward_norm": (width,),
        "attention.qkv": (inner + 2 * keys, width),
        "attention.out": (width, inner),
        "feed_forward.up": (units, width),
        "feed_forward.down": (width, hidden),
    }
    if architecture.qk_norm:
        layers |= {"attention.query_norm": (head_dim,), "attention.key_norm": (head_dim,)}
    shapes: dict[str, Shape] = {}
    for name, shape in layers.items():
        shapes |= _layer_shapes(architecture, name, shape)
    return shapes


def _layer_shapes(architecture: Architecture, name: str, weight: Shape) -> dict[str, Shape]:
    """Weight and, in a block of GPT-2, bias of a linear layer or norm."""
    bias = {f"{name}.bias": weight[:1]} if architecture.block == "gpt2" else {}
    return {f"{name}.weight": weight} | bias


def exported_tensors(file: TensorFile, run: TrainedRun) -> dict[str, Array]:
    """The tensors of the format, with which it has the logits of the trained network."""
    architecture, wanted = run.spec.architecture, run.format
    names, factors = wanted.weights, multipliers(architecture, run.spec.recipe.learning_rate_rule)
    make = _Maker(file=file, architecture=architecture, factors=factors, names=names)
    found = {names["tokens"]: make.table("embedding.tokens", spare=wanted.spare_rows)}
    if "positions" in names:
        found[names["positions"]] = make.table("embedding.positions", spare=wanted.positions or 0)
    for at in range(architecture.depth):
        block = names["block"].format(at=at)
        for ours, parts, theirs in names["layers"]:
            found |= make.layer(f"trunk.blocks.{at}", ours, parts, f"{block}.{theirs}")
    found |= make.layer("trunk", "norm", [], names["norm"])
    if "head" in names and not isinstance(architecture.head, Tied):
        found[names["head"]] = make.table("head", factor=factors.logit)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Maker:
    """Tensors of a format from those of a file."""

    file: TensorFile
    architecture: Architecture
    factors: Multipliers
    names: dict[str, Any]  # where a format has them: `weights` of its table

    def table(self, ours: str, *, factor: float = 1.0, spare: int = 0) -> Array:
        """A (rows x width) table, its two factors multiplied in double precision, and rows that no
        token has."""
        table_RD = self.file.get_tensor(f"{ours}.rows_RI").astype(np.float64)
        if f"{ours}.mix_ID" in self.file.keys():  # noqa: SIM118  # it is no dictionary
            table_RD = table_RD @ self.file.get_tensor(f"{ours}.mix_ID").astype(np.float64)
        whole: Array = np.pad((factor * table_RD).astype(np.float32), ((0, spare), (0, 0)))
        return whole

    def layer(self, within: str, ours: str, parts: Sequence[str], theirs: str) -> dict[str, Array]:
        """A linear layer or norm, or some rows of it, each times its factor, rounded once."""
        rows = [self._rows(part) for part in parts] or [slice(None)]
        factors = [self._factor(ours, part) for part in parts or [""]]
        made = {}
        for kind in ("weight", "bias") if self.architecture.block == "gpt2" else ("weight",):
            tensor = self.file.get_tensor(f"{within}.{ours}.{kind}")
            cut = [
                tensor[some] if f == 1 else (tensor[some].astype(np.float64) * f).astype(np.float32)
                for some, f in zip(rows, factors, strict=True)
            ]
            whole = np.concatenate(cut)
            whole = whole.T if self.names.get("is_transposed") else whole
            made[f"{theirs}.{kind}"] = np.ascontiguousarray(whole)
        return made

    def _rows(self, part: str) -> slice:
        """Where a part of a stacked matrix stands."""
        shape = self.architecture
        query = shape.heads * shape.head_dim
        keys, hidden = shape.key_value_heads * shape.head_dim, shape.feed_forward
        return {
            "query": slice(0, query),
            "key": slice(query, query + keys),
            "value": slice(query + keys, query + 2 * keys),
            "gate": slice(0, hidden),
            "up": slice(hidden, 2 * hidden),
        }[part]

    def _factor(self, ours: str, part: str) -> float:
        """What multiplies a layer. Scores scale with the queries, or with the norm of these; a tied
        head is the embedding itself, so its factor goes where the head reads from."""
        is_tied = isinstance(self.architecture.head, Tied) and "head" in self.names
        has_norm = self.architecture.qk_norm
        scaled = ("attention.query_norm", "") if has_norm else ("attention.qkv", "query")
        return {
            ("attention.out", ""): self.factors.residual,
            ("feed_forward.down", ""): self.factors.residual,
            ("norm", ""): self.factors.logit if is_tied else 1.0,
            scaled: self.factors.query,
        }.get((ours, part), 1.0)


def _damaged(run: TrainedRun, what: str) -> ValueError:
    return ValueError(f"{run.weights} is damaged: {what}; train the run again")


def check_weights(run: TrainedRun) -> None:
    """Refuse weights that are not those of the run's network."""
    with open_tensors(run):
        pass


def is_export(path: Path) -> bool:
    """Whether a file starts as those that `write_weights` wrote."""
    with open_regular(path) as file:
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
    if needed > free:
        rule = f"the weights need {needed:,} bytes and the disk has {free:,} left"
        raise ValueError(f"{rule}; free some or choose another --out")
    header = json.dumps(entries, separators=SEPARATORS).encode()
    header += b" " * (-len(header) % LENGTH_BYTES)  # tensors begin at a multiple of it
    with open(folder / WEIGHTS, "xb") as target:
        target.write(len(header).to_bytes(LENGTH_BYTES, "little") + header)
        target.writelines(tensor.astype("<f4").tobytes() for tensor in tensors.values())
        target.flush()
        os.fsync(target.fileno())
