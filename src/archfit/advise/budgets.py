"""What a user can pay, and what that comes to in parameters; of time, by the speed of a machine.

    seconds a token = start + depth (a + b width) + operations / c

with all four not below 0, fitted to networks that were timed: those of resources/speeds.toml, or
those that a ladder has just trained on this machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import combinations
from typing import ClassVar, Literal, TypeAlias

from archfit.spec import lazy_numpy as np
from archfit.spec.errors import check_real, refusal, refuse_if
from archfit.spec.packed import packed_table
from archfit.spec.rates import CHINCHILLA_TOKENS, EPOCHS
from archfit.spec.run import RunSpec
from archfit.theory.law import WEIGHTS

LARGEST_BUDGET = 10**18  # parameters
FLOPS = 6  # a parameter and token, forward and backward; Kaplan et al. 2020
WEIGHT_BITS = (4, 8, 16, 32)
SPEEDS = "speeds.toml"
Kind = Literal["params", "block_params", "flops", "bytes", "tokens"]
WORDS: dict[Kind, str] = packed_table("advise_sentences.toml")["budgets"]
# A network that was timed: its depth, width, vocabulary and context, and the seconds of a token.
Timed: TypeAlias = tuple[float, float, float, float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """An amount of something that buys parameters: of the whole network, or of its blocks alone."""

    kind: Kind
    amount: int
    tokens_per_param: float = CHINCHILLA_TOKENS  # what training takes of operations and of tokens
    weight_bits: int = 16

    def __post_init__(self) -> None:
        check_tokens_per_param(self.tokens_per_param)
        kind, amount, each = self.kind, self.amount, self.tokens_per_param
        known = ", ".join(map(str, WEIGHT_BITS))
        refuse_if(self.weight_bits not in WEIGHT_BITS, "weight-bits", self.weight_bits, sizes=known)
        is_flops = kind == "flops"
        most = FLOPS * each * LARGEST_BUDGET**2
        is_paid = amount <= most if is_flops else self.params <= LARGEST_BUDGET
        is_network = is_flops or (is_paid and self.params >= 1)
        refuse_if(kind == "bytes" and not is_network, "no-network-held", amount)
        refuse_if(kind == "tokens" and not is_network, "no-network-fed", amount, each=f"{each:g}")
        least = "1e15" if is_flops else "100K"
        refuse_if(amount < 1, "buys-nothing", amount, kind=kind, least=least)
        if not is_paid:
            written = f"{Decimal(amount):.2e}"
            refuse_if(is_flops, "many-operations", amount=written, most=f"{most:.3g}")
            raise refusal("many-parameters", kind=kind, amount=written)

    def __str__(self) -> str:
        return WORDS[self.kind].format(self, epochs=EPOCHS)

    @property
    def option(self) -> str:
        """How it is written on the command line."""
        words = f"--{self.kind.replace('_', '-')} {self.amount}"
        if self.kind == "bytes":
            return f"{words} --weight-bits {self.weight_bits}"
        is_each = self.kind in ("flops", "tokens")
        return f"{words} --tokens-per-param {self.tokens_per_param:g}" if is_each else words

    @property
    def params(self) -> float:
        """What it buys; operations are C = 6 N D, of which D = `tokens_per_param` N tokens."""
        match self.kind:
            case "flops":
                return float((self.amount / (FLOPS * self.tokens_per_param)) ** 0.5)
            case "bytes":
                return self.amount * 8 // self.weight_bits
            case "tokens":
                return round(EPOCHS * self.amount / self.tokens_per_param)
        return self.amount


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
    """The speed that explains these times best, each by its share, and takes nothing back.

    Of all choices of causes the best whose least squares are not negative: loading scipy's nnls
    would take as long as a plan.
    """
    rows = np.array([_row(*sizes) for *sizes, _ in networks])
    shares = rows / np.array([seconds for *_, seconds in networks])[:, None]
    units = shares.max(axis=0)
    scaled, causes = shares / units, range(len(units))
    able: list[tuple[float, list[float]]] = []
    for kept in (kept for number in causes for kept in combinations(causes, number + 1)):
        found = np.zeros(len(units))
        found[[*kept]] = np.linalg.lstsq(scaled[:, kept], np.ones(len(networks)), rcond=None)[0]
        if found.min() >= 0:
            able.append((float(np.square(scaled @ found - 1).sum()), (found / units).tolist()))
    start, layer, width, operation = min(able)[1]
    return Speed(machine=machine, start=start, layer=layer, width=width, operation=operation)


@cache
def known_speed(gpu: str) -> Speed:
    """That of a machine which was measured."""
    table = packed_table(SPEEDS)
    refuse_if(gpu.lower() not in table, "not-timed", gpu, known=", ".join(table))
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
    kind: ClassVar = "minutes"

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


def check_tokens_per_param(tokens: float) -> None:
    """Refuse a rule that no training run follows."""
    is_followed = 0 < tokens <= 10**6
    refuse_if(not is_followed, "tokens-per-param", tokens, usual=CHINCHILLA_TOKENS)
