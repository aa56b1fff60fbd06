"""Existing token streams: flat .bin files as nanoGPT writes them, or .npy arrays."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from archfit.data.images import array_header
from archfit.data.sources import DataSettings, KindHandler, each_file
from archfit.data.streams import Blocks, DocumentBlock, Facts, Ledger, SourceFile
from archfit.data.vocabulary import Ids, Vocabulary
from archfit.spec import lazy_numpy as np
from archfit.spec.data_kinds import LARGEST_VOCAB
from archfit.spec.lazy_numpy import NDArray

ID_BYTES = 4  # ids travel as little-endian uint32, whatever the file has


def token_blocks(file: SourceFile, settings: DataSettings, ledger: Ledger) -> Blocks:
    """The ids of one file; documents end at the separator's id, or the file is one document."""
    chunks, promised = file.unpacked(ledger), None
    kind: np.dtype[Any] = np.dtype(settings.dtype).newbyteorder("<")
    if file.suffix == ".npy":
        first = io.BytesIO(next(chunks, b""))
        shape, kind = array_header(first, file.name)
        if len(shape) != 1 or kind.kind not in "ui":
            raise ValueError(f"{file.name} holds {kind} of shape {shape}; save one row of integers")
        chunks, promised = itertools.chain([first.read()], chunks), shape[0]
    for ids in _whole_ids(chunks, kind, promised, file.name):
        if settings.separator is None:
            yield DocumentBlock([ids.tobytes()], complete=False)
            continue
        ends = np.flatnonzero(ids == int(settings.separator))
        parts = [part.tobytes() for part in np.split(ids, ends)]
        yield DocumentBlock([parts[0], *(part[ID_BYTES:] for part in parts[1:])], complete=False)
    yield DocumentBlock([b""], complete=True)


def _whole_ids(
    chunks: Iterable[bytes], kind: np.dtype[Any], promised: int | None, name: str
) -> Iterator[NDArray[np.uint32]]:
    """The ids of a stream of numbers of one type; as many as its header promised, if it has one."""
    rest, found = b"", 0
    for chunk in chunks:
        data = rest + chunk
        cut = len(data) - len(data) % kind.itemsize
        ids, rest = np.frombuffer(data[:cut], kind), data[cut:]
        found += len(ids)
        if ids.size and not (ids.min() >= 0 and ids.max() < LARGEST_VOCAB):
            way_out = f"token ids are 0..{LARGEST_VOCAB - 1}, so check --dtype"
            raise ValueError(f"{name} holds ids from {ids.min()} to {ids.max()}; {way_out}")
        yield ids.astype("<u4")
    if promised not in (None, found):
        rule = f"holds {found} ids, and its header says {promised}"
        raise ValueError(f"{name} {rule}; write it again")
    if rest:
        rule = f"ends inside a token: its size is no multiple of {kind.itemsize} bytes"
        raise ValueError(f"{name} {rule}; check --dtype, or write it again")


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainIds(Vocabulary):
    """Ids as they came, with the separator they came with, if any."""

    name: ClassVar[str] = "ids"
    unit_bytes: ClassVar[int] = ID_BYTES
    size: int
    separator: int | None

    def encode(self, block: DocumentBlock) -> Ids:
        """The ids themselves, from little-endian uint32."""
        return self.with_ends(np.frombuffer(b"".join(block.parts), "<u4"), block)

    def content_of(self, ids: Ids) -> bytes:
        """The ids as little-endian uint32."""
        return ids.astype("<u4").tobytes()


def id_vocabulary(settings: DataSettings, contents: Iterable[bytes], _: Facts) -> PlainIds:
    """All ids up to the largest that occurs, that of the separator included."""
    separator = None if settings.separator is None else int(settings.separator)
    largest = -1 if separator is None else separator
    for content in contents:
        largest = max(largest, int(np.frombuffer(content, "<u4").max(initial=0)))
    return PlainIds(separator=separator, size=settings.rows(largest + 1, "ids"))


# Nothing looks like token ids: any numbers may be some.
TOKENS = KindHandler(lambda _: "", each_file(token_blocks), id_vocabulary, (PlainIds,))
