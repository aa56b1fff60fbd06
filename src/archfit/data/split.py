"""Which documents are held out, decided by their content alone, and the streams divided by that.

A document is held out if the first 8 bytes of the SHA-256 of its content (of text without line ends
at its end), as a little-endian number, are a multiple of 20: one in twenty, the same ones in every
source and on every machine, and copies never on both sides. With fewer than 100 documents (or if
all fall on one side) the last 5 % of each is held out instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archfit.data.blocks import Block

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.survey import Survey

HELDOUT_ONE_IN = 20
FEWEST_DOCUMENTS = 100
BY_HASH, BY_TAILS, BY_SOURCE = "content-hash", "tails", "heldout-source"


def split_places(survey: Survey) -> tuple[NDArray[np.int64], str]:
    """For each document the bytes for training (the rest is held out), and the rule's name."""
    import numpy as np

    held = survey.digests % np.uint64(HELDOUT_ONE_IN) == 0
    if len(held) >= FEWEST_DOCUMENTS and 0 < held.sum() < len(held):
        return np.where(held, 0, survey.lengths), BY_HASH
    return survey.lengths - survey.lengths // HELDOUT_ONE_IN, BY_TAILS


class Side:
    """Parts of documents gathered for one side, and how much went there."""

    def __init__(self) -> None:
        self.bytes = self.documents = 0
        self._parts: list[bytes] = []
        self.open = False  # the last document has begun and not ended

    def push(self, part: bytes, *, ends: bool) -> None:
        """Add a part; an empty one only to end what has begun."""
        if part or (ends and self.open):
            self._parts.append(part)
            self.bytes += len(part)
            self.documents += not self.open
            self.open = not ends

    def take(self) -> Block:
        """What was gathered since the last time; it may be nothing."""
        block = Block(self._parts, complete=not self.open)
        self._parts = []
        return block


class Divider:
    """Sends the documents of blocks to two sides, cut at places where a vocabulary allows it."""

    def __init__(self, places: NDArray[np.int64], cut: Callable[[bytes, int], int]) -> None:
        self._places, self._cut = places, cut
        self._number = 0  # of the document now passing
        self._rest = b""  # of an unfinished document: what follows its last good place to cut
        self._passed, self._beyond = 0, False  # bytes of it sent; whether its training part is over
        self.train, self.heldout = Side(), Side()

    def divide(self, block: Block) -> tuple[Block, Block]:
        """What of the block is for training and what is held out."""
        last = len(block.parts) - 1
        for index, part in enumerate(block.parts):
            self._send(self._rest + part, ends=index < last or block.complete)
        return self.train.take(), self.heldout.take()

    def _send(self, part: bytes, *, ends: bool) -> None:
        good = len(part) if ends else self._cut(part, len(part))
        part, self._rest = part[:good], part[good:]
        if not self._passed + len(part):
            return  # an empty document is none
        if self._number == len(self._places):
            raise ValueError(
                "the source has more documents than before: it changed while it was read; "
                "run again when nothing writes to it any more"
            )
        room = int(self._places[self._number]) - self._passed
        self._passed += len(part)
        if not self._beyond and room < len(part):
            take = self._cut(part, room)
            self.train.push(part[:take], ends=True)
            part, self._beyond = part[take:], True
        (self.heldout if self._beyond else self.train).push(part, ends=ends)
        if ends:
            self._number += 1
            self._passed, self._beyond = 0, False
