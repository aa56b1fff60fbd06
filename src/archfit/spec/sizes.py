"""Sizes as people write them: 768, 125M, 1.3B, 2e7; of files 16MB and 1.5 GiB."""

import math
import re
from fractions import Fraction

SUFFIXES = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
_SIZE = re.compile(
    r"([+-]?\d{1,400}(?:\.\d{1,400})?)(?:[eE]\+?(\d{1,3}))?([KMBGT]?)", re.IGNORECASE
)
_BYTES = re.compile(r"([-+.\de_]+)\s*(?:([KMGT])(I?))?B?", re.IGNORECASE)


def parse_size(text: str) -> int:
    """The whole number that `text` writes, as in 125M, 1.3B, 2e7 or 768."""
    match = _SIZE.fullmatch(text.strip().replace("_", ""))
    if match is None:
        written = "write a whole number such as 768, 125M, 1.3B or 2e7"
        raise ValueError(f"{text!r} is not a size; {written}")
    digits, exponent, suffix = match.groups()
    value = Fraction(digits) * 10 ** int(exponent or 0) * SUFFIXES[suffix.upper()]
    if value.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number; the nearest is {round(value)}")
    return int(value)


def written_size(number: int) -> str:
    """The number as people type it, and `parse_size` reads it: 10M, 1.5B, 1e18, 12345."""
    if number >= 10**12 and float(f"{number:g}") == number:
        return f"{number:g}".replace("e+", "e")
    for suffix, unit in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if unit <= number < 1000 * unit and number * 1000 % unit == 0:
            return f"{number / unit:.3f}".rstrip("0").rstrip(".") + suffix
    return str(number)


def short_size(size: float) -> str:
    """A number of parameters as people write it: 1.31M."""
    for unit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if size >= unit:
            digits = max(0, 2 - math.floor(math.log10(size / unit)))
            return f"{size / unit:.{digits}f}{letter}"
    return f"{size:.0f}"


def parse_bytes(text: str) -> int:
    """The number of bytes that `text` writes, as in 500k, 16MB or 1.5 GiB, rounded down."""
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write bytes as in 500k, 16MB or 1.5 GiB")
    digits, suffix, is_binary = match.groups(default="")
    size, power = parse_size(digits + suffix), "KMGT".find(suffix.upper()) + 1
    return size * 1024**power // 1000**power if is_binary else size
