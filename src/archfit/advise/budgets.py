"""What a user can pay, and what that comes to in parameters; of time, by the speed of a machine.

    seconds a token = start + depth (a + b width) + operations / c

with all four not below 0, fitted to networks that were timed: those of resources/speeds.toml, or
those that a ladder has just trained on this machine.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from typing import ClassVar, TypeAlias

from archfit.advise.law import WEIGHTS
from archfit.spec import lazy_numpy as np
from archfit.spec.errors import InvalidValue, check_real
from archfit.spec.files import packed_file
from archfit.spec.rates import CHINCHILLA_TOKENS, EPOCHS
from archfit.spec.run import RunSpec

LARGEST_BUDGET = 10**18  # parameters
FLOPS = 6  # a parameter and token, forward and backward; Kaplan et al. 2020
WEIGHT_BITS = (4, 8, 16, 32)
SPEEDS = "speeds.toml"
# A network that was timed: its depth, width, vocabulary and context, and the seconds of a token.
Timed: TypeAlias = tuple[float, float, float, float, float]


class Payment:
    """A budget; a child says in what it is paid."""

    __slots__ = ()

    @property
    def option(self) -> str:
        """How it is written on the command line: each field is an option."""
        named = ((each.name, getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]  # a dataclass
        return " ".join(
            f"--{name.replace('_', '-')} {value:{'g' if isinstance(value, float) else 'd'}}"
            for name, value in named
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ParamsBudget(Payment):
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
class TrainingFlops(Payment):
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
    def params(self) -> float:
        """N = sqrt(C / (6 D/N)), all parameters."""
        return float((self.flops / (FLOPS * self.tokens_per_param)) ** 0.5)


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightBytes(Payment):
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
    def params(self) -> int:
        """All parameters."""
        return self.bytes * 8 // self.weight_bits


@dataclass(frozen=True, kw_only=True, slots=True)
class DataTokens(Payment):
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
    def params(self) -> int:
        """That these tokens can feed."""
        return round(EPOCHS * self.tokens / self.tokens_per_param)


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """Of one machine."""

    machine: str
    start: float  # seconds a token, whatever the network
    layer: float  # seconds a token and layer
    width: float  # of that, for each unit of width
    operation: float  # seconds a floating-point operation

    def seconds(self, *, depth: float, width: float, vocab: float, context: float) -> float:
        """For one token, forwards and backwards."""
        parts = self.start, self.layer, self.width, self.operation
        row = _row(depth, width, vocab, context)
        return sum(part * count for part, count in zip(parts, row, strict=True))

    def seconds_of(self, spec: RunSpec) -> float:
        """For the training of a run."""
        at = spec.architecture
        sizes = {"depth": at.depth, "width": at.width, "vocab": at.input.vocab}
        return spec.training_tokens * self.seconds(**sizes, context=at.context)


def _row(depth: float, width: float, vocab: float, context: float) -> tuple[float, ...]:
    operations = 6 * (WEIGHTS * depth * width**2 + vocab * width) + 6 * depth * width * context
    return 1.0, depth, depth * width, operations


def fitted_speed(machine: str, networks: Sequence[Timed]) -> Speed:
    """The speed that explains these times best, each by its share."""
    from scipy.optimize import nnls

    rows = np.array([_row(*sizes) for *sizes, _ in networks])
    shares = rows / np.array([seconds for *_, seconds in networks])[:, None]
    units = shares.max(axis=0)
    found = nnls(shares / units, np.ones(len(networks)))[0] / units
    start, layer, width, operation = map(float, found)
    return Speed(machine=machine, start=start, layer=layer, width=width, operation=operation)


@cache
def known_speed(gpu: str) -> Speed:
    """That of a machine which was measured."""
    table = tomllib.loads(packed_file(SPEEDS).read_text(encoding="utf-8"))
    if gpu.lower() not in table:
        way_out = f"use {', '.join(table)}; or archfit advise, which times the machine it runs on"
        raise InvalidValue("gpu", gpu, "was not timed", way_out)
    entry = table[gpu.lower()]
    timed = [(*sizes, 1 / tokens_a_second) for *sizes, tokens_a_second in entry["networks"]]
    return fitted_speed(entry["name"], timed)


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
