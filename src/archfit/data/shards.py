"""Token files in a folder that appears only when it is complete.

All writing goes to a hidden sibling of the target, which is flushed to disk and renamed at the end.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archfit.data.statistics import counts_of
from archfit.spec import lazy_numpy as np
from archfit.spec.files import ASIDE, flush_folder, partial_folder
from archfit.spec.lazy_numpy import NDArray

if TYPE_CHECKING:
    from archfit.data.split import SplitSide
    from archfit.data.vocabulary import Ids

SMALL_VOCAB = 1 << 16  # ids below this fit uint16
# A row of training tokens touches one block or two, so that little more is hashed than is read.
BLOCK_BYTES, DIGEST_BYTES = 1 << 14, 8


class FolderAppearedError(ValueError):
    """The target was made by somebody else meanwhile."""


class ShardWriter(contextlib.AbstractContextManager["ShardWriter"]):
    """One flat little-endian file of ids, hashed and counted while written.

    Ids are uint16, as nanoGPT has them, or uint32 when the vocabulary needs it.
    """

    def __init__(self, path: Path, vocab: int) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115  # closed by __exit__
        self.dtype = np.dtype("uint16" if vocab <= SMALL_VOCAB else "uint32")
        self._digest, self.tokens = hashlib.sha256(), 0
        self._block, self._room = hashlib.sha256(), BLOCK_BYTES  # left in the block under way
        self.checksums = bytearray()  # the start of the SHA-256 of each block
        self.counts: NDArray[np.int64] = np.zeros(vocab, np.int64)

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, ids: Ids) -> None:
        """Append `ids`."""
        stored = ids.astype(self.dtype.newbyteorder("<"), copy=False)
        content = stored.view("u1").data
        self._digest.update(content)
        self._note_blocks(content)
        while content:  # a write may take only a part
            content = content[self._file.write(content) :]
        self.tokens += len(ids)
        self.counts += counts_of(stored, len(self.counts))

    def _note_blocks(self, content: memoryview) -> None:
        while content:
            part = content[: self._room]
            self._block.update(part)
            self._room -= len(part)
            content = content[len(part) :]
            if not self._room:
                self._end_block()

    def _end_block(self) -> None:
        self.checksums += self._block.digest()[:DIGEST_BYTES]
        self._block, self._room = hashlib.sha256(), BLOCK_BYTES

    def finish(self, sides: list[SplitSide]) -> dict[str, Any]:
        """Put everything on disk; what data.json says of these sides of one or more sources."""
        if self._room < BLOCK_BYTES:
            self._end_block()
        os.fsync(self._file.fileno())
        return {
            "tokens": self.tokens,
            "bytes": sum(side.bytes for side in sides),
            "documents": sum(side.documents for side in sides),
            "sha256": self._digest.hexdigest(),
        }


@contextlib.contextmanager
def atomic_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A folder to write into that becomes `target` when all went well and vanishes otherwise."""
    try:
        target = target.resolve()
    except RuntimeError as problem:  # before Python 3.13 no OSError
        raise ValueError(f"{str(target)!r} is a link to itself; choose another --out") from problem
    made = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    full = f"no space left while writing {target.name}; free some or choose another --out"
    try:
        with partial_folder(target) as folder:
            yield folder
            flush_folder(folder)
            _move_into_place(folder, target, overwrite=overwrite)
            flush_folder(target.parent)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(full) from problem
        raise
    finally:
        for parent in made:
            with contextlib.suppress(OSError):  # not empty: the data set is there
                parent.rmdir()


def _move_into_place(folder: Path, target: Path, *, overwrite: bool) -> None:
    """Rename; an old data set is first moved aside, so that no mixture of both is ever there."""
    if overwrite and target.exists():
        aside = folder.with_name(folder.name + ASIDE)
        target.rename(aside)
        folder.rename(target)
        shutil.rmtree(aside, ignore_errors=True)
        return
    try:
        folder.rename(target)
    except OSError as problem:
        if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        rule = f"{target.name} appeared while it was being prepared"
        raise FolderAppearedError(f"{rule}; use --overwrite or choose another --out") from problem
