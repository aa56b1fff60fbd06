"""What the tests of the data room share: a ledger, and a source made of files in a fresh folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from archfit.data.streams import Ledger, SourceFile

GENEROUS = 10**9
os.environ["HF_HUB_OFFLINE"] = "1"  # read when the datasets library is first imported


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(GENEROUS)


@pytest.fixture
def source_file(tmp_path: Path) -> Callable[[str, bytes], SourceFile]:
    """Writes a file and hands it over the way readers get it."""

    def write(name: str, content: bytes) -> SourceFile:
        path = tmp_path / name
        path.write_bytes(content)
        return SourceFile(path, name)

    return write
