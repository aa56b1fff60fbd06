"""One error for a bad value: which field, what it was, the rule it breaks and the way out.

Most refusals have a name, under which their sentences stand in resources/refusals.toml.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from numbers import Number
from string import Template
from typing import Any, get_type_hints

from archfit.spec.packed import packed_table

MOST = 10**12  # no size of any network; beyond it somebody mistyped
REFUSALS = "refusals.toml"  # the field, rule and way out of each, or what it says
LONGEST_LINE = 500  # characters of a refusal, however long the input that it quotes
_FIELD_IN_BRACES = re.compile(r"\{([a-z_0-9]+)\}")


class InvalidValue(ValueError):
    """A value that breaks a rule. It reads "field=value rule; way out".

    Rule and way out write the names of fields in braces ("{heads}=3"), so that `named` can say the
    same sentence in the papers' letters, the keys of a sweep file or the options of a command.
    """

    def __init__(self, field: str, value: object, rule: str, way_out: str) -> None:
        super().__init__(field, value, rule, way_out)  # all of them, so that workers can send it
        self.field, self.value, self.rule, self.way_out = field, value, rule, way_out
        self._names: Mapping[str, str] = {}

    def named(self, names: Mapping[str, str]) -> "InvalidValue":
        """The same refusal with fields called by other names; one that has a name keeps it."""
        renamed = InvalidValue(self.field, self.value, self.rule, self.way_out)
        renamed._names = {**names, **self._names}
        return renamed

    @property
    def fields(self) -> tuple[str, ...]:
        """Every field that the sentence speaks of, the one with the bad value first."""
        others = _FIELD_IN_BRACES.findall(f"{self.rule} {self.way_out}")
        return tuple(dict.fromkeys((self.field, *others)))

    def __str__(self) -> str:
        sentence = f"{{{self.field}}}={brief(self.value)} {self.rule}; {self.way_out}"
        return _FIELD_IN_BRACES.sub(lambda name: self._names.get(name[1], name[1]), sentence)


def refusal(name: str, value: object = None, /, **given: object) -> ValueError:
    """The error of this name about a value; `given` fills the places behind $ of its sentences."""
    row = packed_table(REFUSALS)[name]
    about = {part: Template(text).substitute(given) for part, text in row.items()}
    if "says" in about:
        return ValueError(about["says"])
    return InvalidValue(about["field"], value, about["rule"], about["way_out"])


def refuse_if(is_bad: bool, name: str, value: object = None, /, **given: object) -> None:
    """Raise the refusal of this name where a value breaks its rule."""
    if is_bad:
        raise refusal(name, value, **given)


def brief(value: object) -> str:
    """A value in a few characters and on one line, whatever it is and however long."""
    if isinstance(value, str):
        text = value if len(value) <= 60 else f"{value[:57]}..."
        return repr(text) if text.isprintable() else ascii(text)  # a letter could steer a terminal
    if isinstance(value, Mapping):
        return f"an object of {len(value)} keys"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) > 10**40:  # its digits may take minutes to write
        return "a number above 10^40" if value > 0 else "a number below -10^40"
    return f"{value!s:.60}" if isinstance(value, Number) else f"{value!r:.60}"


def one_line(text: str) -> str:
    """The text without line breaks; of a long one the start and the way out at its end."""
    line = " ".join(text.split())
    half = LONGEST_LINE // 2
    return line if len(line) <= LONGEST_LINE else f"{line[:half]} … {line[-half:]}"


def check_at_least(least: int, **sizes: int) -> None:
    """Refuse a size that is no whole number from `least` to 10^12."""
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidValue(name, value, "is not a whole number", f"use {least} or more")
        if value < least:
            raise InvalidValue(name, value, f"is below {least}", f"use {least} or more")
        if value > MOST:
            rule = "is over 10^12, more than any network"
            raise InvalidValue(name, value, rule, "use 10^12 or less")


def check_real(least: float, most: float, **numbers: float) -> None:
    """Refuse a number that is not finite or outside [least, most]."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidValue(name, value, "is not a number", f"use {least:g} to {most:g}")
        if not least <= value <= most:  # NaN is in no range
            nearest = most if value > most else least
            rule = f"is not in {least:g}..{most:g}"
            raise InvalidValue(name, value, rule, f"the nearest is {nearest:g}")


def check_choice(choices: Sequence[str], **words: str) -> None:
    """Refuse a word that is not one of the choices."""
    for name, word in words.items():
        if word not in choices:
            raise InvalidValue(name, word, "is unknown", f"use one of {', '.join(choices)}")


def check_text(**texts: str) -> None:
    """Refuse a text that would steer a terminal, or that UTF-8 cannot write."""
    for name, text in texts.items():
        if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
            rule = "has a control character or is not UTF-8"
            raise InvalidValue(name, text, rule, "use plain letters")


@cache
def types_of_fields(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields: to find them takes longer than to read it by them."""
    return get_type_hints(kind)


def check_types(value: object, *names: str) -> None:
    """Refuse fields of another type, which a caller without a type checker may pass."""
    kind: Any = type(value)
    for name in names:
        wanted, found = types_of_fields(kind)[name], getattr(value, name)
        if not isinstance(found, wanted):
            words = re.sub(r"archfit\.spec\.(\w+\.)?", "", getattr(wanted, "__name__", str(wanted)))
            raise InvalidValue(name, found, f"is no {words}", "make one and give that")
