"""Flat YAML that every reader takes alike."""

import json
from decimal import Decimal


def as_yaml(document: dict[str, object]) -> str:
    """One line a key; a YAML reader would take 1e-05 for a word, so numbers are written out."""
    return "".join(f"{key}: {_value(value)}\n" for key, value in document.items())


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}"
    return json.dumps(value)
