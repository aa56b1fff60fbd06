"""The second reading: documents divided, encoded and written, with counts gathered on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.data.prepared import SIDES
from archfit.data.shards import ShardWriter
from archfit.data.split import Divider

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.leakage import NgramSketch
    from archfit.data.reading import Reading
    from archfit.data.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenSide:
    """What was written for one side: counts, the file's hash, token frequencies and n-grams."""

    tokens: int
    bytes: int
    documents: int
    sha256: str
    counts: NDArray[np.int64]
    sketch: NgramSketch


def write_sides(
    folder: Path,
    vocabulary: Vocabulary,
    readings: list[tuple[Reading, NDArray[np.int64]]],
    new_sketch: Callable[[], NgramSketch],
) -> tuple[WrittenSide, WrittenSide]:
    """Encode the documents of readings, divided at their split places, into two .bin files."""
    shards = [ShardWriter(folder / f"{side}.bin", vocabulary.size) for side in SIDES]
    sketches = [new_sketch() for _ in SIDES]
    sizes = [[0, 0] for _ in SIDES]  # bytes, documents
    for reading, places in readings:
        divider = Divider(places, vocabulary.cut)
        for block in reading.blocks("encoding"):
            for index, part in enumerate(divider.divide(block)):
                if part.parts:
                    shards[index].write(vocabulary.encode(part))
                    sketches[index].add(part)
        for size, side in zip(sizes, (divider.train, divider.heldout), strict=True):
            size[0] += side.bytes
            size[1] += side.documents
    train, heldout = (
        WrittenSide(
            tokens=shard.tokens,
            bytes=size[0],
            documents=size[1],
            sha256=shard.close(),
            counts=shard.counts,
            sketch=sketch,
        )
        for shard, sketch, size in zip(shards, sketches, sizes, strict=True)
    )
    return train, heldout
