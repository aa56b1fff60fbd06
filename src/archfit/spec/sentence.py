"""One-line refusals under their former name, until every room imports them from `errors`."""

from archfit.spec.errors import one_line

__all__ = ["one_line"]
