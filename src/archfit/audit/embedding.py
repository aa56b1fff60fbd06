"""Which stored tensors carry the input into the network, and how many dimensions they use.

**Choice.** Where several names fit: a token table before a map of patches or features (a model of
text that also sees is audited as a model of text); then the name that comes first in the lists of
`families.toml`; then a table that is not a decoder's; then the one with most rows. A table of one
row is passed over: no model reads one token (Decision Transformers store an unused one).

**Method.** Row blocks are added up to the Gram matrix W^T W in float64, whose eigenvalues are the
squares of the singular values. Squaring costs half the digits: values below 2e-6 of the largest
(GRAM_FLOOR) are noise of the arithmetic and never counted, also in a float64 table.

**Tolerance.** Rounding W to its stored type adds an error E with |E_ij| <= u |W_ij| + s, where u is
half the type's epsilon and s half its step near zero. numpy's rule, max(m, n) epsilon sigma_max,
would put the tolerance for 30,000 bfloat16 rows at 234 sigma_max and find no rank at all. For
errors that are independent of each other, |E| is about the longest row of their standard deviations
plus the longest column (Bandeira and van Handel 2016), so a singular value counts as rank above

    u (longest row + longest column of W) + s (sqrt(m) + sqrt(n)),

which is twice what uniform errors give, and at most epsilon sigma_max + s (...). GRAM_FLOOR covers
what arithmetic in float32, for instance the product of two thin factors, leaves beyond that.

**Padding.** Rows of zeros are left out wherever they stand; so is the run of two or more equal rows
that ends the table: no training told those tokens apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from archfit.audit.checkpoint_file import StoredTensor, Tensors
from archfit.audit.families import knowledge, tensor_names
from archfit.audit.model import TABLES, InputKind
from archfit.spec import lazy_numpy as np
from archfit.spec import open_regular
from archfit.spec.errors import brief, refusal, refuse_if
from archfit.spec.lazy_numpy import NDArray

Matrix: TypeAlias = "NDArray[np.float64]"
Rows: TypeAlias = "Iterable[Matrix]"
ROWS, MIX = "rows_RI", "mix_ID"  # archfit; mix_ID is (inner, width), linear layers the other way
WIDEST = 8192  # columns; two float64 matrices of this size take 1.1 GB
MOST_ELEMENTS = 2**32  # of all tables; 262,144 tokens of width 8,192 have half as many
MOST_POINTS = 512  # of a chart
BLOCK_BYTES = 32 << 20  # of float64; a handful of such arrays live at once
GRAM_FLOOR = 2e-6  # times the largest singular value: below it the arithmetic is noise
PANEL = 512  # columns of the Gram matrix made at once
FRACTION_BITS = 52  # of a float64
DIGITS = {"BF16": 7, "F16": 10, "F32": 23, "F64": FRACTION_BITS}  # bits after the leading one
LEAST_STEP = {"BF16": 2.0**-133, "F16": 2.0**-24, "F32": 2.0**-149, "F64": 0.0}  # near zero


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingTensors:
    """The tensors whose product maps an input to a vector of the network's width.

    A bias of the maps is left out: it shifts all inputs alike.
    """

    kind: InputKind
    tables: Tensors  # (rows, inner); several if a position sums over codebooks; one
    # (width, inputs...) for a linear map
    widening: Tensors = ()  # one for a factorised table, else empty
    rows: int  # tokens of all tables, or dimensions of a patch, feature or state
    inner: int  # columns of the tables; the width, unless a map widens them
    width: int  # size of the vectors that come out

    @property
    def names(self) -> tuple[str, ...]:
        """Of all tensors, for the reader to check the choice."""
        return tuple(tensor.name for tensor in (*self.tables, *self.widening))

    @property
    def is_table(self) -> bool:
        """Whether rows belong to tokens; those of a linear map belong to the width."""
        return self.kind in TABLES

    @property
    def stored_rows(self) -> int:
        """Rows of all tables as stored."""
        return self.rows if self.is_table else self.width

    @property
    def stored_columns(self) -> int:
        """Columns of the tables as stored, all axes after the first made one."""
        return self.inner if self.is_table else self.rows


def find_embedding(tensors: Tensors) -> EmbeddingTensors:
    """The tensors that carry the input, by their names and shapes; a sentence if none do."""
    names = tensor_names("token_tables")
    matrices = [tensor for tensor in tensors if len(tensor.shape) == 2]
    filled = [tensor for tensor in matrices if tensor.shape[0] > 1 and tensor.shape[1] > 0]
    if tables := [t for t in filled if ends_in(_plain_name(t), names)]:
        best = min(tables, key=_preference)
        plain, inner = _plain_name(best), best.shape[1]
        named_alike = [t for t in tables if _plain_name(t) == plain and t.shape[1] == inner]
        alike = (best,) if plain == best.name else tuple(named_alike)
        kind: InputKind = "sum_of_lookups" if len(alike) > 1 else "lookup"
        rows, width = sum(table.shape[0] for table in alike), inner
        widening = tuple(tensor for tensor in tensors if _widens(tensor, best))[:1]
        if widening:
            kind, width = "factorised_lookup", widening[0].shape[widening[0].name.endswith(MIX)]
        return EmbeddingTensors(
            kind=kind, tables=alike, widening=widening, rows=rows, inner=inner, width=width
        )
    for ending, kind in knowledge()["tensors"]["linear_maps"].items():
        for tensor in tensors:
            if ends_in(tensor.name, (ending,)) and len(tensor.shape) >= 2 and tensor.elements:
                width, rows = tensor.shape[0], tensor.elements // tensor.shape[0]
                return EmbeddingTensors(
                    kind=kind, tables=(tensor,), rows=rows, inner=width, width=width
                )
    largest = sorted(matrices, key=lambda tensor: -tensor.shape[0])[:3]
    listed = ", ".join(f"{brief(t.name)} ({t.shape[0]:,} x {t.shape[1]:,})" for t in largest)
    place = f" of {tensors[0].file}" if tensors else ""
    count = f"{len(tensors):,}"
    raise refusal("no-table", count=count, place=place, listed=listed or "none at all")


def ends_in(name: str, endings: tuple[str, ...]) -> bool:
    """Whether the last parts of a tensor's name are one of the endings."""
    return any(f".{name}".endswith(f".{ending}") for ending in endings)


def _preference(tensor: StoredTensor) -> tuple[int, bool, int, str]:
    plain = _plain_name(tensor)
    fits = (at for at, end in enumerate(tensor_names("token_tables")) if ends_in(plain, (end,)))
    return next(fits), "decoder" in tensor.name.split("."), -tensor.shape[0], tensor.name


def _plain_name(tensor: StoredTensor) -> str:
    """Its name without the number of a codebook: MusicGen's embed_tokens.0 to .3."""
    *front, number, last = ["", "", *tensor.name.split(".")]
    return ".".join([*front[2:], last]) if number.isdecimal() else tensor.name


def _widens(tensor: StoredTensor, table: StoredTensor) -> bool:
    if len(tensor.shape) != 2 or not tensor.elements:
        return False
    if table.name.endswith(ROWS):
        is_named = tensor.name == table.name.removesuffix(ROWS) + MIX
        return is_named and tensor.shape[0] == table.shape[1]
    is_named = ends_in(tensor.name, tensor_names("widening_maps"))
    return is_named and tensor.shape[1] == table.shape[1]


# ---- singular values


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingSpectrum:
    """What was measured of an embedding, padding left out."""

    tensors: tuple[str, ...]  # names of what was read
    rows: int  # as stored; dimensions of a patch or feature for a linear map
    width: int
    padded_rows: int
    numerical_rank: int  # singular values above the tolerance
    tolerance: float
    stable_rank: float  # |W|_F^2 / sigma_max^2
    effective_rank: float  # exp of the entropy of sigma / sum(sigma); Roy and Vetterli 2007
    singular_values: tuple[float, ...]  # largest first
    bytes_read: int

    def points(self) -> tuple[tuple[int, float], ...]:
        """Index from 1 and singular value for a chart, evenly thinned to at most 512."""
        count = len(self.singular_values)
        chosen = np.linspace(0, count - 1, min(count, MOST_POINTS)).round().astype(int).tolist()
        return tuple((index + 1, self.singular_values[index]) for index in chosen)


def measure_embedding(embedding: EmbeddingTensors) -> EmbeddingSpectrum:
    """The singular values of an embedding and what follows; reads its tensors and nothing else."""
    _check_sizes(embedding)
    values, tolerance, kept_rows = _product(embedding) if embedding.widening else _lone(embedding)
    shares = values[values > 0] / values.sum()
    return EmbeddingSpectrum(
        tensors=embedding.names, rows=embedding.rows, width=embedding.width,
        padded_rows=embedding.stored_rows - kept_rows,
        numerical_rank=int((values > tolerance).sum()), tolerance=tolerance,
        stable_rank=float((values**2).sum() / values[0] ** 2),
        effective_rank=float(np.exp(-(shares * np.log(shares)).sum())),
        singular_values=tuple(values.tolist()),
        bytes_read=sum(t.end - t.start for t in (*embedding.tables, *embedding.widening)),
    )  # fmt: skip


def _lone(embedding: EmbeddingTensors) -> tuple[Matrix, float, int]:
    """Singular values, tolerance and rows kept of tables without a map that widens them.

    Several tables stand one below the other, since a position sums over rows of all of them.
    """
    columns, is_short = embedding.stored_columns, embedding.stored_rows < embedding.stored_columns
    gram = Gram(embedding.tables[0], _table_rows(embedding), columns, is_across=is_short)
    kept_rows = gram.columns if is_short else gram.rows
    values = gram.singular_values()
    return values[: min(kept_rows, columns)], gram.noise(float(values[0])), kept_rows


def _product(embedding: EmbeddingTensors) -> tuple[Matrix, float, int]:
    """The same of a factorised table T P: with T^T T = R^T R and P P^T = S^T S those of R S^T.

    Errors of both factors reach the product: |E_T| |P| + |T| |E_P|.
    """
    (widening,), inner = embedding.widening, embedding.inner
    table = Gram(embedding.tables[0], _table_rows(embedding), inner)
    is_wide = widening.name.endswith(MIX)
    mix = Gram(widening, blocks(widening), embedding.width if is_wide else inner, is_across=is_wide)
    roots = table.root(), mix.root()
    largest = [float(np.linalg.norm(root[-1])) for root in roots]
    tolerance = table.noise(largest[0]) * largest[1] + largest[0] * mix.noise(largest[1])
    values = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).astype(np.float64)
    return values[: min(table.rows, inner, embedding.width)], tolerance, table.rows


def _check_sizes(embedding: EmbeddingTensors) -> None:
    name, columns = embedding.names[0], embedding.stored_columns
    elements = sum(table.elements for table in embedding.tables)
    sizes = {"columns": f"{columns:,}", "gigabytes": f"{16 * columns**2 / 1e9:.1f}"}
    refuse_if(columns > WIDEST, "wide-table", name=brief(name), **sizes, most=f"{WIDEST:,}")
    limits = [(name, elements, MOST_ELEMENTS, "that can be read in minutes")]
    held = "that a factor is held in memory with"
    limits += [(each.name, each.elements, WIDEST**2, held) for each in embedding.widening]
    for each, size, most, why in limits:
        shown = {"name": brief(each), "size": f"{size:,}", "most": f"{most:,}"}
        refuse_if(size > most, "large-table", **shown, why=why)


def _table_rows(embedding: EmbeddingTensors) -> Rows:
    rows = chain.from_iterable(blocks(table) for table in embedding.tables)
    return without_padding(rows) if embedding.is_table else rows


def without_padding(rows: Rows) -> Iterator[Matrix]:
    """The rows that are not zero, less the run of two or more equal rows at the end of all."""
    run, length = np.empty(0), 0  # equal rows that may be the last of all: one, and how many
    for block in rows:
        kept = block[block.any(axis=1)]
        if not len(kept):
            continue
        differing = np.flatnonzero((kept != kept[-1]).any(axis=1))
        start = int(differing[-1]) + 1 if len(differing) else 0
        if length and (start or not np.array_equal(run, kept[-1])):
            at_once = max(1, BLOCK_BYTES // run.nbytes)
            for first in range(0, length, at_once):  # not the end after all
                yield np.repeat(run[None], min(at_once, length - first), axis=0)
            length = 0
        yield kept[:start]
        run, length = kept[-1].copy(), length + len(kept) - start
    if length == 1:
        yield run[None]


def blocks(tensor: StoredTensor) -> Iterator[Matrix]:
    """Rows of the tensor as float64, all axes after the first made one; nothing else is read."""
    if tensor.dtype not in DIGITS:
        raise refusal("dtype", where=tensor.place, dtype=tensor.dtype, known=", ".join(DIGITS))
    rows = tensor.shape[0]
    columns, row_bytes = (n // max(1, rows) for n in (tensor.elements, tensor.end - tensor.start))
    at_once = max(1, BLOCK_BYTES // max(1, 8 * columns))
    with open_regular(tensor.file) as file:
        file.seek(tensor.start)
        for first in range(0, rows, at_once):
            size = min(at_once, rows - first) * row_bytes
            content = file.read(size)
            refuse_if(len(content) < size, "shorter-file", file=tensor.file)
            yield _as_float64(content, tensor).reshape(-1, columns)


def _as_float64(content: bytes, tensor: StoredTensor) -> Matrix:
    if tensor.dtype == "BF16":  # the upper half of a float32
        values = (np.frombuffer(content, "<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        values = np.frombuffer(content, {"F16": "<f2", "F32": "<f4", "F64": "<f8"}[tensor.dtype])
    refuse_if(not np.isfinite(values).all(), "no-number", where=tensor.place)
    return values.astype(np.float64)


class Gram:
    """W^T W of a matrix in blocks of rows, never held at once, and what its noise follows from.

    `is_across` makes it W W^T of a matrix with few rows, which is held whole.
    """

    def __init__(
        self, tensor: StoredTensor, rows: Rows, columns: int, *, is_across: bool = False
    ) -> None:
        if is_across:
            whole = np.concatenate([np.empty((0, columns)), *rows])
            rows, columns = [whole.T], len(whole)
        self.tensor, self.rows, self.columns = tensor, 0, columns
        self.upper = np.zeros((columns, columns))  # the lower triangle is not made
        self.longest_row, self.used_bits = 0.0, 0
        for block in rows:
            self._add(block)
        refuse_if(not self.upper.diagonal().any(), "only-zeros", where=tensor.place)
        refuse_if(not np.isfinite(self.upper).all(), "too-large", where=tensor.place)

    def _add(self, block: Matrix) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # told at the end
            for first in range(0, self.columns, PANEL):
                panel = block[:, first : first + PANEL]
                self.upper[first : first + PANEL, first:] += panel.T @ block[:, first:]
            squares = np.einsum("ij,ij->i", block, block)
        self.rows += len(block)
        self.longest_row = max(self.longest_row, math.sqrt(squares.max(initial=0.0)))
        bits = np.ascontiguousarray(block).view(np.uint64)
        self.used_bits |= int(np.bitwise_or.reduce(bits, axis=None))

    def singular_values(self) -> Matrix:
        """Of W, largest first, as many as it has columns."""
        squares = np.linalg.eigvalsh(self.upper, UPLO="U").astype(np.float64)
        values: Matrix = np.sqrt(squares[::-1].clip(0))
        return values

    def root(self) -> Matrix:
        """An R with R^T R = W^T W, rows of growing length: what a QR decomposition would give."""
        squares, vectors = np.linalg.eigh(self.upper, UPLO="U")
        root: Matrix = np.sqrt(squares.clip(0))[:, None] * vectors.T
        return root

    def noise(self, largest: float) -> float:
        """Singular values that rounding alone may have made; `largest` is that of W."""
        longest_column = math.sqrt(self.upper.diagonal().max())
        stored = 2.0 ** -(self._digits() + 1) * (self.longest_row + longest_column)
        step = LEAST_STEP[self.tensor.dtype] / 2
        stored += step * (math.sqrt(self.rows) + math.sqrt(self.columns))
        return max(stored, GRAM_FLOOR * largest)

    def _digits(self) -> int:
        """Those of the narrowest type that holds all numbers, of those not wider than the stored.

        Weights saved as float32 are often bfloat16 ones with zeros behind them; `used_bits` is the
        OR of the bits of all numbers as float64.
        """
        fraction = self.used_bits & ((1 << FRACTION_BITS) - 1)
        unused = (fraction & -fraction).bit_length() - 1 if fraction else FRACTION_BITS
        holding = [bits for bits in DIGITS.values() if bits >= FRACTION_BITS - unused]
        return min(DIGITS[self.tensor.dtype], *holding)
