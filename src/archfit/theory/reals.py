"""Reals whose every printed digit is proved, by the ball arithmetic of python-flint.

A ball is an interval that certainly holds the number. A formula is written once, on balls; `digits`
evaluates it with more and more bits until all numbers in the ball round to the same decimals. What
counts integers alone takes `flint` from here, too, and loads the library where it first uses it.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from archfit.spec.errors import refusal

if TYPE_CHECKING:
    import flint as flint
else:

    class LateFlint:
        """python-flint, loaded when something of it is first used."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("flint"), name)

    flint = LateFlint()

Ball: TypeAlias = "flint.arb"

DIGITS = 20
_FIRST_BITS, _MOST_BITS = 128, 2**15


def digits(formula: Callable[[], Ball], count: int = DIGITS) -> Decimal:
    """The number that `formula` encloses, to at least `count` significant digits, each proved.

    A number exactly half-way between two decimals of that length cannot be enclosed on one
    side of it; such a number is given with more digits.
    """
    for places in range(count, count + 3):
        bits = _FIRST_BITS
        while bits <= _MOST_BITS:
            with flint.ctx.workprec(bits):
                rounded = _round_ball(formula(), places)
            if rounded is not None:
                return rounded
            bits *= 2
    raise refusal("not-certified", digits=count, bits=_MOST_BITS)


def _round_ball(ball: Ball, count: int) -> Decimal | None:
    """All numbers of `ball` rounded to `count` digits, if that gives one and the same decimal."""
    if ball.is_zero():
        return Decimal(0)
    if ball.contains(0) or not ball.is_finite():
        return None
    leading, _, exponent = ball.mid().mid_rad_10exp(5)
    magnitude = len(str(abs(int(leading)))) - 1 + int(exponent)
    shift = count - 1 - magnitude
    scaled = ball * flint.arb(10) ** shift if shift >= 0 else ball / flint.arb(10) ** -shift
    whole = (scaled + 0.5).floor().unique_fmpz()
    if whole is None:
        return None
    # From a tuple, because arithmetic on Decimals would round to the caller's context.
    return Decimal((int(whole < 0), tuple(map(int, str(abs(int(whole))))), -shift))


def ln(x: int | Fraction) -> Ball:
    """The natural logarithm of an exact positive number."""
    return flint.arb(flint.fmpq(x.numerator, x.denominator)).log()


def log3(x: int | Fraction) -> Ball:
    """The logarithm base 3 of an exact positive number, itself exact at the powers of 3."""
    ball = log3_from_ln(ln(x))
    nearest = ball.unique_fmpz()
    if nearest is not None and x == Fraction(3) ** int(nearest):
        return flint.arb(nearest)
    return ball


def log3_of_one_plus(x: Fraction) -> Ball:
    """log3(1 + x), without losing an x that is tiny."""
    return log3_from_ln(flint.arb(flint.fmpq(x.numerator, x.denominator)).log1p())


def log3_from_ln(natural: Ball) -> Ball:
    """A natural logarithm turned into base 3."""
    return natural / ln(3)


def ln_multiset(n: int, k: int) -> Ball:
    """ln multiset(n, k) = ln binom(a, b) for n >= 1, k >= 0, with a = n + k - 1, b = min(k, n - 1).

    By log-gamma; where a dwarfs b^2 that would cancel all digits (a may have a million), so
    there    ln binom(a, b) = b ln a - ln b! + sum_{i<b} ln(1 - i/a)
    with the sum in [-b^2/a, 0], because ln(1 - x) >= -2x for x <= 1/2.
    """
    a, b = n + k - 1, min(k, n - 1)
    if b == 0:
        return flint.arb(0)
    if a.bit_length() > 2 * b.bit_length() + flint.ctx.prec:
        half = flint.arb(b) ** 2 / a / 2
        return ln(a) * b - flint.arb(b + 1).lgamma() - half + flint.arb(0, half)
    with flint.ctx.extraprec(2 * a.bit_length()):
        whole, chosen, rest = (flint.arb(x + 1).lgamma() for x in (a, b, a - b))
        return whole - chosen - rest
