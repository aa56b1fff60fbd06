"""Put the fingerprints of the atlas's data into the package:

    python docs/atlas/fingerprints.py FOLDER

FOLDER/NAME is prepared data of the kind NAME (or mnist-16 …), in the vocabulary it was given. A
fingerprint is what a data set is like, from its tokens alone: a few numbers that cost seconds.
Entropies of n-grams, how mutual information falls with distance, how often a token could be copied
from its context, and how far a general compressor gets. Whether any of them foretells which shape
fits is a question that docs/atlas.md answers.
"""

import json
import lzma
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archfit.data.prepared import open_prepared
from archfit.fit.foretelling import FINGERPRINTS

RESOURCES = Path(__file__).parents[2] / "src" / "archfit" / "resources"
DIGITS = 5
MOST_TOKENS = 1 << 22  # looked at: neighbouring ones, from the start
DISTANCES = tuple(2**power for power in range(9))  # 1 to 256
WINDOW, GRAM = 256, 8  # tokens before one, and those before it that a copy must share
MOST_PACKED = 1 << 21  # bytes


def main(folder: Path) -> None:
    """Read, count, write; by hash of the data."""
    found = {}
    for each in sorted(folder.glob("*/data.json")):
        data = open_prepared(each.parent)
        found[data.data_hash] = rounded(asdict(fingerprint(data.tokens("train"))))
        print(each.parent.name, found[data.data_hash], flush=True)
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    (RESOURCES / FINGERPRINTS).write_text(text, encoding="utf-8")


def rounded(value: object) -> object:
    """Fewer digits than chance has."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, kw_only=True, slots=True)
class Fingerprint:
    """Bits are per token."""

    vocab: int  # tokens that occur
    entropy: float  # of a token
    entropy_after_one: float  # given the token before it
    entropy_after_two: float
    information: tuple[float, ...]  # mutual, at distances 1, 2, 4 … 256; chance is taken off
    decay: float  # power of the distance with which information falls, from 1 to 256
    copied: float  # share of tokens that follow eight others as they did within the last 256
    packed: float  # bits, by LZMA


def fingerprint(tokens: NDArray[np.integer]) -> Fingerprint:
    """The fingerprint of the first four million tokens."""
    ids = np.unique(np.asarray(tokens[:MOST_TOKENS]), return_inverse=True)[1].astype(np.int64)
    vocab = int(ids.max()) + 1
    single = _entropy(ids)
    pair = _entropy(ids[:-1] * vocab + ids[1:])
    triple = _entropy((ids[:-2] * vocab + ids[1:-1]) * vocab + ids[2:])
    information = tuple(_information(ids, vocab, distance) for distance in DISTANCES)
    return Fingerprint(
        vocab=vocab,
        entropy=single,
        entropy_after_one=pair - single,
        entropy_after_two=triple - pair,
        information=information,
        decay=_decay(information),
        copied=_copied(ids, vocab),
        packed=_packed(ids),
    )


def _entropy(symbols: NDArray[np.int64]) -> float:
    """Of the frequencies, in bits, with the correction of Miller and Madow for few counts."""
    is_small = int(symbols.max()) < MOST_TOKENS  # then counting is faster than sorting
    counts = np.bincount(symbols) if is_small else np.unique(symbols, return_counts=True)[1]
    counts = counts[counts > 0]
    shares = counts / len(symbols)
    seen = -float((shares * np.log2(shares)).sum())
    return seen + (len(counts) - 1) / (2 * len(symbols) * math.log(2))


def _information(ids: NDArray[np.int64], vocab: int, distance: int) -> float:
    """How many bits a token tells of the one so far after it."""
    first, second = ids[:-distance], ids[distance:]
    return max(0.0, _entropy(first) + _entropy(second) - _entropy(first * vocab + second))


def _decay(information: tuple[float, ...]) -> float:
    """The slope of ln information over ln distance, of those that are there."""
    there = [(math.log(d), math.log(i)) for d, i in zip(DISTANCES, information, strict=True) if i]
    if len(there) < 2:
        return -math.inf
    away, left = np.array(there).T
    return float(np.polyfit(away, left, 1)[0])


def _copied(ids: NDArray[np.int64], vocab: int) -> float:
    """Share of tokens before which GRAM tokens stand that stood, with this one after them, within
    the last WINDOW tokens."""
    codes = np.zeros(len(ids) - GRAM, np.uint64)
    factor = np.uint64(2 * vocab + 1)
    for shift in range(GRAM + 1):  # wraps around: a hash of 64 bits
        codes = codes * factor + ids[shift : len(ids) - GRAM + shift].astype(np.uint64)
    order = np.argsort(codes, kind="stable")
    again = codes[order][1:] == codes[order][:-1]
    near = np.diff(order) <= WINDOW
    return float((again & near).sum() / len(codes))


def _packed(ids: NDArray[np.int64]) -> float:
    """Bits a token that LZMA needs."""
    width = np.uint8 if ids.max() < 256 else np.uint16
    some = ids[: MOST_PACKED // np.dtype(width).itemsize].astype(width)
    return 8 * len(lzma.compress(some.tobytes(), preset=6)) / len(some)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
