"""How many dimensions an embedding uses: the singular values of the stored table.

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

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from archfit.audit.bounded_json import shown
from archfit.audit.gram import Gram
from archfit.audit.stored_rows import BLOCK_BYTES, blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from archfit.audit.embedding_tensor import EmbeddingTensors
    from archfit.audit.safetensors_header import StoredTensor

    Rows = Iterable[NDArray[np.float64]]

WIDEST = 8192  # columns; two float64 matrices of this size take 1.1 GB
MOST_ELEMENTS = 2**32  # of all tables; 262,144 tokens of width 8,192 have half as many
MOST_POINTS = 512  # of a chart


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
        kept = min(count, MOST_POINTS)
        chosen = sorted({round(at * (count - 1) / max(1, kept - 1)) for at in range(kept)})
        return tuple((index + 1, self.singular_values[index]) for index in chosen)


def measure_embedding(embedding: EmbeddingTensors) -> EmbeddingSpectrum:
    """The singular values of an embedding and what follows; reads its tensors and nothing else."""
    _check_sizes(embedding)
    values, tolerance, kept_rows = _product(embedding) if embedding.widening else _lone(embedding)
    return EmbeddingSpectrum(
        tensors=embedding.names,
        rows=embedding.rows,
        width=embedding.width,
        padded_rows=sum(table.shape[0] for table in embedding.tables) - kept_rows,
        numerical_rank=int((values > tolerance).sum()),
        tolerance=tolerance,
        stable_rank=float((values**2).sum() / values[0] ** 2),
        effective_rank=_effective_rank(values),
        singular_values=tuple(values.tolist()),
        bytes_read=sum(t.end - t.start for t in (*embedding.tables, *embedding.widening)),
    )


def without_padding(rows: Rows) -> Iterator[NDArray[np.float64]]:
    """The rows that are not zero, less the run of two or more equal rows at the end of all."""
    import numpy as np

    run, length = np.empty(0), 0  # equal rows that may be the last of all: one, and how many
    for block in rows:
        kept = block[block.any(axis=1)]
        if not len(kept):
            continue
        differing = np.flatnonzero((kept != kept[-1]).any(axis=1))
        start = int(differing[-1]) + 1 if len(differing) else 0
        if length and (start or not np.array_equal(run, kept[-1])):
            yield from _repeated(run, length)
            length = 0
        yield kept[:start]
        run, length = kept[-1].copy(), length + len(kept) - start
    if length == 1:
        yield run[None]


def _repeated(row: NDArray[np.float64], count: int) -> Iterator[NDArray[np.float64]]:
    import numpy as np

    at_once = max(1, BLOCK_BYTES // row.nbytes)
    for first in range(0, count, at_once):
        yield np.repeat(row[None], min(at_once, count - first), axis=0)


def _lone(embedding: EmbeddingTensors) -> tuple[NDArray[np.float64], float, int]:
    """Singular values, tolerance and rows kept of tables without a map that widens them.

    Several tables stand one below the other, since a position sums over rows of all of them.
    """
    table, columns = embedding.tables[0], _columns(embedding)
    if sum(table.shape[0] for table in embedding.tables) < columns:
        gram = _gram_across(table, _table_rows(embedding), columns)
        kept_rows = gram.columns
    else:
        gram = _gram(table, _table_rows(embedding), columns)
        kept_rows = gram.rows
    values = gram.singular_values()
    return values[: min(kept_rows, columns)], gram.noise(float(values[0])), kept_rows


def _product(embedding: EmbeddingTensors) -> tuple[NDArray[np.float64], float, int]:
    """The same of a factorised table T P: with T^T T = R^T R and P P^T = S^T S those of R S^T.

    Errors of both factors reach the product: |E_T| |P| + |T| |E_P|.
    """
    import numpy as np

    (widening,), inner = embedding.widening, embedding.inner
    table = _gram(embedding.tables[0], _table_rows(embedding), inner)
    if embedding.is_widening_stored_inner_first:
        mix = _gram_across(widening, blocks(widening), embedding.width)
    else:
        mix = _gram(widening, blocks(widening), inner)
    roots = table.root(), mix.root()
    largest = [float(np.linalg.norm(root[-1])) for root in roots]
    tolerance = table.noise(largest[0]) * largest[1] + largest[0] * mix.noise(largest[1])
    values = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).astype(np.float64)
    return values[: min(table.rows, inner, embedding.width)], tolerance, table.rows


def _table_rows(embedding: EmbeddingTensors) -> Rows:
    rows = chain.from_iterable(blocks(table) for table in embedding.tables)
    return without_padding(rows) if embedding.is_table else rows


def _gram(tensor: StoredTensor, rows: Rows, columns: int) -> Gram:
    """W^T W."""
    gram = Gram(tensor, columns)
    for block in rows:
        gram.add(block)
    return gram


def _gram_across(tensor: StoredTensor, rows: Rows, columns: int) -> Gram:
    """W W^T of a matrix with few rows, which is held whole."""
    import numpy as np

    whole = np.concatenate([np.empty((0, columns)), *rows])
    gram = Gram(tensor, len(whole))
    gram.add(whole.T)
    return gram


def _columns(embedding: EmbeddingTensors) -> int:
    """Of the tables as stored."""
    return embedding.tables[0].elements // embedding.tables[0].shape[0]


def _effective_rank(values: NDArray[np.float64]) -> float:
    import numpy as np

    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _check_sizes(embedding: EmbeddingTensors) -> None:
    name, columns = embedding.names[0], _columns(embedding)
    if columns > WIDEST:
        raise ValueError(
            f"{shown(name)} has {columns:,} columns, and the square matrices that measuring it "
            f"needs take {16 * columns**2 / 1e9:.1f} GB; the limit is {WIDEST:,} columns: audit it "
            "without --weights"
        )
    elements = sum(table.elements for table in embedding.tables)
    if elements > MOST_ELEMENTS:
        raise ValueError(
            f"{shown(name)} has {elements:,} elements, over the limit of {MOST_ELEMENTS:,} that "
            "can be read in minutes; audit it without --weights"
        )
    for tensor in embedding.widening:
        if tensor.elements > WIDEST**2:
            raise ValueError(
                f"{shown(tensor.name)} has {tensor.elements:,} elements, over the limit of "
                f"{WIDEST**2:,} that a factor is held in memory with; audit it without --weights"
            )
