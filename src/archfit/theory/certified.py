"""Real numbers whose every printed digit is proved, by the ball arithmetic of python-flint.

A ball is an interval that certainly holds the number. A formula is written once, on balls;
`digits` evaluates it with more and more bits until all numbers in the ball round to the
same decimals.
"""

import functools
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Generic, ParamSpec

if TYPE_CHECKING:
    from flint import arb

Inputs = ParamSpec("Inputs")

DIGITS = 20
_FIRST_BITS, _MOST_BITS = 128, 2**15


class NotCertifiedError(ValueError):
    """A number whose leading digit could not be found: zero, or closer to it than we look."""


class Certified(Generic[Inputs]):
    """A real function with proved digits: call it for a Decimal, `ball` for the ball itself."""

    def __init__(self, formula: "Callable[Inputs, arb]") -> None:
        functools.update_wrapper(self, formula)
        self._formula = formula

    def __call__(self, *args: Inputs.args, **kwargs: Inputs.kwargs) -> Decimal:
        """The value, rounded correctly to 20 digits."""
        return digits(lambda: self._formula(*args, **kwargs))

    def ball(self, *args: Inputs.args, **kwargs: Inputs.kwargs) -> "arb":
        """A ball around the value, at the working precision in force."""
        return self._formula(*args, **kwargs)


def digits(formula: "Callable[[], arb]", count: int = DIGITS) -> Decimal:
    """The number that `formula` encloses, to at least `count` significant digits, each proved.

    A number exactly half-way between two decimals of that length cannot be enclosed on one
    side of it; such a number is given with more digits.
    """
    from flint import ctx

    for places in range(count, count + 3):
        bits = _FIRST_BITS
        while bits <= _MOST_BITS:
            with ctx.workprec(bits):
                rounded = _round_ball(formula(), places)
            if rounded is not None:
                return rounded
            bits *= 2
    raise NotCertifiedError(
        f"{count} digits cannot be certified with {_MOST_BITS} bits; the value is 0 or very near it"
    )


def _round_ball(ball: "arb", count: int) -> Decimal | None:
    """All numbers of `ball` rounded to `count` digits, if that gives one and the same decimal."""
    from flint import arb, fmpz

    if ball.is_zero():
        return Decimal(0)
    if ball.contains(0) or not ball.is_finite():
        return None
    leading, _, exponent = ball.mid().mid_rad_10exp(5)
    magnitude = len(str(abs(int(leading)))) - 1 + int(exponent)
    shift = count - 1 - magnitude
    scaled = ball * arb(10) ** fmpz(shift) if shift >= 0 else ball / arb(10) ** fmpz(-shift)
    whole = (scaled + arb(1) / 2).floor().unique_fmpz()
    if whole is None:
        return None
    # From a tuple, because arithmetic on Decimals would round to the caller's context.
    return Decimal((int(whole < 0), tuple(map(int, str(abs(int(whole))))), -shift))


def ln(x: int | Fraction) -> "arb":
    """The natural logarithm of an exact positive number."""
    from flint import arb, fmpq

    return arb(fmpq(x.numerator, x.denominator)).log()


def log3(x: int | Fraction) -> "arb":
    """The logarithm base 3 of an exact positive number, itself exact at the powers of 3."""
    from flint import arb

    ball = ln(x) / arb(3).log()
    nearest = ball.unique_fmpz()
    if nearest is not None and x == Fraction(3) ** int(nearest):
        return arb(nearest)
    return ball


def log3_of_one_plus(x: Fraction) -> "arb":
    """log3(1 + x), without losing an x that is tiny; exact where 1 + x is a power of 3."""
    from flint import arb, fmpq

    if x.denominator.bit_length() - x.numerator.bit_length() < 64:
        return log3(1 + x)
    return log3_from_ln(arb(fmpq(x.numerator, x.denominator)).log1p())


def log3_from_ln(natural: "arb") -> "arb":
    """A natural logarithm turned into base 3."""
    from flint import arb

    return natural / arb(3).log()


def ln_multiset(n: int, k: int) -> "arb":
    """ln binom(n + k - 1, k) for n >= 1, k >= 0."""
    return ln_binomial(n + k - 1, min(k, n - 1))


def ln_binomial(n: int, k: int) -> "arb":
    """ln binom(n, k) for 0 <= k <= n / 2.

    By log-gamma; where n dwarfs k^2 that would cancel all digits (n may have a million), so
    there    ln binom(n, k) = k ln n - ln k! + sum_{i<k} ln(1 - i/n)
    with the sum in [-k^2/n, 0], because ln(1 - x) >= -2x for x <= 1/2.
    """
    from flint import arb, ctx, fmpz

    if k == 0:
        return arb(0)
    if n.bit_length() > 2 * k.bit_length() + ctx.prec:
        half = arb(k) ** 2 / n / 2
        return ln(n) * k - arb(k + 1).lgamma() - half + arb(0, half)
    with ctx.extraprec(2 * n.bit_length()):
        whole, chosen, rest = (arb(fmpz(x + 1)).lgamma() for x in (n, k, n - k))
        return whole - chosen - rest


@Certified
def multiset_log3(n: int, k: int) -> "arb":
    """Logarithm base 3 of multiset(n, k), for n >= 1 and k >= 0.

    Source: Levine et al. 2020, appendix A.3.
    Status: proved (a count).
    """
    if n < 1 or k < 0:
        raise ValueError(f"n={n}, k={k} has no logarithm; use n >= 1 and k >= 0")
    return log3_from_ln(ln_multiset(n, k))
