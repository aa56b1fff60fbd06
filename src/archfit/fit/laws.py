"""What a law is: its parameters with intervals, and the forms that compete with it."""

from dataclasses import dataclass
from typing import Literal

from archfit.fit.families import FamilyKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One number of a law; an end is None where the data do not bound it."""

    name: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rival:
    """A form, and by how much it misses what it was not fitted to."""

    form: str
    held_out_error: float  # root mean square, each point left out once
    last_error: float  # the largest point left out


@dataclass(frozen=True, kw_only=True, slots=True)
class Law:
    """A fitted law."""

    kind: Literal["transition", "size"]
    form: str
    family: FamilyKey  # of a size law; the shallowest of a transition law
    parameters: tuple[Parameter, ...]  # none where no law of this form is near the points
    rivals: tuple[Rival, ...]  # the best first, this form among them; empty where too few points
    points: int
    seeds: int  # the fewest of any cell
    inflation: float  # of the variance, where the law misses its points by more than that
