"""Trained weights as a format has them: tables multiplied out, multipliers folded in.

Every tensor is made when it is written, tables in slices of rows, so that memory stays small.
Shape letters: R rows, I inner size, D width.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.spec import Factorised, Rotary, Tied, open_regular
from archfit.spec.files import WEIGHTS
from archfit.spec.run import LearningRateRule
from archfit.spec.run_options import BASE_DEPTH, BASE_HEAD_DIM, BASE_WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Protocol

    import numpy as np
    from numpy.typing import NDArray

    from archfit.export.formats import WeightNames
    from archfit.export.trained import TrainedRun
    from archfit.spec import Architecture, Head, Positions

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
QKV, LAST_NORM = "attention.qkv", "norm"
OTHER_TENSORS = 8  # at most: three tables of two factors, the last norm
NUMBER_BYTES = 4
ALIGNMENT = 8  # the header ends where a tensor may begin
LENGTH_BYTES, SEPARATORS = 8, (",", ":")
METADATA = {"format": "pt", "made_by": "archfit export"}  # "pt" is what transformers asks for
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensor:
    """A tensor of the format: where it goes, and what makes its content, part by part."""

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
    shape = run.spec.architecture
    tensors = len(_block_shapes(shape)) * shape.depth + OTHER_TENSORS
    if length > min(BYTES_OF_AN_ENTRY * tensors, MOST_HEADER_BYTES):
        raise _damaged(run, f"its header of {length:,} bytes is not that of {tensors:,} tensors")


def check_tensors(file: TensorFile, run: TrainedRun) -> None:
    """Refuse a file that does not hold exactly the tensors of the run's network."""
    architecture, names = run.spec.architecture, set(file.keys())
    in_blocks = len(_block_shapes(architecture)) * architecture.depth
    # A spec may claim a depth that nobody could list.
    if not in_blocks <= len(names) <= in_blocks + OTHER_TENSORS:
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
    width, vocab = architecture.width, architecture.input.vocab
    shapes = _table_shapes("embedding.tokens", vocab, width, architecture.embedding)
    shapes |= _table_shapes(
        "embedding.positions", architecture.context, width, architecture.positions
    )
    shapes |= _table_shapes("head", vocab, width, architecture.head)
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


def _table_shapes(name: str, rows: int, width: int, table: Positions | Head) -> dict[str, Shape]:
    if isinstance(table, Factorised):
        return {f"{name}.rows_RI": (rows, table.inner), f"{name}.mix_ID": (table.inner, width)}
    return {} if isinstance(table, Rotary | Tied) else {f"{name}.rows_RI": (rows, width)}


def exported_tensors(file: TensorFile, run: TrainedRun) -> list[Tensor]:
    """The tensors of the format, with which it has the logits of the trained network."""
    architecture, wanted = run.spec.architecture, run.format
    assert wanted.weights is not None
    names, vocab, context = wanted.weights, architecture.input.vocab, architecture.context
    factors = multipliers(architecture, run.spec.recipe.learning_rate_rule)
    make = _Maker(file=file, architecture=architecture, factors=factors, names=names)
    found = [make.table("embedding.tokens", names.tokens, vocab, spare=wanted.spare_rows)]
    if names.positions is not None:
        spare = wanted.positions or 0
        found.append(make.table("embedding.positions", names.positions, context, spare=spare))
    for at in range(architecture.depth):
        for ours, parts, theirs in names.layers:
            block = names.block.format(at=at)
            found += make.layer(f"trunk.blocks.{at}", ours, parts, f"{block}.{theirs}")
    found += make.layer("trunk", LAST_NORM, [], names.norm)
    if names.head is None or isinstance(architecture.head, Tied):
        return found
    return [*found, make.table("head", names.head, vocab, factor=factors.logit)]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Maker:
    """Tensors of a format from those of a file."""

    file: TensorFile
    architecture: Architecture
    factors: Multipliers
    names: WeightNames

    def table(
        self, ours: str, theirs: str, rows: int, *, factor: float = 1.0, spare: int = 0
    ) -> Tensor:
        """A (rows x width) table, its two factors multiplied in double precision."""
        width = self.architecture.width

        def parts() -> Iterator[Array]:
            import numpy as np

            rows_RI = self.file.get_slice(f"{ours}.rows_RI")
            mix_ID = None
            if f"{ours}.mix_ID" in self.file.keys():  # noqa: SIM118  # it is no dictionary
                mix_ID = self.file.get_tensor(f"{ours}.mix_ID").astype(np.float64)
            step = max(1, SLICE_NUMBERS // max(width, rows_RI.get_shape()[1]))
            for start in range(0, rows, step):
                part = rows_RI[start : min(start + step, rows)].astype(np.float64)
                yield (factor * (part if mix_ID is None else part @ mix_ID)).astype(np.float32)
            yield np.zeros((spare, width), dtype=np.float32)

        return Tensor(name=theirs, shape=(rows + spare, width), parts=parts)

    def layer(self, within: str, ours: str, parts: Sequence[str], theirs: str) -> list[Tensor]:
        """A linear layer or norm, or some rows of it, with the factors folded in."""
        rows = [self._rows(part) for part in parts] or [slice(None)]
        factors = [self._factor(ours, part) for part in parts or [""]]

        def made(kind: str) -> Callable[[], Iterator[Array]]:
            return lambda: iter([self._folded(f"{within}.{ours}.{kind}", rows, factors)])

        every, *inputs = self.file.get_slice(f"{within}.{ours}.weight").get_shape()
        outputs = sum(len(range(*some.indices(every))) for some in rows)
        turn = -1 if self.names.is_transposed else 1
        return [
            Tensor(name=name, shape=shape[::turn], parts=made(name.rpartition(".")[2]))
            for name, shape in _layer_shapes(self.architecture, theirs, (outputs, *inputs)).items()
        ]

    def _folded(self, name: str, rows: Sequence[slice], factors: Sequence[float]) -> Array:
        import numpy as np

        tensor = self.file.get_tensor(name)
        parts = [_times(tensor[some], f) for some, f in zip(rows, factors, strict=True)]
        whole = np.concatenate(parts)
        return whole.T if self.names.is_transposed else whole

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
        is_tied = isinstance(self.architecture.head, Tied) and self.names.head is not None
        scaled = ("attention.query_norm", "") if self.architecture.qk_norm else (QKV, "query")
        return {
            ("attention.out", ""): self.factors.residual,
            ("feed_forward.down", ""): self.factors.residual,
            (LAST_NORM, ""): self.factors.logit if is_tied else 1.0,
            scaled: self.factors.query,
        }.get((ours, part), 1.0)


def _times(tensor: Array, factor: float) -> Array:
    """The product, rounded once."""
    import numpy as np

    return tensor if factor == 1 else (tensor.astype(np.float64) * factor).astype(np.float32)


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
    """Write model.safetensors with the weights of the run as its format has them."""
    with open_tensors(run) as file:
        check_tensors(file, run)
        tensors = exported_tensors(file, run)
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
