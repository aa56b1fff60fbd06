"""A plan as people ask for it: what they name, and defaults for the rest.

`archfit plan` takes these names as options, the explorer as parameters of its address.
"""

from dataclasses import dataclass

from archfit.plan.law import DEEPEST_TRAINED
from archfit.plan.question import (
    CHINCHILLA_TOKENS,
    BlockParams,
    Budget,
    DataFacts,
    Question,
    TotalParams,
    TrainingFlops,
    Vocabulary,
)
from archfit.spec.sizes import parse_size

GPT2_VOCAB = 50257
MOST_SIDES = 4  # time, height, width and channels


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedPlan:
    """What somebody asked for; None: it was not said."""

    params: int | None = None
    block_params: int | None = None
    flops: int | None = None
    vocab: int | None = None  # 50257, GPT-2's, unless there is a patch
    rank: int | None = None  # a full table
    patch: str = ""  # as in 16x16x3; empty: one token at a position
    context: int = 1024
    tied: bool = False
    max_depth: int = DEEPEST_TRAINED
    multiple_of: int | None = None  # what hardware likes
    tokens_per_param: float = float(CHINCHILLA_TOKENS)

    def question(self) -> Question:
        """The question, about data of which nothing but its vocabulary is known."""
        return self._question(self._vocabulary(), None)

    def question_about(self, vocabulary: Vocabulary, data: DataFacts) -> Question:
        """The question, about prepared data."""
        return self._question(vocabulary, data)

    def _question(self, vocabulary: Vocabulary | None, data: DataFacts | None) -> Question:
        return Question(
            budget=self._budget(),
            vocabulary=vocabulary,
            rank=self.rank,
            patch=_sides(self.patch) if self.patch else None,
            context=self.context,
            is_tied=self.tied,
            max_depth=self.max_depth,
            multiple_of=self.multiple_of,
            tokens_per_param=self.tokens_per_param,
            data=data,
        )

    def _budget(self) -> Budget:
        given = {
            "--params": self.params,
            "--block-params": self.block_params,
            "--flops": self.flops,
        }
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            found = f"{' and '.join(named)} are" if named else "no budget is"
            raise ValueError(
                f"{found} given; give one of --params 125M, --block-params 100M or --flops 1e19"
            )
        if self.params is not None:
            return TotalParams(params=self.params)
        if self.block_params is not None:
            return BlockParams(params=self.block_params)
        assert self.flops is not None
        return TrainingFlops(flops=self.flops, tokens_per_param=self.tokens_per_param)

    def _vocabulary(self) -> Vocabulary | None:
        if self.vocab is None and self.patch:
            return None
        size = GPT2_VOCAB if self.vocab is None else self.vocab
        return Vocabulary(size=size, used=size)


def _sides(text: str) -> tuple[int, ...]:
    try:
        sides = tuple(parse_size(side) for side in text.lower().split("x"))
    except ValueError as problem:
        raise ValueError(f"--patch {text!r} is not like 16x16x3 or 64 ({problem})") from problem
    if len(sides) > MOST_SIDES:
        raise ValueError(
            f"--patch {text!r} has {len(sides)} sides; use up to {MOST_SIDES}, as in 2x16x16x3"
        )
    return sides
