"""Trained weights as GPT-2 has them: tables multiplied out, multipliers folded in.

Every tensor is made when it is written, tables in slices of rows, so that memory stays small.
Shape letters: R rows, I inner size, D width.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from archfit.spec import Factorised, Tied, open_regular
from archfit.spec.files import WEIGHTS
from archfit.spec.run_options import BASE_DEPTH, BASE_HEAD_DIM, BASE_WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Literal, Protocol

    import numpy as np
    from numpy.typing import NDArray

    from archfit.export.trained import TrainedRun
    from archfit.spec import Architecture, RunSpec, Table

    Array = NDArray[np.float32]
    Shape = tuple[int, ...]

    class Slice(Protocol):
        """Part of the tensors of a safetensors file."""

        def get_shape(self) -> list[int]:
            """Sizes of the whole tensor."""

        def get_dtype(self) -> str:
            """As safetensors names it."""

        def __getitem__(self, rows: slice) -> Array:
            """Some rows."""

    class TensorFile(Protocol):
        """An open safetensors file."""

        def keys(self) -> list[str]:
            """Names of its tensors."""

        def get_tensor(self, name: str) -> Array:
            """One of them."""

        def get_slice(self, name: str) -> Slice:
            """One of them, not read yet."""


SLICE_NUMBERS = 1 << 22  # in a slice of a table
TENSORS_OF_A_BLOCK = 12
OTHER_TENSORS = 8  # at most: three tables of two factors, the last norm
NUMBER_BYTES = 4
ALIGNMENT = 8  # the header ends where a tensor may begin
LENGTH_BYTES, SEPARATORS = 8, (",", ":")
METADATA = {"format": "pt", "made_by": "archfit export"}  # "pt" is what transformers asks for
MARK = f'{{"__metadata__":{json.dumps(METADATA, separators=SEPARATORS)}'.encode()
BYTES_OF_AN_ENTRY, MOST_HEADER_BYTES = 1000, 16 * 10**6  # an entry has about 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Multipliers:
    """Constant factors of a trained network, which GPT-2 has not: they move into the weights."""

    residual: float  # of what a branch adds to the stream
    logit: float
    query: float  # on top of 1 / sqrt(head_dim)


def multipliers(architecture: Architecture, rule: Literal["standard", "completep"]) -> Multipliers:
    """Those of a learning-rate rule; under `standard` all are one."""
    if rule == "standard":
        return Multipliers(residual=1.0, logit=1.0, query=1.0)
    return Multipliers(
        residual=BASE_DEPTH / architecture.depth,
        logit=BASE_WIDTH / architecture.width,
        query=math.sqrt(BASE_HEAD_DIM / architecture.head_dim),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensor:
    """A tensor of GPT-2: where it goes, and what makes its content, part by part."""

    name: str
    shape: Shape
    parts: Callable[[], Iterator[Array]]


def open_tensors(run: TrainedRun) -> AbstractContextManager[TensorFile]:
    """The tensors of a file that can never run code."""
    from safetensors import SafetensorError, safe_open

    _check_header(run)
    try:
        opened: AbstractContextManager[TensorFile] = safe_open(run.weights, framework="numpy")
    except SafetensorError as problem:
        raise _damaged(run, str(problem)) from problem
    return opened


def _check_header(run: TrainedRun) -> None:
    """Refuse a header too long for the run's tensors, before a library spends its time on it."""
    with open_regular(run.weights) as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
    tensors = TENSORS_OF_A_BLOCK * run.spec.architecture.depth + OTHER_TENSORS
    if length > min(BYTES_OF_AN_ENTRY * tensors, MOST_HEADER_BYTES):
        raise _damaged(run, f"its header of {length:,} bytes is not that of {tensors:,} tensors")


def check_tensors(file: TensorFile, run: TrainedRun) -> None:
    """Refuse a file that does not hold exactly the tensors of the run's network."""
    architecture, names = run.spec.architecture, set(file.keys())
    # A spec may claim a depth that nobody could list.
    if len(names) > TENSORS_OF_A_BLOCK * architecture.depth + OTHER_TENSORS or (
        TENSORS_OF_A_BLOCK * architecture.depth > len(names)
    ):
        raise _damaged(run, f"{len(names)} tensors are not {architecture.depth} blocks")
    expected = expected_shapes(architecture)
    if odd := sorted(names ^ expected.keys()):
        raise _damaged(run, f"the file and the network differ in {odd[0]!r}")
    for name, shape in expected.items():
        found = file.get_slice(name)
        if tuple(found.get_shape()) != shape or found.get_dtype() != "F32":
            held = f"{found.get_dtype()} {tuple(found.get_shape())}"
            raise _damaged(run, f"{name} is {held}, not F32 {shape}")


def expected_shapes(architecture: Architecture) -> dict[str, Shape]:
    """Names and shapes of the tensors of a softmax network, as `archfit train` writes them."""
    width, inner = architecture.width, architecture.heads * architecture.head_dim
    hidden = architecture.feed_forward
    vocab, context = architecture.input.vocab, architecture.context
    shapes = _table_shapes("embedding.tokens", vocab, width, architecture.embedding)
    shapes |= _table_shapes("embedding.positions", context, width, architecture.positions)
    if not isinstance(architecture.head, Tied):
        shapes |= _table_shapes("head", vocab, width, architecture.head)
    for at in range(architecture.depth):
        block = f"trunk.blocks.{at}"
        shapes |= _norm_shapes(f"{block}.attention_norm", width)
        shapes |= _norm_shapes(f"{block}.feed_forward_norm", width)
        shapes |= _layer_shapes(f"{block}.attention.qkv", width, 3 * inner)
        shapes |= _layer_shapes(f"{block}.attention.out", inner, width)
        shapes |= _layer_shapes(f"{block}.feed_forward.up", width, hidden)
        shapes |= _layer_shapes(f"{block}.feed_forward.down", hidden, width)
    return shapes | _norm_shapes("trunk.norm", width)


def gpt2_tensors(file: TensorFile, spec: RunSpec) -> list[Tensor]:
    """The tensors of GPT-2 with the logits of the trained network."""
    architecture = spec.architecture
    factors = multipliers(architecture, spec.recipe.learning_rate_rule)
    is_tied = isinstance(architecture.head, Tied)
    vocab, context = architecture.input.vocab, architecture.context
    make = _Maker(file=file, width=architecture.width)
    found = [
        make.table("embedding.tokens", "wte.weight", vocab, architecture.embedding, 1.0),
        make.table("embedding.positions", "wpe.weight", context, architecture.positions, 1.0),
    ]
    for at in range(architecture.depth):
        ours, theirs = f"trunk.blocks.{at}", f"h.{at}"
        found += make.norm(f"{ours}.attention_norm", f"{theirs}.ln_1", 1.0)
        found += make.layer(f"{ours}.attention.qkv", f"{theirs}.attn.c_attn", query=factors.query)
        found += make.layer(
            f"{ours}.attention.out", f"{theirs}.attn.c_proj", whole=factors.residual
        )
        found += make.norm(f"{ours}.feed_forward_norm", f"{theirs}.ln_2", 1.0)
        found += make.layer(f"{ours}.feed_forward.up", f"{theirs}.mlp.c_fc")
        found += make.layer(
            f"{ours}.feed_forward.down", f"{theirs}.mlp.c_proj", whole=factors.residual
        )
    # A tied head is the embedding itself, so its factor goes where the head reads from.
    found += make.norm("trunk.norm", "ln_f", factors.logit if is_tied else 1.0)
    body = [replace(tensor, name=f"transformer.{tensor.name}") for tensor in found]
    if isinstance(architecture.head, Tied):
        return body
    return [*body, make.table("head", "lm_head.weight", vocab, architecture.head, factors.logit)]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Maker:
    """Tensors of GPT-2 from those of a file; its matrices are the transposes of ours."""

    file: TensorFile
    width: int

    def table(self, ours: str, theirs: str, rows: int, table: Table, factor: float) -> Tensor:
        """A (rows x width) table, its two factors multiplied in double precision."""

        def parts() -> Iterator[Array]:
            import numpy as np

            rows_RI = self.file.get_slice(f"{ours}.rows_RI")
            mix_ID = None
            if isinstance(table, Factorised):
                mix_ID = self.file.get_tensor(f"{ours}.mix_ID").astype(np.float64)
            step = max(1, SLICE_NUMBERS // max(self.width, rows_RI.get_shape()[1]))
            for start in range(0, rows, step):
                part = rows_RI[start : min(start + step, rows)].astype(np.float64)
                yield (factor * (part if mix_ID is None else part @ mix_ID)).astype(np.float32)

        return Tensor(name=theirs, shape=(rows, self.width), parts=parts)

    def norm(self, ours: str, theirs: str, factor: float) -> list[Tensor]:
        """Scale and shift, both times the factor."""

        def scaled(kind: str) -> Callable[[], Iterator[Array]]:
            return lambda: iter([_times(self.file.get_tensor(f"{ours}.{kind}"), factor)])

        return [
            Tensor(name=f"{theirs}.{kind}", shape=(self.width,), parts=scaled(kind))
            for kind in ("weight", "bias")
        ]

    def layer(
        self, ours: str, theirs: str, *, query: float = 1.0, whole: float = 1.0
    ) -> list[Tensor]:
        """A linear layer, all of it times one factor, its first third (queries) times another."""
        outputs, inputs = self.file.get_slice(f"{ours}.weight").get_shape()

        def scaled(kind: str) -> Iterator[Array]:
            tensor = _times(self.file.get_tensor(f"{ours}.{kind}"), whole)
            if query != 1:
                tensor[: outputs // 3] = _times(tensor[: outputs // 3], query)
            yield tensor.T

        return [
            Tensor(
                name=f"{theirs}.weight", shape=(inputs, outputs), parts=lambda: scaled("weight")
            ),
            Tensor(name=f"{theirs}.bias", shape=(outputs,), parts=lambda: scaled("bias")),
        ]


def _times(tensor: Array, factor: float) -> Array:
    """The product, rounded once."""
    import numpy as np

    return tensor if factor == 1 else (tensor.astype(np.float64) * factor).astype(np.float32)


def _table_shapes(name: str, rows: int, width: int, table: Table) -> dict[str, Shape]:
    if isinstance(table, Factorised):
        return {f"{name}.rows_RI": (rows, table.inner), f"{name}.mix_ID": (table.inner, width)}
    return {f"{name}.rows_RI": (rows, width)}


def _norm_shapes(name: str, width: int) -> dict[str, Shape]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _layer_shapes(name: str, inputs: int, outputs: int) -> dict[str, Shape]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _damaged(run: TrainedRun, what: str) -> ValueError:
    return ValueError(f"{run.weights} is damaged: {what}; train the run again")


def check_weights(run: TrainedRun) -> None:
    """Refuse weights that are not those of the run's network."""
    with open_tensors(run) as file:
        check_tensors(file, run)


def is_export(path: Path) -> bool:
    """Whether a file starts as those that `write_weights` wrote."""
    with open_regular(path) as file:
        return file.read(LENGTH_BYTES + len(MARK))[LENGTH_BYTES:] == MARK


def write_weights(run: TrainedRun, folder: Path) -> None:
    """Write model.safetensors with the weights of the run as GPT-2 has them."""
    with open_tensors(run) as file:
        check_tensors(file, run)
        tensors = gpt2_tensors(file, run.spec)
        needed = sum(NUMBER_BYTES * math.prod(tensor.shape) for tensor in tensors)
        free = shutil.disk_usage(folder).free
        if needed > free:
            raise ValueError(
                f"the weights need {needed:,} bytes and the disk has {free:,} left; "
                "free some or choose another --out"
            )
        _write(folder / WEIGHTS, tensors)


def _write(path: Path, tensors: Sequence[Tensor]) -> None:
    header = _header(tensors)
    with open(path, "xb") as target:
        target.write(len(header).to_bytes(LENGTH_BYTES, "little") + header)
        for tensor in tensors:
            for part in tensor.parts():
                target.write(part.astype("<f4").tobytes())
        target.flush()
        os.fsync(target.fileno())


def _header(tensors: Sequence[Tensor]) -> bytes:
    entries: dict[str, object] = {"__metadata__": METADATA}
    start = 0
    for tensor in tensors:
        end = start + NUMBER_BYTES * math.prod(tensor.shape)
        entries[tensor.name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": (start, end)}
        start = end
    text = json.dumps(entries, separators=SEPARATORS).encode()
    return text + b" " * (-len(text) % ALIGNMENT)
