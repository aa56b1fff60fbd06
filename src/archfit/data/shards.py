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

from archfit.data.split import NgramSketch
from archfit.data.statistics import counts_of
from archfit.spec import lazy_numpy as np
from archfit.spec.files import ASIDE, flush_folder, partial_folder
from archfit.spec.lazy_numpy import NDArray

if TYPE_CHECKING:
    from archfit.data.streams import DocumentBlock
    from archfit.data.vocabulary import Vocabulary

SMALL_VOCAB = 1 << 16  # ids below this fit uint16
# A row of training tokens touches one block or two, so that little more is hashed than is read.
BLOCK_BYTES, DIGEST_BYTES = 1 << 14, 8


class FolderAppearedError(ValueError):
    """The target was made by somebody else meanwhile."""


class ShardWriter(contextlib.AbstractContextManager["ShardWriter"]):
    """The documents of one side as ids in a flat little-endian file, hashed, counted and sketched.

    Ids are uint16, as nanoGPT has them, or uint32 when the vocabulary needs it.
    """

    def __init__(self, path: Path, vocabulary: Vocabulary, one_in: int) -> None:
        self._file = open(path, "wb")  # noqa: SIM115  # closed by __exit__
        self._vocabulary, size = vocabulary, vocabulary.size
        self.sketch = NgramSketch(vocabulary.unit_bytes, one_in)
        self.dtype = np.dtype("uint16" if size <= SMALL_VOCAB else "uint32")
        self.counts: NDArray[np.int64] = np.zeros(size, np.int64)
        self.bytes = self.documents = 0
        self._digest, self._checksums = hashlib.sha256(), bytearray()
        self._rest = b""  # of the content, too short for a checksum

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, block: DocumentBlock) -> None:
        """Append the documents of a block, if there are any."""
        if not block.parts:
            return
        self.sketch.add(block)
        self.bytes += sum(map(len, block.parts))
        self.documents += sum(ends for _, ends in block.ends())
        ids = self._vocabulary.encode(block).astype(self.dtype.newbyteorder("<"), copy=False)
        self.counts += counts_of(ids, len(self.counts))
        content = ids.tobytes()
        self._file.write(content)
        self._digest.update(content)
        content = self._rest + content
        whole = len(content) - len(content) % BLOCK_BYTES
        self._checksums += checksums_of(content[:whole])
        self._rest = content[whole:]

    def finish(self) -> tuple[dict[str, Any], bytes]:
        """Put everything on disk; what data.json says of the side, and the checksums of blocks."""
        self._file.flush()
        os.fsync(self._file.fileno())
        described = {
            "tokens": int(self.counts.sum()),
            "bytes": self.bytes,
            "documents": self.documents,
            "sha256": self._digest.hexdigest(),
        }
        return described, bytes(self._checksums + checksums_of(self._rest))


def checksums_of(content: bytes) -> bytes:
    """The start of the SHA-256 of each block of a shard, the last of which may be shorter."""
    blocks = (content[at : at + BLOCK_BYTES] for at in range(0, len(content), BLOCK_BYTES))
    return b"".join(hashlib.sha256(block).digest()[:DIGEST_BYTES] for block in blocks)


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
            aside = folder.with_name(folder.name + ASIDE)  # so that no mixture is ever there
            if overwrite and target.exists():
                target.rename(aside)
            folder.rename(target)
            shutil.rmtree(aside, ignore_errors=True)
            flush_folder(target.parent)
    except OSError as problem:
        if problem.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            rule = f"{target.name} appeared while it was being prepared"
            way_out = "use --overwrite or choose another --out"
            raise FolderAppearedError(f"{rule}; {way_out}") from problem
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(full) from problem
        raise
    finally:
        for parent in made:
            with contextlib.suppress(OSError):  # not empty: the data set is there
                parent.rmdir()
