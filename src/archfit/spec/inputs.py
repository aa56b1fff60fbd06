"""What one position of a network reads: a token, or a patch of tokens."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from archfit.spec.checks import check_at_least, check_choice


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokens:
    """One token of a vocabulary at each position."""

    vocab: int

    def __post_init__(self) -> None:
        check_at_least(2, vocab=self.vocab)

    @property
    def tokens_per_position(self) -> int:
        """How many tokens of the source a position stands for."""
        return 1

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


Input: TypeAlias = Tokens | Patches
