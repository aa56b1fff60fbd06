"""One bound: its value, exact or by its logarithm, and how far to trust it."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from archfit.theory.catalogue import FUNCTIONS, Json, Quantity, Status, as_json_value, quantity
from archfit.theory.certified import digits, log3

Side = Literal["lower", "upper"]
Inputs = Mapping[str, object]

# 3^9000 has 4,295 digits. Python refuses to read integers over 4,300 unless told to, so
# longer ones would break the programs that read ours; `archfit theory` prints up to a million.
EXACT_LOG3_SHOWN = 9000
_FRACTIONS = ("ub_thm2", "ub_residual_thm4", "ub_vocab_proof")
_WIDEST_FRACTION = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """One bound on log3 of the separation rank."""

    id: str
    side: Side
    log3: Decimal
    exact: int | Fraction | None
    status: Status
    status_line: str
    source: str

    def as_json(self) -> dict[str, Json]:
        """The bound as `archfit bounds --json` prints it."""
        return {
            "id": self.id,
            "side": self.side,
            "log3": str(self.log3),
            "exact": None if self.exact is None else as_json_value(self.exact),
            "status": self.status,
            "status_line": self.status_line,
            "source": self.source,
        }


def bound(side: Side, name: str, inputs: Inputs, log_name: str = "") -> Bound:
    """The bound `name`, exact where it can be shown, by its logarithm otherwise."""
    log_name = log_name or f"{name}_log3"
    if log_name not in FUNCTIONS:
        return exact_bound(side, name, inputs)
    logarithm = quantity(log_name, **inputs)
    assert isinstance(logarithm.value, Decimal)
    if name in FUNCTIONS and _can_be_shown(name, logarithm.value, inputs):
        return exact_bound(side, name, inputs)
    return _from_quantity(side, logarithm.name.removesuffix("_log3"), logarithm, logarithm.value)


def _can_be_shown(name: str, log: Decimal, inputs: Inputs) -> bool:
    """Whether the exact value is short, and of a fraction its denominator, a power of a width."""
    widths = ("d_x", "r", "r_e")
    wide = any(int(str(inputs.get(letter, 0))) > _WIDEST_FRACTION for letter in widths)
    return log < EXACT_LOG3_SHOWN and not (name in _FRACTIONS and wide)


def exact_bound(side: Side, name: str, inputs: Inputs) -> Bound:
    """The bound `name`, whose logarithm is taken from its exact value."""
    exact = quantity(name, **inputs)
    value = exact.value
    assert isinstance(value, int | Fraction)
    return _from_quantity(side, name, exact, digits(lambda: log3(value)), value)


def real(name: str, inputs: Inputs) -> Decimal:
    """The value of a quantity that is a real number."""
    value = quantity(name, **inputs).value
    assert isinstance(value, Decimal)
    return value


def whole(name: str, inputs: Inputs) -> int:
    """The value of a quantity that is an integer."""
    value = quantity(name, **inputs).value
    assert isinstance(value, int)
    return value


def _from_quantity(
    side: Side, name: str, source: Quantity, log: Decimal, exact: int | Fraction | None = None
) -> Bound:
    return Bound(
        id=name,
        side=side,
        log3=log,
        exact=exact,
        status=source.status,
        status_line=source.status_line,
        source=source.source,
    )
