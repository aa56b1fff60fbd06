"""Numbers by their factors: one formula gives the exact value and the digits of its logarithm."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar

from archfit.theory.arithmetic import (
    EXACT_DIGITS,
    Certified,
    TooManyDigitsError,
    catalogued,
    certified,
    ln_multiset,
    log3,
    log3_from_ln,
    multiset,
    power,
)

if TYPE_CHECKING:
    from flint import arb

Inputs = ParamSpec("Inputs")
Exact = TypeVar("Exact", bound=int | Fraction)


class WithLogarithm(Protocol):
    """A number that knows its exact value and its logarithm."""

    def exact(self) -> int | Fraction:
        """The value."""

    def log3(self) -> "arb":
        """Its logarithm base 3."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """base^exponent for each of the powers, times multiset(n, k) for each of the multisets."""

    powers: Sequence[tuple[int | Fraction, int]] = ()
    multisets: Sequence[tuple[int, int]] = ()
    if_zero: ValueError | None = None  # why there is no logarithm where n = 0

    def exact(self) -> Fraction:
        """The product itself, refused where a factor has over a million digits."""
        bits = sum(base.numerator.bit_length() * times for base, times in self.powers)
        if bits * math.log10(2) > 2 * EXACT_DIGITS:  # each may be short, and there may be many
            raise TooManyDigitsError("the product")
        above = math.prod(multiset(n, k) for n, k in self.multisets)
        below = math.prod(power(base.denominator, times) for base, times in self.powers)
        above *= math.prod(power(base.numerator, times) for base, times in self.powers)
        return Fraction(above, below)

    def log3(self) -> "arb":
        """Its logarithm base 3."""
        from flint import arb

        if self.if_zero is not None and not all(n for n, _ in self.multisets):
            raise self.if_zero
        powers = sum((log3(base) * times for base, times in self.powers), arb(0))
        return powers + log3_from_ln(sum((ln_multiset(n, k) for n, k in self.multisets), arb(0)))


class Factored(Generic[Inputs, Exact]):
    """A quantity by one formula: call it for the exact value, its `log3` for certified digits."""

    log3: Certified[Inputs]

    def __init__(
        self, kind: Callable[[Any], Exact], formula: Callable[Inputs, WithLogarithm]
    ) -> None:
        functools.update_wrapper(self, formula)
        self._kind, self._formula = kind, formula

    def __call__(self, *args: Inputs.args, **kwargs: Inputs.kwargs) -> Exact:
        """The exact value."""
        return self._kind(self._formula(*args, **kwargs).exact())


def factored(
    name: str, kind: Callable[[Any], Exact], logarithm: str = ""
) -> Callable[[Callable[Inputs, WithLogarithm]], Factored[Inputs, Exact]]:
    """Two quantities of the catalogue, NAME and NAME_log3 unless it is named, by one formula."""

    def both(formula: Callable[Inputs, WithLogarithm]) -> Factored[Inputs, Exact]:
        @certified(logarithm or f"{name}_log3")
        @functools.wraps(formula)
        def log3_of(*args: Inputs.args, **kwargs: Inputs.kwargs) -> "arb":
            return formula(*args, **kwargs).log3()

        found = catalogued(name)(Factored(kind, formula))
        found.log3 = log3_of
        return found

    return both
