"""How long a network trains: a part for each layer, one for its width, and one for operations.

    seconds a token = start + depth (a + b width) + operations / c

with all four not below 0, fitted to networks that were timed: those of resources/speeds.toml, or
those that a ladder has just trained on this machine.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from archfit.spec import lazy_numpy as np
from archfit.spec.errors import InvalidValue
from archfit.spec.files import packed_file
from archfit.spec.run import RunSpec

SPEEDS = "speeds.toml"
WEIGHTS = 12  # a block of width d has 12 d^2 of them


@dataclass(frozen=True, kw_only=True, slots=True)
class TimedNetwork:
    """A network, and how long one token of it took."""

    depth: int
    width: int
    vocab: int
    context: int
    seconds: float


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


def fitted_speed(machine: str, networks: Iterable[TimedNetwork]) -> Speed:
    """The speed that explains these times best, each by its share."""
    from scipy.optimize import nnls

    timed = list(networks)
    rows = np.array([_row(n.depth, n.width, n.vocab, n.context) for n in timed])
    seconds = np.array([n.seconds for n in timed])
    shares = rows / seconds[:, None]
    units = shares.max(axis=0)
    found = nnls(shares / units, np.ones(len(timed)))[0] / units
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
    names = ("depth", "width", "vocab", "context")
    networks = [
        TimedNetwork(**dict(zip(names, row[:-1], strict=True)), seconds=1 / row[-1])
        for row in entry["networks"]
    ]
    return fitted_speed(entry["name"], networks)
