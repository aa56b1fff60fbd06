"""Files that ship in the package, by their place under resources."""

import tomllib
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any


def packed_file(name: str) -> Traversable:
    """The file of this name."""
    return resources.files("archfit.resources").joinpath(name)


@cache
def packed_table(name: str) -> dict[str, Any]:
    """What a TOML file says, read once."""
    return tomllib.loads(packed_file(name).read_text(encoding="utf-8"))
