"""What a user asks: a budget, and what is known of the data."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from archfit.spec.checks import check_at_least

LARGEST_BUDGET = 10**18  # parameters
CHINCHILLA_TOKENS = 20  # a parameter; Hoffmann et al. 2022
FLOPS = 6  # a parameter and token, forward and backward; Kaplan et al. 2020


@dataclass(frozen=True, kw_only=True, slots=True)
class TotalParams:
    """All parameters: blocks, tables and head."""

    params: int

    def __post_init__(self) -> None:
        _check_budget("params", self.params)

    def __str__(self) -> str:
        return f"{self.params:,} parameters"

    @property
    def option(self) -> str:
        """How it is written on the command line."""
        return f"--params {self.params}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockParams:
    """Weights of the blocks alone, 12 L d^2: what the papers count."""

    params: int

    def __post_init__(self) -> None:
        _check_budget("block_params", self.params)

    def __str__(self) -> str:
        return f"{self.params:,} block parameters"

    @property
    def option(self) -> str:
        """How it is written on the command line."""
        return f"--block-params {self.params}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingFlops:
    """Operations of a whole training run, C = 6 N D, of which D = `tokens_per_param` N tokens."""

    flops: int
    tokens_per_param: float

    def __post_init__(self) -> None:
        check_tokens_per_param(self.tokens_per_param)
        if self.flops < 1:
            raise ValueError(f"flops={self.flops} buys nothing; use 1e15 or more")
        if self.flops > FLOPS * self.tokens_per_param * LARGEST_BUDGET**2:
            raise ValueError(
                f"flops={Decimal(self.flops):.2e} pays for over 10^18 parameters, more than any "
                f"law has seen; use {FLOPS * self.tokens_per_param * LARGEST_BUDGET**2:.3g} or less"
            )

    def __str__(self) -> str:
        return f"{float(self.flops):.3g} FLOPs at {self.tokens_per_param:g} tokens a parameter"

    @property
    def option(self) -> str:
        """How it is written on the command line."""
        return f"--flops {self.flops} --tokens-per-param {self.tokens_per_param:g}"

    @property
    def params(self) -> float:
        """N = sqrt(C / (6 D/N)), all parameters."""
        return float((self.flops / (FLOPS * self.tokens_per_param)) ** 0.5)


Budget: TypeAlias = TotalParams | BlockParams | TrainingFlops


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """Tokens of a table; `used` of them occur in the data, as far as that is known."""

    size: int
    used: int

    def __post_init__(self) -> None:
        check_at_least(2, vocab=self.size)
        check_at_least(1, used_vocab=self.used)
        if self.used > self.size:
            raise ValueError(
                f"used_vocab={self.used} is above vocab={self.size}; a table has a row for each"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFacts:
    """What a prepared data set says beyond its vocabulary."""

    folder: str
    source: str | None  # what it was made from, as `data prepare` takes it; None if not known
    knows_path: bool  # whether that is a path, or the name alone that data.json keeps
    kind: str
    tokens: int  # for training
    cooccurrence_rank: int  # dimensions that hold 99.9 % of the normalised co-occurrence


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """Which shape? Every field decides the answer."""

    budget: Budget
    vocabulary: Vocabulary | None  # None: patches without a table of tokens
    rank: int | None  # inner size of a factorised embedding; None: a full table
    patch: tuple[int, ...] | None  # sides and channels; None: one token at a position
    context: int
    is_tied: bool
    max_depth: int
    multiple_of: int | None  # of the width; None: what hardware likes at that width
    tokens_per_param: float
    data: DataFacts | None

    def __post_init__(self) -> None:
        check_at_least(1, context=self.context, max_depth=self.max_depth)
        check_tokens_per_param(self.tokens_per_param)
        if self.vocabulary is None and self.patch is None:
            raise ValueError("neither vocabulary nor patch is known; give --vocab or --patch")
        if self.rank is not None:
            check_at_least(1, rank=self.rank)
        if self.multiple_of is not None:
            check_at_least(1, multiple_of=self.multiple_of)
        for side in self.patch or ():
            check_at_least(1, patch=side)
        if self.patch is not None:
            check_at_least(1, patch=self.input_dimensions)
        if self.is_tied and self.patch is not None:
            raise ValueError("a head cannot be tied to an embedding of patches; leave --tied out")

    @property
    def input_dimensions(self) -> int:
        """Dimensions that enter the embedding: values of a patch, or tokens of the table."""
        if self.patch is not None:
            dimensions = 1
            for side in self.patch:
                dimensions *= side
            return dimensions
        assert self.vocabulary is not None
        return self.vocabulary.size

    @property
    def limit(self) -> "RankLimit":
        """The narrowest place that the input must pass."""
        limits = []
        if self.patch is not None:
            limits.append(RankLimit(kind="patch", limit=self.input_dimensions))
        elif self.vocabulary is not None:
            limits.append(RankLimit(kind="vocabulary", limit=self.vocabulary.used))
        if self.rank is not None:
            limits.append(RankLimit(kind="rank", limit=self.rank))
        return min(limits, key=lambda limit: limit.limit)

    def table_params(self, width: float) -> float:
        """Weights of embedding, positions and head at this width."""
        rows, outputs = self.input_dimensions, self.vocabulary.size if self.vocabulary else 0
        embedding = rows * width if self.rank is None else (rows + width) * self.rank
        head = 0 if self.is_tied else outputs * width
        return embedding + head + self.context * width


@dataclass(frozen=True, kw_only=True, slots=True)
class RankLimit:
    """No input has more dimensions than this, whatever the width."""

    kind: Literal["vocabulary", "rank", "patch"]
    limit: int


def check_tokens_per_param(tokens: float) -> None:
    """Refuse a rule that no training run follows."""
    if not 0 < tokens <= 10**6:
        raise ValueError(
            f"tokens_per_param={tokens:g} is not in (0, 10^6]; Chinchilla's rule is "
            f"{CHINCHILLA_TOKENS}"
        )


def _check_budget(name: str, params: int) -> None:
    if params < 1:
        raise ValueError(f"{name}={params} buys nothing; use 100K or more")
    if params > LARGEST_BUDGET:
        raise ValueError(
            f"{name}={Decimal(params):.2e} is over 10^18, more than any law has seen; use less"
        )
