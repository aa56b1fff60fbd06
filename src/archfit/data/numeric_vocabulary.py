"""Vocabularies of numbers: grey levels, colour palettes, bins of series, and ids as they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.data.vocabulary import described, encode_upper_bits, split_ids, with_separators

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.blocks import Block
    from archfit.data.vocabulary import Ids

KMEANS_ROUNDS = 25


@dataclass(frozen=True, kw_only=True, slots=True)
class Levels:
    """Grey levels: the upper bits of a pixel, and the separator."""

    levels: int
    size: int
    name: str = "levels"

    @property
    def separator(self) -> int:
        """The id after the lightest level."""
        return self.levels

    def cut(self, part: bytes, limit: int) -> int:  # noqa: ARG002  # the content does not matter
        """Between pixels."""
        return limit

    def encode(self, block: Block) -> Ids:
        """One id a pixel."""
        return encode_upper_bits(block, self.levels.bit_length() - 1, self.separator)

    def decode(self, ids: Ids) -> list[bytes]:
        """Pixels from 0 to 255; with 256 levels the same as before, else each level's own value."""
        import numpy as np

        pixels = (np.arange(self.levels) * 255 // (self.levels - 1)).astype(np.uint8)
        return [pixels[document].tobytes() for document in split_ids(ids, self.separator)]

    def as_json(self) -> str:
        """How many levels."""
        return described(vocabulary=self.name, levels=self.levels, size=self.size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Palette:
    """Colours, of which a pixel takes the nearest in RGB, and the separator."""

    colours: tuple[tuple[int, int, int], ...]
    size: int
    name: str = "palette"

    @property
    def separator(self) -> int:
        """The id after the last colour."""
        return len(self.colours)

    def cut(self, part: bytes, limit: int) -> int:  # noqa: ARG002  # the content does not matter
        """Between pixels."""
        return limit - limit % 3

    def encode(self, block: Block) -> Ids:
        """One id a pixel."""
        import numpy as np
        from scipy.spatial import KDTree

        pixels = np.frombuffer(b"".join(block.parts), np.uint8).reshape(-1, 3).astype(np.uint32)
        packed = pixels @ np.array([65536, 256, 1], np.uint32)
        different, places = np.unique(packed, return_inverse=True)
        _, nearest = KDTree(np.array(self.colours)).query(_unpacked(different))
        ids: Ids = nearest.astype(np.uint32)[places]
        return with_separators(ids, [len(part) // 3 for part in block.parts], block, self.separator)

    def decode(self, ids: Ids) -> list[bytes]:
        """RGB pixels."""
        import numpy as np

        colours = np.array(self.colours, np.uint8)
        return [colours[document].tobytes() for document in split_ids(ids, self.separator)]

    def as_json(self) -> str:
        """Its colours."""
        return described(vocabulary=self.name, colours=self.colours, size=self.size)


def _unpacked(colours: NDArray[np.uint32]) -> NDArray[np.uint32]:
    import numpy as np

    return np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1)


def colour_clusters(pixels: NDArray[np.uint8], clusters: int) -> tuple[tuple[int, int, int], ...]:
    """At most `clusters` colours by k-means in RGB, as Image GPT makes its palette.

    Lloyd's rounds from colours evenly spaced among the sorted different ones; no randomness, so
    equal pixels give an equal palette. Fewer colours than clusters: the colours themselves.
    """
    import numpy as np
    from scipy.spatial import KDTree

    colours, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    chosen = np.unique(np.linspace(0, len(colours) - 1, clusters).round().astype(np.int64))
    centres = colours[chosen].astype(np.float64)
    for _ in range(KMEANS_ROUNDS):
        _, nearest = KDTree(centres).query(colours)
        weight = np.bincount(nearest, counts, len(centres))
        sums = [np.bincount(nearest, counts * colours[:, c], len(centres)) for c in range(3)]
        used = weight > 0
        centres[used] = (np.stack(sums, axis=1)[used].T / weight[used]).T
    rounded = np.unique(centres.round().astype(np.int64), axis=0)
    return tuple((int(red), int(green), int(blue)) for red, green, blue in rounded)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bins:
    """Intervals between `edges` (values outside fall into the first or last), and the separator."""

    edges: tuple[float, ...]
    size: int
    name: str = "bins"

    @property
    def separator(self) -> int:
        """The id after the last bin."""
        return len(self.edges) - 1

    def cut(self, part: bytes, limit: int) -> int:  # noqa: ARG002  # the content does not matter
        """Between values."""
        return limit - limit % 8

    def encode(self, block: Block) -> Ids:
        """One id a value."""
        import numpy as np

        values = np.frombuffer(b"".join(block.parts), "<f8")
        ids = np.searchsorted(np.array(self.edges[1:-1]), values, side="right")
        return with_separators(ids, [len(part) // 8 for part in block.parts], block, self.separator)

    def decode(self, ids: Ids) -> list[bytes]:
        """The middle of each value's bin, as little-endian float64."""
        import numpy as np

        edges = np.array(self.edges)
        middles = edges[:-1] + (edges[1:] - edges[:-1]) / 2
        return [
            middles[document].astype("<f8").tobytes() for document in split_ids(ids, self.separator)
        ]

    def as_json(self) -> str:
        """Its edges."""
        return described(vocabulary=self.name, edges=self.edges, size=self.size)


def bin_edges(values: NDArray[np.float64], bins: int, binning: str) -> tuple[float, ...]:
    """Edges of at most `bins` bins: equally wide, or equally full as far as ties allow."""
    import numpy as np

    low, high = float(values.min()), float(values.max())
    if low == high:
        raise ValueError(f"every value of the series is {low}; there is nothing to predict")
    if not math.isfinite(high - low):
        raise ValueError(f"values from {low} to {high} span more than a float64 can; scale them")
    if binning == "uniform":
        edges = low + (high - low) * (np.arange(bins + 1) / bins)
    else:
        edges = np.quantile(values, np.arange(bins + 1) / bins)
    return tuple(float(edge) for edge in np.unique(edges))


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainIds:
    """Ids as they came, with the separator they came with, if any."""

    size: int
    separator: int | None
    name: str = "ids"

    def cut(self, part: bytes, limit: int) -> int:  # noqa: ARG002  # the content does not matter
        """Between ids."""
        return limit - limit % 4

    def encode(self, block: Block) -> Ids:
        """The ids themselves."""
        import numpy as np

        ids: Ids = np.frombuffer(b"".join(block.parts), "<u4")
        if self.separator is None:
            return ids
        return with_separators(ids, [len(part) // 4 for part in block.parts], block, self.separator)

    def decode(self, ids: Ids) -> list[bytes]:
        """The ids of each document, as little-endian uint32."""
        documents = [ids] if self.separator is None else split_ids(ids, self.separator)
        return [document.astype("<u4").tobytes() for document in documents]

    def as_json(self) -> str:
        """Size and separator."""
        return described(vocabulary=self.name, size=self.size, separator=self.separator)
