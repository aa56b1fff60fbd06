"""The checks under their former name, until every room imports them from `errors`."""

from archfit.spec.errors import (
    MOST,
    check_at_least,
    check_choice,
    check_real,
    check_text,
    check_type,
)

__all__ = ["MOST", "check_at_least", "check_choice", "check_real", "check_text", "check_type"]
