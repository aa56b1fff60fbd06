"""What a user can pay, and what that comes to in parameters."""

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, TypeAlias

from archfit.advise.speed import Speed
from archfit.spec.errors import InvalidValue, check_real
from archfit.spec.rates import CHINCHILLA_TOKENS, EPOCHS

LARGEST_BUDGET = 10**18  # parameters
FLOPS = 6  # a parameter and token, forward and backward; Kaplan et al. 2020
WEIGHT_BITS = (4, 8, 16, 32)


@dataclass(frozen=True, kw_only=True, slots=True)
class ParamsBudget:
    """A number of parameters to spend; a subclass says which ones count."""

    params: int
    name: ClassVar[str]  # as requests write it
    noun: ClassVar[str]

    def __post_init__(self) -> None:
        if self.params < 1:
            raise InvalidValue(self.name, self.params, "buys nothing", "use 100K or more")
        if self.params > LARGEST_BUDGET:
            raise ValueError(
                f"{self.name}={Decimal(self.params):.2e} is over 10^18, more than any law has "
                "seen; use less"
            )

    def __str__(self) -> str:
        return f"{self.params:,} {self.noun}"

    @property
    def option(self) -> str:
        """How it is written on the command line."""
        return f"--{self.name.replace('_', '-')} {self.params}"


class TotalParams(ParamsBudget):
    """All parameters: blocks, tables and head."""

    name, noun = "params", "parameters"


class BlockParams(ParamsBudget):
    """Weights of the blocks alone, 12 L d^2: what the papers count."""

    name, noun = "block_params", "block parameters"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingFlops:
    """Operations of a whole training run, C = 6 N D, of which D = `tokens_per_param` N tokens."""

    flops: int
    tokens_per_param: float

    def __post_init__(self) -> None:
        check_tokens_per_param(self.tokens_per_param)
        if self.flops < 1:
            raise InvalidValue("flops", self.flops, "buys nothing", "use 1e15 or more")
        most = FLOPS * self.tokens_per_param * LARGEST_BUDGET**2
        if self.flops > most:
            raise ValueError(
                f"flops={Decimal(self.flops):.2e} pays for over 10^18 parameters, more than any "
                f"law has seen; use {most:.3g} or less"
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


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightBytes:
    """Room for the weights."""

    bytes: int
    weight_bits: int

    def __post_init__(self) -> None:
        if self.weight_bits not in WEIGHT_BITS:
            way_out = f"use one of {', '.join(map(str, WEIGHT_BITS))}"
            raise InvalidValue("weight_bits", self.weight_bits, "is no size of a weight", way_out)
        if not 1 <= self.params <= LARGEST_BUDGET:
            way_out = "use 1MB or more, and less than an exabyte"
            raise InvalidValue("bytes", self.bytes, "holds no network", way_out)

    def __str__(self) -> str:
        return f"{self.bytes:,} bytes at {self.weight_bits} bits a weight"

    @property
    def option(self) -> str:
        """How it is written on the command line."""
        return f"--bytes {self.bytes} --weight-bits {self.weight_bits}"

    @property
    def params(self) -> int:
        """All parameters."""
        return self.bytes * 8 // self.weight_bits


@dataclass(frozen=True, kw_only=True, slots=True)
class DataTokens:
    """Tokens to train on, each read up to EPOCHS times."""

    tokens: int
    tokens_per_param: float

    def __post_init__(self) -> None:
        check_tokens_per_param(self.tokens_per_param)
        if not 1 <= self.params <= LARGEST_BUDGET:
            rule = f"at {self.tokens_per_param:g} a parameter feed no network"
            raise InvalidValue("tokens", self.tokens, rule, "use 100K or more")

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens, read {EPOCHS} times, {self.tokens_per_param:g} a parameter"

    @property
    def option(self) -> str:
        """How it is written on the command line."""
        return f"--tokens {self.tokens} --tokens-per-param {self.tokens_per_param:g}"

    @property
    def params(self) -> int:
        """That these tokens can feed."""
        return round(EPOCHS * self.tokens / self.tokens_per_param)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingMinutes:
    """Time on one machine: depth decides the size, since layers come one after another."""

    minutes: float
    speed: Speed
    gpu: str
    tokens_per_param: float

    def __post_init__(self) -> None:
        check_real(0.01, 1e9, minutes=self.minutes)
        check_tokens_per_param(self.tokens_per_param)

    def __str__(self) -> str:
        return f"{self.minutes:g} minute{'s' * (self.minutes != 1)} on {self.speed.machine}"

    @property
    def option(self) -> str:
        """How it is written on the command line."""
        gpu = f" --gpu {self.gpu}" if self.gpu else ""
        return f"--minutes {self.minutes:g}{gpu}"


Budget: TypeAlias = (
    TotalParams | BlockParams | TrainingFlops | WeightBytes | DataTokens | TrainingMinutes
)


def check_tokens_per_param(tokens: float) -> None:
    """Refuse a rule that no training run follows."""
    if not 0 < tokens <= 10**6:
        way_out = f"Chinchilla's rule is {CHINCHILLA_TOKENS}"
        raise InvalidValue("tokens_per_param", tokens, "is not in (0, 10^6]", way_out)
