"""Numbers that are certain: exact integers, and reals whose every printed digit is proved.

A quantity of the catalogue is a function of them under a name; what its inputs are called, and the
sizes that are accepted, stands here, too.

Reals come from the ball arithmetic of python-flint. A ball is an interval that certainly holds the
number. A formula is written once, on balls; `digits` evaluates it with more and more bits until all
numbers in the ball round to the same decimals.
"""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from archfit.spec.errors import refusal, refuse_if
from archfit.spec.files import packed_file
from archfit.theory import lazy_flint as flint

Function = TypeVar("Function", bound=Callable[..., object])
Ball: TypeAlias = "flint.arb"
Reader: TypeAlias = Callable[[Callable[[], Any]], object]  # of what a formula gives
Kind: TypeAlias = Literal["whole", "word", "plan", "flag", "numbers", "segments"]

EXACT_DIGITS = 10**6  # longer integers help nobody; their logarithms do
DIGITS = 20
_FIRST_BITS, _MOST_BITS = 128, 2**15
_FLINT_FROM = 2000  # factors; below, math.comb is as fast and needs no library


class Range(NamedTuple):
    """The whole numbers from `least` to `most` that a size may be."""

    least: int
    most: int


class Input(NamedTuple):
    """An input of the formulas: the papers' letter, the sizes allowed, and how it is read."""

    letter: str
    range: Range | None = None  # None: the formula says itself what it takes
    kind: Kind = "whole"


_ROWS = tomllib.loads(packed_file("inputs.toml").read_text(encoding="utf-8"))
_RANGES = {word: Range(*row.pop("range")) for word, row in _ROWS.items() if "range" in row}
INPUTS = {word: Input(range=_RANGES.get(word), **row) for word, row in _ROWS.items()}
WIDTH, SIZE = _RANGES["width"], _RANGES["size"]
LETTERS = {word: given.letter for word, given in INPUTS.items()}
ALIASES = {"d": "d_x", "da": "d_a", "vocab": "V"}  # letters, where no other input is called so


def check_sizes(**sizes: int) -> None:
    """Refuse a size that is no whole number or lies outside its range, naming the nearest."""
    for name, value in sizes.items():
        least, most = INPUTS[name].range or (value, value)
        if type(value) is not int:
            raise refusal("not-whole", value, word=name, example=f"from {least} to {most}")
        nearest, ends = min(max(value, least), most), {"least": least, "most": most}
        refuse_if(nearest != value, "out-of-range", value, word=name, nearest=nearest, **ends)


def check_heads_fit(heads: int, **width: int) -> None:
    """Refuse more heads than coordinates: the network would have heads of no dimension."""
    for name, size in width.items():
        refuse_if(heads > size, "more-heads-than-width", heads, word=name, size=size)


def catalogued(name: str, takes: type | None = None) -> Callable[[Function], Function]:
    """Give a function its name in the catalogue, where a table says what it rests on.

    Its inputs are its parameters, or the fields of the one value that it takes.
    """
    return _named(takes, {name: lambda found: found()})


def certified(name: str, takes: type | None = None) -> Callable[[Function], Function]:
    """The same of a function that gives a ball: the catalogue has proved digits."""
    return _named(takes, {name: digits})


def factored(name: str, logarithm: str = "") -> Callable[[Function], Function]:
    """Two quantities by one formula, NAME and NAME_log3 unless it is named."""
    exact: dict[str, Reader] = {name: lambda found: found().exact()}
    return _named(None, exact | {logarithm or f"{name}_log3": lambda found: digits(found().log3)})


def _named(takes: type | None, readers: Mapping[str, Reader]) -> Callable[[Function], Function]:
    def named(function: Function) -> Function:
        function.readers = readers  # type: ignore[attr-defined]  # read by the catalogue
        function.takes = takes  # type: ignore[attr-defined]  # the same
        return function

    return named


class TooManyDigitsError(ValueError):
    """An exact integer that nobody would read; its logarithm is there instead."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} has more than {EXACT_DIGITS:,} digits and is not written out; "
            "ask for the quantity whose name ends in _log3"
        )


class NotCertifiedError(ValueError):
    """A number whose leading digit could not be found: zero, or closer to it than we look."""


@catalogued("C")
def interaction_count(depth: int) -> int:
    """C(L) = (3^L - 1) / 2, the number of attention products in a network of this depth."""
    return int((3**depth - 1) // 2)


def symmetric_entries(d: int) -> int:
    """m(d) = d (d + 1) / 2, the free entries of a symmetric d x d matrix."""
    return d * (d + 1) // 2


@catalogued("multiset")
def multiset(n: int, k: int) -> int:
    """Ways to write k as an ordered sum of n nonnegative integers, binom(n + k - 1, k).

    1 for k = 0 (also when n = 0), 0 for k < 0, and 0 for n = 0 < k.
    """
    refuse_if(n < 0, "negative-terms", n)
    if k <= 0 or n == 0:
        return int(k == 0)
    n, k = n + k - 1, min(k, n - 1)
    what = f"binom({rough(n)}, {rough(k)})"
    log10_ratio = math.log10(n) - math.log10(k) if k else 0.0
    if k > 4 * EXACT_DIGITS or k * log10_ratio > EXACT_DIGITS:
        raise TooManyDigitsError(what)
    if k < _FLINT_FROM:
        value = math.comb(n, k)
    else:
        fmpz = flint.fmpz
        is_short, factors = n < 2**63, fmpz(n - k + 1)
        value = int(fmpz.bin_uiui(n, k) if is_short else factors.rising(k) // fmpz.fac_ui(fmpz(k)))
    if value.bit_length() * math.log10(2) > EXACT_DIGITS + 1:
        raise TooManyDigitsError(what)
    return value


def power(base: int, exponent: int) -> int:
    """base^exponent, refused where it has over a million digits."""
    if base > 1 and exponent > EXACT_DIGITS / math.log10(base):
        raise TooManyDigitsError(f"{rough(base)}^({rough(exponent)})")
    return int(base**exponent)


def rough(value: int) -> str:
    """A count as a person wants to read it in a sentence: from 10^15 on by its power of ten."""
    return str(value) if value < 10**15 else f"about 10^{math.log10(value):.0f}"


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
    raise NotCertifiedError(
        f"{count} digits cannot be certified with {_MOST_BITS} bits; the value is 0 or very near it"
    )


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


@certified("multiset_log3")
def multiset_log3(n: int, k: int) -> Ball:
    """Logarithm base 3 of multiset(n, k), for n >= 1 and k >= 0."""
    refuse_if(n < 1 or k < 0, "no-logarithm", n, k=k)
    return log3_from_ln(ln_multiset(n, k))


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """base^exponent for each of the powers, times multiset(n, k) for each of the multisets."""

    powers: Sequence[tuple[int | Fraction, int]] = ()
    multisets: Sequence[tuple[int, int]] = ()
    if_zero: ValueError | None = None  # why there is no logarithm where n = 0

    def exact(self) -> int | Fraction:
        """The product itself, refused where a factor has over a million digits."""
        bits = sum(base.numerator.bit_length() * times for base, times in self.powers)
        if bits * math.log10(2) > 2 * EXACT_DIGITS:  # each may be short, and there may be many
            raise TooManyDigitsError("the product")
        above = math.prod(multiset(n, k) for n, k in self.multisets)
        below = math.prod(power(base.denominator, times) for base, times in self.powers)
        above *= math.prod(power(base.numerator, times) for base, times in self.powers)
        value = Fraction(above, below)
        return value.numerator if value.denominator == 1 else value

    def __int__(self) -> int:
        return int(self.exact())

    def log3(self) -> Ball:
        """Its logarithm base 3."""
        if self.if_zero is not None and not all(n for n, _ in self.multisets):
            raise self.if_zero
        powers = (log3(base) * times for base, times in self.powers)
        multisets = (log3_from_ln(ln_multiset(n, k)) for n, k in self.multisets)
        return sum((*powers, *multisets), flint.arb(0))
