"""The tables of an architecture: where tokens, positions and predictions meet the width.

`Full` and `Factorised` are different architectures even when they have the same rank: a
factorised table has other parameters, another initialisation and another gradient.
"""

from dataclasses import dataclass
from typing import TypeAlias

from archfit.spec.checks import check_at_least


@dataclass(frozen=True, kw_only=True, slots=True)
class Full:
    """One matrix."""

    def inner_limit(self, largest: int) -> int:
        """The rank that the table itself allows, out of `largest`."""
        return largest

    def params(self, rows: int, width: int) -> int:
        """Its weights."""
        return rows * width


@dataclass(frozen=True, kw_only=True, slots=True)
class Factorised:
    """The product of a (rows x inner) and an (inner x width) matrix.

    `inner` may exceed both: the papers' control runs need that.
    """

    inner: int

    def __post_init__(self) -> None:
        check_at_least(1, inner=self.inner)

    def inner_limit(self, largest: int) -> int:
        """The rank that the table itself allows, out of `largest`."""
        return min(self.inner, largest)

    def params(self, rows: int, width: int) -> int:
        """Its weights."""
        return (rows + width) * self.inner


@dataclass(frozen=True, kw_only=True, slots=True)
class Tied:
    """The embedding, used again for the predictions: no weights of its own."""


Table: TypeAlias = Full | Factorised
Head: TypeAlias = Full | Factorised | Tied
