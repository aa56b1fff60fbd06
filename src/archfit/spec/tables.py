"""Parts of an architecture under a former name; import them from `parts`."""

from archfit.spec.parts import Factorised, Full, Head, Table, Tied

__all__ = ["Factorised", "Full", "Head", "Table", "Tied"]
