"""The documents of a prepared data set in another vocabulary, each on the side where it was."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from archfit.data.assemble import examine, write_data_set
from archfit.data.decoding import decoded_blocks
from archfit.data.description import work_hash
from archfit.data.prepare import found_or_made, silent
from archfit.data.prepared import SIDES, PreparedData
from archfit.data.tokenisations import AsGiven, given_tokenisation, settings_for
from archfit.data.unpack import InputFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from archfit.data.blocks import Block
    from archfit.data.reading import Report
    from archfit.data.settings import Settings
    from archfit.data.tokenisations import Tokenisation


def retokenised(
    data: PreparedData, out: Path, wanted: Tokenisation, *, report: Report = silent
) -> PreparedData:
    """The same documents as `wanted`, in the folder `out`, made now or found there finished.

    What the data has already is given back as it is, and `out` stays as it is.
    """
    if isinstance(wanted, AsGiven) or wanted == given_tokenisation(data):
        return data
    settings = settings_for(data, wanted)
    # The hash of the data names its content, so that finished work is known without decoding.
    work = work_hash(settings, [[InputFile("prepared", 0, data.data_hash)]])
    sides = [_Side(data=data, side=side, settings=settings, report=report) for side in SIDES]

    def write(folder: Path) -> None:
        data.verify()
        write_data_set(folder, examine(sides), _about(data, settings) | {"work_hash": work})

    return found_or_made(out, work=lambda: work, write=write, overwrite=False).data


def _about(data: PreparedData, settings: Settings) -> dict[str, object]:
    """What stays true of the documents, whatever their tokens."""
    kept = ("input", "heldout_input", "image", "documents", "split", "leakage")
    return {
        "kind": settings.kind,
        "settings": settings.as_json(),
        "made_from": data.data_hash,
    } | {key: data.description[key] for key in kept if key in data.description}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """The documents of one side, decoded as often as needed and never kept."""

    data: PreparedData
    side: str
    settings: Settings
    report: Report
    facts: dict[str, int] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The folder of the data set."""
        return str(self.data.folder)

    def blocks(self, stage: str) -> Iterator[Block]:
        """All documents once more; text is refused if it is not UTF-8."""
        ids = self.data.tokens(self.side)
        check = _Utf8(self.side) if self.settings.kind == "text" else None
        self.report(stage, 0, ids.nbytes)
        for block, done in decoded_blocks(self.data.vocabulary(), ids):
            if check is not None:
                check.add(block)
            self.report(stage, done * ids.itemsize, ids.nbytes)
            yield block


class _Utf8:
    """Refuses documents that are not UTF-8; they come in parts."""

    def __init__(self, side: str) -> None:
        self._side, self._number = side, 1
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def add(self, block: Block) -> None:
        """Look at the parts of a block."""
        last = len(block.parts) - 1
        for index, part in enumerate(block.parts):
            ends = index < last or block.complete
            try:
                self._decoder.decode(part, final=ends)
            except UnicodeDecodeError as problem:
                raise ValueError(
                    f"document {self._number} of the {self._side} side is not UTF-8 (byte "
                    f"0x{problem.object[problem.start]:02x}), and a BPE is learnt from text; "
                    "keep this data as bytes"
                ) from problem
            if ends:
                self._decoder.reset()
                self._number += 1
