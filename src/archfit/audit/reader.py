"""Reads sizes out of one config document and keeps account of what it did not say."""

from collections.abc import Sequence

from archfit.audit.defaults import DEFAULTS, OF_A_PART, READ_FROM
from archfit.audit.family import Family
from archfit.audit.fields import Document, first_present, flag, shown, whole
from archfit.audit.spellings import SPELLINGS


class Reader:
    """A config and, in lists that grow, what was assumed, what is missing and what to note."""

    def __init__(
        self, document: Document, family: Family, model_type: str | None, *, is_part: bool
    ) -> None:
        self.document = document
        self.family = family
        self.defaults = dict(DEFAULTS.get(model_type or "", {}))
        if is_part:
            self.defaults |= OF_A_PART.get(model_type or "", {})
        self.assumed: list[str] = []
        self.missing: list[str] = []
        self.notes: list[str] = []

    def size(self, name: str, keys: Sequence[str] = (), *, least: int = 1) -> int | None:
        """The size under the first key that the config has, else the default of the class."""
        found = self.value(keys or SPELLINGS[name])
        if found is None:
            return None
        key, value = found
        return whole(key, value, least=least)

    def value(self, keys: Sequence[str]) -> tuple[str, object] | None:
        """The first key that the config has with its value; None where it is null or nowhere.

        A null is left to the rule by which the class computes the size: a default stands only
        for a key that is absent, as in the class.
        """
        key = first_present(self.document, keys)
        if key is not None:
            self._note_disagreement(key, keys)
            value = self.document[key]
            return None if value is None else (key, value)
        for key in keys:
            if key in self.defaults:
                return key, self._assume(key)
        return None

    def is_tied(self) -> bool | None:
        """Whether the token table serves as the head."""
        found = self.value(SPELLINGS["is_tied"])
        return None if found is None else flag(*found)

    def lack(self, name: str, keys: Sequence[str] = ()) -> None:
        """Note that a size was not found, with the keys that would have held it."""
        self.missing.append(f"{name}: looked for {', '.join(keys or SPELLINGS[name])}")

    def refuse(self, name: str, keys: Sequence[str] = ()) -> ValueError:
        """The refusal of a config without a size that every model has."""
        return ValueError(
            f"the config gives no {name}; looked for {', '.join(keys or SPELLINGS[name])}"
        )

    def _assume(self, key: str) -> object:
        value = self.defaults[key]
        sentence = f"{key}={value}: default of {self.family.config_class} ({READ_FROM})"
        if sentence not in self.assumed:
            self.assumed.append(sentence)
        return value

    def _note_disagreement(self, taken: str, keys: Sequence[str]) -> None:
        for key in keys:
            other = self.document.get(key)
            if type(other) is int and other != self.document[taken]:
                sentence = (
                    f"{taken}={shown(self.document[taken])} was read, not {key}={shown(other)}"
                )
                if sentence not in self.notes:
                    self.notes.append(sentence)
