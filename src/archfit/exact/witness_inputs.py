"""What stands at each position of a witness's input, and how it becomes a vector.

Shape letters: B samples, D width, N positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from archfit.exact.residues import product, rank
from archfit.exact.witness_network import Matrix, Vector

if TYPE_CHECKING:
    from archfit.exact.residues import Residues


@dataclass(frozen=True, kw_only=True, slots=True)
class Vectors:
    """Continuous inputs: one vector a position, taken as it is."""

    samples: tuple[tuple[Vector, ...], ...]

    def embedded(self, prime: int) -> "Residues":
        """The columns of each sample, (B, D, N)."""
        import numpy as np

        return np.array(self.samples).transpose(0, 2, 1) % prime


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokens:
    """One token a position, whose column of the table M_V (width x vocab) is its vector."""

    samples: tuple[tuple[int, ...], ...]
    table: Matrix

    def embedded(self, prime: int) -> "Residues":
        """The columns of each sample, (B, D, N)."""
        import numpy as np

        columns: Residues = np.array(self.table)[:, np.array(self.samples)] % prime  # D, B, N
        return columns.transpose(1, 0, 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class Patches:
    """k raw vectors a position, summed through the taps W_1 .. W_k (width x channels) each."""

    samples: tuple[tuple[Vector, ...], ...]  # k N raw vectors
    taps: tuple[Matrix, ...]

    def embedded(self, prime: int) -> "Residues":
        """The columns of each sample, (B, D, N)."""
        import numpy as np

        raw = np.array(self.samples).transpose(0, 2, 1)
        size = len(self.taps)
        parts = [
            product(np.array(tap), raw[..., place::size], prime)
            for place, tap in enumerate(self.taps)
        ]
        total: Residues = np.sum(parts, axis=0) % prime
        return total


Inputs: TypeAlias = Vectors | Tokens | Patches


def embedding_rank(inputs: Inputs, prime: int) -> int | None:
    """The rank of the table or of the whole kernel; None where vectors come as they are."""
    import numpy as np

    if isinstance(inputs, Vectors):
        return None
    parts = [inputs.table] if isinstance(inputs, Tokens) else list(inputs.taps)
    return rank(np.concatenate([np.array(part) for part in parts], axis=1) % prime, prime)


def first_then_filler(chosen: Sequence[Vector], filler: Vector, length: int) -> Vectors:
    """Samples that hold one of the chosen vectors first and the filler at all other positions."""
    return Vectors(samples=tuple((vector, *[filler] * (length - 1)) for vector in chosen))
