"""Rows as a table of whatever library is installed."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

LIBRARIES = ("pandas", "polars")


def frame_of(rows: Sequence[Mapping[str, object]]) -> Any:
    """A DataFrame of pandas, or of polars where that is missing."""
    for library in LIBRARIES:
        if find_spec(library) is not None:
            return import_module(library).DataFrame(list(map(dict, rows)))
    raise ImportError(f"a table needs {' or '.join(LIBRARIES)}; pip install pandas")
