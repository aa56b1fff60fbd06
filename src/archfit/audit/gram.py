"""The Gram matrix of a tall matrix that is never in memory at once, and its rounding noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from archfit.audit.bounded_json import shown
from archfit.audit.stored_rows import rounding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from archfit.audit.safetensors_header import StoredTensor

GRAM_FLOOR = 2e-6  # times the largest singular value: below it the arithmetic is noise
PANEL = 512  # columns of the Gram matrix made at once


class Gram:
    """W^T W of the blocks added so far, with what their rounding noise follows from."""

    def __init__(self, tensor: StoredTensor, columns: int) -> None:
        import numpy as np

        self.tensor, self.rows, self.columns = tensor, 0, columns
        self.upper = np.zeros((columns, columns))  # the lower triangle is not made
        self.longest_row, self.used_bits = 0.0, 0

    def add(self, block: NDArray[np.float64]) -> None:
        """Add rows, in place."""
        import numpy as np

        with np.errstate(over="ignore", invalid="ignore"):  # told at the end
            for first in range(0, self.columns, PANEL):
                panel = block[:, first : first + PANEL]
                self.upper[first : first + PANEL, first:] += panel.T @ block[:, first:]
            squares = np.einsum("ij,ij->i", block, block)
        self.rows += len(block)
        self.longest_row = max(self.longest_row, math.sqrt(squares.max(initial=0.0)))
        bits = np.ascontiguousarray(block).view(np.uint64)
        self.used_bits |= int(np.bitwise_or.reduce(bits, axis=None))

    def singular_values(self) -> NDArray[np.float64]:
        """Of W, largest first, as many as it has columns."""
        import numpy as np

        self._check()
        squares = np.linalg.eigvalsh(self.upper, UPLO="U").astype(np.float64)
        values: NDArray[np.float64] = np.sqrt(squares[::-1].clip(0))
        return values

    def root(self) -> NDArray[np.float64]:
        """An R with R^T R = W^T W, rows of growing length: what a QR decomposition would give."""
        import numpy as np

        self._check()
        squares, vectors = np.linalg.eigh(self.upper, UPLO="U")
        root: NDArray[np.float64] = np.sqrt(squares.clip(0))[:, None] * vectors.T
        return root

    def noise(self, largest: float) -> float:
        """Singular values that rounding alone may have made; `largest` is that of W."""
        step = rounding(self.tensor, self.used_bits)
        longest_column = math.sqrt(self.upper.diagonal().max())
        stored = step.relative * (self.longest_row + longest_column)
        stored += step.absolute * (math.sqrt(self.rows) + math.sqrt(self.columns))
        return max(stored, GRAM_FLOOR * largest)

    def _check(self) -> None:
        import numpy as np

        where = f"{shown(self.tensor.name)} in {self.tensor.file}"
        if not self.upper.diagonal().any():
            raise ValueError(
                f"{where} holds nothing but zeros, equal rows or numbers too small to square, so "
                "it has no spectrum; give a trained checkpoint"
            )
        if not np.isfinite(self.upper).all():
            raise ValueError(
                f"{where} holds numbers too large to square; give a checkpoint from before the "
                "training failed"
            )
