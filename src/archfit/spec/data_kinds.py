"""The kinds of data, an entry of resources/data_kinds.toml each: what every room may know of them.

How a kind is recognised, read and given a vocabulary stands in `archfit.data.kinds`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from archfit.spec.codec import from_json
from archfit.spec.packed import packed_table
from archfit.spec.parts import BYTE_TOKENS

SAMPLE = "sample"  # the word for the text that ships
BYTE_VOCAB = BYTE_TOKENS + 1  # and the separator: also the smallest byte-level BPE
LARGEST_VOCAB = 1 << 24  # rows: ten times any tokenizer; counts of them fit memory
LARGEST_KMER = 24  # 2^24: beyond it even two letters make too many groups


@dataclass(frozen=True, kw_only=True, slots=True)
class DataKind:
    """One kind of data, as `archfit data prepare --kind` names it."""

    USUAL: ClassVar = {"code": [], "least_vocab": 2}

    suffixes: tuple[str, ...]  # of its files in a folder; none: every file
    options: tuple[str, ...]  # it understands besides vocab and max_bytes
    units: Literal["bytes", "letters", "values"]  # BPE merges bytes, k-mers group letters
    repairs: tuple[str, ...]  # of a vocabulary that is too small for a network, the best first
    code: tuple[str, ...]  # suffixes of source code, which is read in the same way
    least_vocab: int  # one token carries no information

    @property
    def reads_shards(self) -> bool:
        """Whether a folder of it would take the .bin files of a prepared data set for input."""
        return not self.suffixes or ".bin" in self.suffixes


DATA_KINDS = {
    name: from_json(DataKind, fields) for name, fields in packed_table("data_kinds.toml").items()
}


def kind_of_suffix(suffix: str) -> str:
    """The first kind whose files end so; bytes if none does."""
    kinds = DATA_KINDS.items()
    return next((name for name, kind in kinds if suffix in (*kind.suffixes, *kind.code)), "bytes")
