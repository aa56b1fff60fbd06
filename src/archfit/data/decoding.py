"""The documents of a prepared side, a few megabytes at a time, however long they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archfit.data.blocks import Block
from archfit.data.bpe import Bpe
from archfit.data.vocabulary import Bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.vocabulary import Ids, Vocabulary

IDS_AT_ONCE = 1 << 18  # a 24-mer takes some hundred bytes to decode


def decoded_blocks(vocabulary: Vocabulary, ids: Ids) -> Iterator[tuple[Block, int]]:
    """The content of `ids`, cut between characters, and how many of them it took so far."""
    begins = _beginnings(vocabulary)
    start = 0
    while start < len(ids):
        end = _end(ids, start, vocabulary.separator, begins)
        piece = ids[start:end]
        complete = bool(piece[-1] == vocabulary.separator)
        yield Block(vocabulary.decode(piece), complete=complete), end
        start = end


def _end(ids: Ids, start: int, separator: int | None, begins: NDArray[np.bool_]) -> int:
    """Where to stop: after a document, or, in one that is very long, where it may be cut."""
    import numpy as np

    for low in range(start, len(ids) - IDS_AT_ONCE, IDS_AT_ONCE):
        window = ids[low : low + IDS_AT_ONCE]
        ended = np.flatnonzero(window == separator)
        if ended.size:
            return low + int(ended[-1]) + 1
        allowed = np.flatnonzero(begins[window])
        if allowed.size and low + allowed[-1] > start:
            return low + int(allowed[-1])
    return len(ids)


def _beginnings(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Which tokens begin with a whole character: the text before them can be decoded apart.

    A tokenizer that adds or drops blanks at the start of a text has no such token.
    """
    import numpy as np

    begins = np.ones(vocabulary.size, bool)
    if isinstance(vocabulary, Bytes):
        begins[0x80:0xC0] = False  # they go on with a character of UTF-8
    if isinstance(vocabulary, Bpe):
        known = (
            vocabulary.tokenizer.get_vocab(with_added_tokens=False) if _is_plain(vocabulary) else {}
        )
        begins[:] = False
        for token, number in known.items():
            begins[number] = token[:1].isascii() or token[:1] in "ĠĊ"  # a blank, a line end
    return begins


def _is_plain(bpe: Bpe) -> bool:
    """Whether decoding its tokens is nothing but joining their bytes."""
    return bpe.cuttable and type(bpe.tokenizer.decoder).__name__ == "ByteLevel"
