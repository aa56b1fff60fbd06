"""Documents that are read several times, and sources that must be the same each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from archfit.data.readers import read_blocks, source_bytes
from archfit.data.unpack import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from archfit.data.blocks import Block
    from archfit.data.settings import Settings
    from archfit.data.unpack import InputFile

    Report = Callable[[str, int, int], None]  # stage, bytes read, bytes in all (0: not known)


class Documents(Protocol):
    """Where the documents of a data set come from."""

    @property
    def source(self) -> str:
        """What people call it."""

    @property
    def settings(self) -> Settings:
        """How it is turned into tokens."""

    @property
    def facts(self) -> dict[str, int]:
        """Rows, columns and channels of images; known after the first block."""

    def blocks(self, stage: str) -> Iterator[Block]:
        """All documents once more."""


class Reading:
    """The documents of a source, as often as needed."""

    def __init__(self, source: str, settings: Settings, report: Report) -> None:
        self.source, self.settings, self.report = source, settings, report
        self.files: dict[str, InputFile] = {}  # known after the first complete reading
        self.facts: dict[str, int] = {}

    def blocks(self, stage: str) -> Iterator[Block]:
        """All documents once more; refused if a file is no longer what it was."""
        total, done = source_bytes(self.source, self.settings), 0

        def progress(count: int) -> None:
            nonlocal done
            done += count
            self.report(stage, done, total)

        ledger = Ledger(self.settings.max_bytes, progress)
        self.report(stage, 0, total)
        for block in read_blocks(self.source, self.settings, ledger):
            self.facts = ledger.facts
            yield block
        for name in ledger.files.keys() | self.files.keys():
            if self.files and self.files.get(name) != ledger.files.get(name):
                raise ValueError(
                    f"{name} changed while it was read; "
                    "run again when nothing writes to it any more"
                )
        self.files = ledger.files
