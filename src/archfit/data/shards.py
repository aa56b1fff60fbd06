"""The two sides of a data set: which documents are held out, how much of them leaks, their files.

A document is held out if the first 8 bytes of the SHA-256 of its content (of text without line ends
at its end), as a little-endian number, are a multiple of 20: one in twenty, the same ones in every
source and on every machine, and copies never on both sides. With fewer than 100 documents (or if
all fall on one side) the last 5 % of each is held out instead.

Leakage is how much of the held-out side also stands in the training side: shared 13-grams. An
n-gram is 13 words of text (case and blanks aside), or 13 units (letters, pixels, values, ids) of
other content, within one document. Of a large source only one n-gram in so many is looked at,
chosen by some of its bytes, so that equal n-grams are chosen on both sides. Runs of one single unit
(blank paper, a flat line) are not counted.

All writing goes to a hidden sibling of the target, which is flushed to disk and renamed at the end.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from archfit.data.statistics import counts_of
from archfit.data.streams import DocumentBlock
from archfit.data.vocabulary import WORDS, Vocabulary
from archfit.spec import lazy_numpy as np
from archfit.spec.errors import refusal
from archfit.spec.files import ASIDE, flush_folder, partial_folder
from archfit.spec.lazy_numpy import NDArray

HELDOUT_ONE_IN = 20
FEWEST_DOCUMENTS = 100
BY_HASH, BY_TAILS, BY_SOURCE = "content-hash", "tails", "heldout-source"
TRAIN, HELDOUT = 0, 1
N = 13  # units of an n-gram
NGRAMS_LOOKED_AT = 1 << 18  # about
MIXED_AT_ONCE = 1 << 14  # what fits a cache is twice as fast
_WORD_BYTES = 6
_FOLD = bytes(32 if code in b"\t\n\r\v\f" else code for code in bytes(range(256)).lower())
_MIX = 0x9E3779B97F4A7C15  # odd, so that the product's high bits depend on all of the key
SMALL_VOCAB = 1 << 16  # ids below this fit uint16
# A row of training tokens touches one block or two, so that little more is hashed than is read.
BLOCK_BYTES, DIGEST_BYTES = 1 << 14, 8


class Survey:
    """The documents of a source in order: bytes of content and the start of its SHA-256.

    Digests leave out the bytes of `ignored_at_end` that end a document.
    """

    def __init__(self, ignored_at_end: bytes = b"") -> None:
        self.ignored_at_end = ignored_at_end
        self.lengths, self.digests = array("q"), array("Q")

    def read(self, blocks: Iterable[DocumentBlock]) -> Iterator[bytes]:
        """Note the documents of `blocks`, all of which are read once; the content of each block."""
        length, whole = 0, hashlib.sha256()
        trimmed = whole  # without what may be the end of the document
        for block in blocks:
            yield b"".join(block.parts)
            for part, ends in block.ends():
                length += len(part)
                if kept := part.rstrip(self.ignored_at_end):
                    whole.update(kept)
                    trimmed = whole
                if len(kept) < len(part):  # counts once more follows
                    whole = whole.copy()
                    whole.update(part[len(kept) :])
                if ends and length:
                    self.lengths.append(length)
                    self.digests.append(int.from_bytes(trimmed.digest()[:8], "little"))
                if ends:
                    length, whole = 0, hashlib.sha256()
                    trimmed = whole


def split_places(*surveys: Survey) -> tuple[list[NDArray[np.int64]], dict[str, object]]:
    """For each source the bytes of its documents for training, and what data.json says of the rule.

    The rest of a document is held out; so is all of a second source, where there is one.
    """
    lengths, *heldout = (np.array(found.lengths, np.int64) for found in surveys)
    if heldout:
        places = [lengths, *(other * 0 for other in heldout)]
        return places, {"rule": BY_SOURCE, "heldout_share": None}
    share = 1 / HELDOUT_ONE_IN
    held = np.array(surveys[0].digests, np.uint64) % np.uint64(HELDOUT_ONE_IN) == 0
    if len(held) >= FEWEST_DOCUMENTS and 0 < held.sum() < len(held):
        return [np.where(held, 0, lengths)], {"rule": BY_HASH, "heldout_share": share}
    return [lengths - lengths // HELDOUT_ONE_IN], {"rule": BY_TAILS, "heldout_share": share}


class Divider:
    """Sends the documents of blocks to two sides, cut at places where a vocabulary allows it."""

    def __init__(self, places: NDArray[np.int64], cut: Callable[[bytes, int], int]) -> None:
        self._places, self._cut = places, cut
        self._number = 0  # of the document now passing
        self._rest = b""  # of an unfinished document: what follows its last good place to cut
        self._passed, self._beyond = 0, False  # bytes of it sent; whether its training part is over
        self._parts: tuple[list[bytes], list[bytes]] = [], []  # of each side, since the last block
        self._open = [False, False]  # whether a document has begun on a side and not ended

    def divide(self, block: DocumentBlock) -> tuple[DocumentBlock, DocumentBlock]:
        """What of the block is for training and what is held out; it may be nothing."""
        self._parts = [], []
        for part, ends in block.ends():
            self._send(self._rest + part, ends=ends)
        train, heldout = map(DocumentBlock, self._parts, [not begun for begun in self._open])
        return train, heldout

    def _send(self, part: bytes, *, ends: bool) -> None:
        good = len(part) if ends else self._cut(part, len(part))
        part, self._rest = part[:good], part[good:]
        if not self._passed + len(part):
            return  # an empty document is none
        if self._number == len(self._places):
            what = "the source has more documents than before: it"
            raise refusal("changed-while-read", what=what)
        room = int(self._places[self._number]) - self._passed
        self._passed += len(part)
        if not self._beyond and room < len(part):
            take = self._cut(part, room)
            self._push(TRAIN, part[:take], ends=True)
            part, self._beyond = part[take:], True
        self._push(HELDOUT if self._beyond else TRAIN, part, ends=ends)
        if ends:
            self._number += 1
            self._passed, self._beyond = 0, False

    def _push(self, side: int, part: bytes, *, ends: bool) -> None:
        """Add a part; an empty one only to end what has begun."""
        if part or (ends and self._open[side]):
            self._parts[side].append(part)
            self._open[side] = not ends


def sampling(content_bytes: int, unit: int) -> int:
    """One n-gram in this many (a power of two) is looked at."""
    ngrams = content_bytes // (unit or _WORD_BYTES)
    return 1 << max(0, (ngrams // NGRAMS_LOOKED_AT).bit_length())


class NgramSketch:
    """The hashes of the chosen n-grams of one side, and how often each occurs."""

    def __init__(self, unit: int, one_in: int) -> None:
        self.unit, self.one_in = unit, one_in
        self.hashes: Counter[int] = Counter()

    def add(self, block: DocumentBlock) -> None:
        """Note the chosen n-grams of the documents in a block."""
        glue = b"" if self.unit else b" "
        parts = block.parts if self.unit else [_folded(part) for part in block.parts]
        content = glue.join(parts)
        if self.unit:
            starts = np.arange(0, len(content), self.unit)
        else:
            blank = np.frombuffer(b" " + content, np.uint8) == 32
            starts = np.flatnonzero(blank[:-1] & ~blank[1:])
        first = self._chosen(content, starts)
        ends = np.append(starts[N:], len(content))[first]
        documents = np.cumsum([len(part) + len(glue) for part in parts])
        units = starts[first], starts[first + N - 1]  # the first and the last of each n-gram
        inside = np.equal(*(np.searchsorted(documents, unit, "right") for unit in units))
        spans = zip(starts[first][inside].tolist(), ends[inside].tolist(), strict=True)
        ngrams = [content[start:end] for start, end in spans]
        if self.unit:
            self.hashes.update(hash(ngram) for ngram in ngrams if ngram != ngram[: self.unit] * N)
        else:
            self.hashes.update(hash(ngram.rstrip()) for ngram in ngrams)

    def leakage(self, train: NgramSketch, shared_documents: int) -> dict[str, Any]:
        """How many n-grams of this side, held out, stand in one whose sketch was made alike.

        The share is None where no n-gram was looked at; shared documents are there as they are.
        """
        count = self.hashes.total()
        shared = sum(n for ngram, n in self.hashes.items() if ngram in train.hashes)
        return {
            "unit": "word" if self.unit == WORDS else "unit",
            "one_in": self.one_in,
            "heldout_ngrams": count,
            "shared_ngrams": shared,
            "shared_documents": shared_documents,
            "share": shared / count if count else None,
        }

    def _chosen(self, content: bytes, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places in `starts`, where units or words start, of the n-grams to look at.

        Eight bytes of an n-gram and eight others say whether it is one of the chosen. The first
        eight bytes of units say little (blank paper), so they have no say of their own; those of
        words pass one in 2^half, which spares the others the second look.
        """
        count = max(0, len(starts) - N + 1)
        if self.one_in == 1 or not count:
            return np.arange(count)
        bits = self.one_in.bit_length() - 1
        half = 0 if self.unit else bits // 2
        second = starts[:count] + (N * self.unit - 8) if self.unit else starts[1 : count + 1]
        padded = np.frombuffer(content + b"\0" * 8, np.uint8)[:8].view(np.uint64)
        eights = np.lib.stride_tricks.as_strided(padded, shape=(len(content) + 1,), strides=(1,))
        hits = []
        for low in range(0, count, MIXED_AT_ONCE):
            high = min(low + MIXED_AT_ONCE, count)
            mixed = (eights[starts[low:high]] + np.uint64(1)) * np.uint64(_MIX)
            passed = np.flatnonzero(mixed <= np.uint64((1 << 64 - half) - 1))
            mixed, others = mixed[passed], eights[second[low + passed]]
            mixed = (mixed ^ mixed >> np.uint64(29) ^ others) * np.uint64(_MIX)
            hits.append(low + passed[mixed <= np.uint64((1 << 64 - bits + half) - 1)])
        return np.concatenate(hits)


def _folded(text: bytes) -> bytes:
    """The text in lower case, with one blank wherever it has some."""
    text = text.translate(_FOLD)
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text


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
        view = memoryview(self._rest + content)
        whole = len(view) - len(view) % BLOCK_BYTES
        self._checksums += checksums_of(view[:whole])
        self._rest = bytes(view[whole:])

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


def checksums_of(content: bytes | memoryview) -> bytes:
    """The start of the SHA-256 of each block of a shard, the last of which may be shorter."""
    blocks = (content[at : at + BLOCK_BYTES] for at in range(0, len(content), BLOCK_BYTES))
    return b"".join(hashlib.sha256(block).digest()[:DIGEST_BYTES] for block in blocks)


@contextlib.contextmanager
def atomic_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A folder to write into that becomes `target` when all went well and vanishes otherwise."""
    try:
        target = target.resolve()
    except RuntimeError as problem:  # before Python 3.13 no OSError
        raise refusal("link-to-itself", target=repr(str(target))) from problem
    made = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial_folder(target) as folder:
            yield folder
            flush_folder(folder)
            aside = folder.with_name(folder.name + ASIDE)  # so that no mixture is ever there
            if overwrite and target.exists():
                target.rename(aside)
            _rename(folder, target)
            shutil.rmtree(aside, ignore_errors=True)
            flush_folder(target.parent)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(str(refusal("no-space", name=target.name))) from problem
        raise
    finally:
        for parent in made:
            with contextlib.suppress(OSError):  # not empty: the data set is there
                parent.rmdir()


def _rename(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError as problem:
        if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise FolderAppearedError(str(refusal("folder-appeared", name=target.name))) from problem
