"""What an architecture is made of: attention, what a position reads, and the tables at both ends.

`TAG` is how a part is written in JSON. It decides the hash of a spec, so it never changes, whatever
the class is called.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from archfit.spec.errors import check_at_least, check_choice, check_types

BYTE_TOKENS = 256  # rows of a byte-level BPE that are no merges; few of them occur in most sources


@dataclass(frozen=True, kw_only=True, slots=True)
class Softmax:
    """Softmax attention in pre-norm blocks with a feed-forward layer; causal if the task is."""

    TAG: ClassVar[str] = "softmax"


@dataclass(frozen=True, kw_only=True, slots=True)
class Linear:
    """The analysed network: no softmax, no norm, no bias and no feed-forward layer.

    The theorems speak of the network without a mask; one that is trained to predict the next
    token needs the causal one.
    """

    TAG: ClassVar[str] = "linear"

    residual: bool
    causal: bool

    def __post_init__(self) -> None:
        check_types(self, "residual", "causal")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokens:
    """One token of a vocabulary at each position."""

    TAG: ClassVar[str] = "tokens"
    tokens_per_position: ClassVar[int] = 1

    vocab: int

    def __post_init__(self) -> None:
        check_at_least(2, vocab=self.vocab)

    @property
    def dimensions(self) -> int:
        """Rows of the embedding table, and the most that its rank can be."""
        return self.vocab

    @property
    def predictions(self) -> int:
        """Outputs of the head at one position."""
        return self.vocab


@dataclass(frozen=True, kw_only=True, slots=True)
class Patches:
    """`size` consecutive tokens at each position, embedded by one linear map.

    Each token enters as a one-hot vector, or as one number (a grey level). The head predicts
    all tokens of the next patch at once.
    """

    TAG: ClassVar[str] = "patches"

    vocab: int
    size: int
    encoding: Literal["one-hot", "scalar"]

    def __post_init__(self) -> None:
        check_at_least(2, vocab=self.vocab)
        check_at_least(1, size=self.size)
        check_choice(("one-hot", "scalar"), encoding=self.encoding)

    @property
    def tokens_per_position(self) -> int:
        """How many tokens of the source a position stands for."""
        return self.size

    @property
    def dimensions(self) -> int:
        """Rows of the embedding table, and the most that its rank can be."""
        return self.size * (self.vocab if self.encoding == "one-hot" else 1)

    @property
    def predictions(self) -> int:
        """Outputs of the head at one position."""
        return self.size * self.vocab


@dataclass(frozen=True, kw_only=True, slots=True)
class Full:
    """One matrix.

    `Full` and `Factorised` are different architectures even when they have the same rank: a
    factorised table has other parameters, another initialisation and another gradient.
    """

    TAG: ClassVar[str] = "full"
    inner_size: ClassVar[None] = None  # there are no two factors


@dataclass(frozen=True, kw_only=True, slots=True)
class Factorised:
    """The product of a (rows x inner) and an (inner x width) matrix.

    `inner` may exceed both: the papers' control runs need that.
    """

    TAG: ClassVar[str] = "factorised"

    inner: int

    def __post_init__(self) -> None:
        check_at_least(1, inner=self.inner)

    @property
    def inner_size(self) -> int | None:
        """Dimensions between two factors; None for one matrix."""
        return self.inner


@dataclass(frozen=True, kw_only=True, slots=True)
class Rotary:
    """Positions as angles by which queries and keys are turned (Su et al. 2021): no table."""

    TAG: ClassVar[str] = "rotary"
    inner_size: ClassVar[None] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Tied:
    """The embedding, used again for the predictions: no weights of its own."""

    TAG: ClassVar[str] = "tied"


Attention: TypeAlias = Softmax | Linear
Input: TypeAlias = Tokens | Patches
Table: TypeAlias = Full | Factorised
Positions: TypeAlias = Full | Factorised | Rotary
Head: TypeAlias = Full | Factorised | Tied


def table_of(inner: int | None) -> Table:
    """A table with this inner size, or a full one."""
    return Full() if inner is None else Factorised(inner=inner)


def bpe_vocab_for(rank: float) -> int:
    """Tokens of the BPE, a power of two, that has at least `rank` merges beside its bytes."""
    return 1 << math.ceil(math.log2(rank + BYTE_TOKENS))
