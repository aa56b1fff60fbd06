"""Other people's grids of depth and width, for back-tests: facts from public repositories (MIT)."""

import csv
import lzma
from dataclasses import dataclass
from functools import cache

from archfit.spec.files import packed_file

GRIDS = "atlas/public_grids.csv.xz"
COLUMNS = ("grid", "setting", "depth", "width", "params", "tokens", "loss")
SOURCES = {
    "gemstones": "McLeish et al. 2025, Gemstones; github.com/mcleish7/gemstone-scaling-laws (MIT)",
    "gadre": "Gadre et al. 2024, tuning grid; github.com/mlfoundations/scaling (MIT)",
    "archai": "LiteTransformerSearch 2022; github.com/microsoft/archai, neurips-lts (MIT)",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicNetwork:
    """A network that somebody trained."""

    grid: str  # a key of SOURCES
    setting: str  # what it may be compared within: a schedule, a tuning, a search
    depth: int
    width: int
    params: int
    tokens: int  # 0: not said
    loss: float  # held-out nats per token


@cache
def public_networks() -> tuple[PublicNetwork, ...]:
    """All of them."""
    text = lzma.decompress(packed_file(GRIDS).read_bytes()).decode()
    kinds = PublicNetwork.__annotations__
    return tuple(
        PublicNetwork(**{name: kinds[name](word) for name, word in row.items()})
        for row in csv.DictReader(text.splitlines())
    )
