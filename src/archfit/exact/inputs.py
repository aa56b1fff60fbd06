"""What the network reads, and how its positions are divided."""

import math
from dataclasses import dataclass
from typing import TypeAlias

from archfit.spec.checks import check_at_least

MOST_LISTED = 1 << 13  # fillings of a side that are all listed; of more, as many are drawn


@dataclass(frozen=True, kw_only=True, slots=True)
class Continuous:
    """Any vector of `rank` coordinates, mapped to the width by one matrix (also: a patch)."""

    rank: int

    def __post_init__(self) -> None:
        check_at_least(1, rank=self.rank)


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """One of `vocab` tokens, whose vectors span `rank` dimensions."""

    vocab: int
    rank: int

    def __post_init__(self) -> None:
        check_at_least(1, rank=self.rank)
        check_at_least(2, vocab=self.vocab)
        if self.rank > self.vocab:
            raise ValueError(
                f"rank={self.rank} is above vocab={self.vocab}; a table has no more rank than rows"
            )


Inputs: TypeAlias = Continuous | Vocabulary


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """The positions on the side of the output, and the others; both in order."""

    inside: tuple[int, ...]
    outside: tuple[int, ...]
    output: int

    def __post_init__(self) -> None:
        both = sorted(self.inside + self.outside)
        if both != list(range(len(both))) or not self.inside or not self.outside:
            raise ValueError(
                f"the sides {self.inside} and {self.outside} do not cover positions "
                f"0..{max(both, default=0)} each once, or one is empty; give other positions"
            )
        if self.output not in self.inside:
            raise ValueError(f"output position {self.output} is not on its own side {self.inside}")


def fillings(vocab: int, positions: int, has_own: bool, ordered: bool) -> int:
    """How many ways there are to fill a side with tokens."""
    if ordered:
        ways: int = vocab ** min(positions, 64)
        return ways
    free = positions - has_own
    return math.comb(vocab + free - 1, free) * (vocab if has_own else 1)
