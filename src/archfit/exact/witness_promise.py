"""What a witness promises its network computes, evaluated without the network.

Shape letters: B samples, D width, N positions.
"""

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, TypeAlias

from archfit.exact.residues import power, product
from archfit.exact.witness_network import Matrix

if TYPE_CHECKING:
    from archfit.exact.residues import Residues


@dataclass(frozen=True, kw_only=True, slots=True)
class InnerProductPower:
    """constant <v_a, v_b>^exponent, at every coordinate and position of the output."""

    formula: str
    constant: int
    exponent: int
    vectors: Matrix  # v_a

    def matrix(self, prime: int) -> "Residues":
        """The promised values of all pairs (a, b), a row at a time."""
        import numpy as np

        rows = np.array(self.vectors)
        return np.stack([self._values(row, rows, prime) for row in rows])

    def outputs(self, pairs: "Residues", x_BDN: "Residues", prime: int) -> "Residues":
        """The promised output at the pairs (B, 2)."""
        import numpy as np

        rows = np.array(self.vectors)
        values = self._values(rows[pairs[:, 0]], rows[pairs[:, 1]], prime)
        return np.broadcast_to(values[:, None, None], x_BDN.shape)

    def _values(self, left: "Residues", right: "Residues", prime: int) -> "Residues":
        inner = (left * right % prime).sum(axis=-1) % prime
        return self.constant * power(inner, self.exponent, prime) % prime


@dataclass(frozen=True, kw_only=True, slots=True)
class MomentMonomial:
    """x_{i,h} prod_{a<=b} S_ab^E_ab at coordinate h < heads and position i, and 0 beyond."""

    formula: str
    exponents: tuple[tuple[int, ...], ...]  # of each head, for the pairs a <= b in order

    def outputs(self, pairs: "Residues", x_BDN: "Residues", prime: int) -> "Residues":  # noqa: ARG002  # all is in the inputs
        """The promised output for these inputs, from their second moments."""
        import numpy as np

        moments = product(x_BDN, x_BDN.transpose(0, 2, 1), prime)
        indices = list(combinations_with_replacement(range(len(self.exponents)), 2))
        outputs = np.zeros_like(x_BDN)
        for head, exponents in enumerate(self.exponents):
            outputs[:, head] = x_BDN[:, head]
            for (a, b), exponent in zip(indices, exponents, strict=True):
                factor = power(moments[:, a, b], exponent, prime)
                outputs[:, head] = outputs[:, head] * factor[:, None] % prime
        return outputs


Promise: TypeAlias = InnerProductPower | MomentMonomial
