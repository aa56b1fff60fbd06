"""The second reading: documents divided, encoded and written, with counts gathered on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.data.shards import ShardWriter
from archfit.data.split import Divider

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.leakage import NgramSketch
    from archfit.data.reading import Documents
    from archfit.data.split import Side
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
    readings: list[tuple[Documents, NDArray[np.int64]]],
    new_sketch: Callable[[], NgramSketch],
) -> tuple[WrittenSide, WrittenSide]:
    """Encode the documents of readings, divided at their split places, into two .bin files."""
    dividers = [(reading, Divider(places, vocabulary.cut)) for reading, places in readings]
    sketches = new_sketch(), new_sketch()
    with (
        ShardWriter(folder / "train.bin", vocabulary.size) as train,
        ShardWriter(folder / "heldout.bin", vocabulary.size) as heldout,
    ):
        for reading, divider in dividers:
            for block in reading.blocks("encoding"):
                for shard, sketch, part in zip(
                    (train, heldout), sketches, divider.divide(block), strict=True
                ):
                    if part.parts:
                        shard.write(vocabulary.encode(part))
                        sketch.add(part)
        return (
            _written(train, [divider.train for _, divider in dividers], sketches[0]),
            _written(heldout, [divider.heldout for _, divider in dividers], sketches[1]),
        )


def _written(shard: ShardWriter, sides: list[Side], sketch: NgramSketch) -> WrittenSide:
    return WrittenSide(
        tokens=shard.tokens,
        bytes=sum(side.bytes for side in sides),
        documents=sum(side.documents for side in sides),
        sha256=shard.finish(),
        counts=shard.counts,
        sketch=sketch,
    )
