"""Files that ship in the package, by their place under resources."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

RESOURCES = Path(__file__).parents[1] / "resources"


def packed_file(name: str) -> Path:
    """The file of this name."""
    return RESOURCES / name


@cache
def packed_table(name: str) -> dict[str, Any]:
    """What a TOML file says, read once."""
    return tomllib.loads(packed_file(name).read_text(encoding="utf-8"))
