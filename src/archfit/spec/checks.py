"""Refusals that name the value, the rule and the nearest value that works."""

import unicodedata
from collections.abc import Sequence
from types import UnionType

MOST = 10**12  # no size of any network; beyond it somebody mistyped


def check_at_least(least: int, **sizes: int) -> None:
    """Refuse a size that is no whole number from `least` to 10^12."""
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{name}={value!r} is not a whole number; use {least} or more")
        if value < least:
            raise ValueError(f"{name}={value} is below {least}; use {least} or more")
        if value > MOST:
            raise ValueError(
                f"{name}={value} is over 10^12, more than any network; use 10^12 or less"
            )


def check_real(least: float, most: float, **numbers: float) -> None:
    """Refuse a number that is not finite or outside [least, most]."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name}={value!r} is not a number; use {least:g} to {most:g}")
        if not least <= value <= most:  # NaN is in no range
            nearest = most if value > most else least
            raise ValueError(
                f"{name}={value!s:.40} is not in {least:g}..{most:g}; the nearest is {nearest:g}"
            )


def check_choice(choices: Sequence[str], **words: str) -> None:
    """Refuse a word that is not one of the choices."""
    for name, word in words.items():
        if word not in choices:
            raise ValueError(f"{name}={word!r} is unknown; use one of {', '.join(choices)}")


def check_text(**texts: str) -> None:
    """Refuse a text that would steer a terminal, or that UTF-8 cannot write."""
    for name, text in texts.items():
        if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
            raise ValueError(
                f"{name}={text!a:.80} has a control character or is not UTF-8; use plain letters"
            )


def check_type(wanted: type | UnionType, **values: object) -> None:
    """Refuse a value of another type, which a caller without a type checker may pass."""
    for name, value in values.items():
        if not isinstance(value, wanted):
            words = str(getattr(wanted, "__name__", wanted)).replace("archfit.spec.", "")
            raise ValueError(f"{name}={value!r:.60} is no {words}; make one and give that")
