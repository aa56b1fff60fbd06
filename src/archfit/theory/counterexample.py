"""The search for weights that exceed a disputed formula."""

import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, count
from typing import TYPE_CHECKING

from archfit.theory.certified import Certified, digits, log3
from archfit.theory.counting import interaction_count, symmetric_entries
from archfit.theory.monomial_witness import Layer, Plan, monomial_witness_log3, next_layer
from archfit.theory.sizes import check_heads_fit, check_sizes

if TYPE_CHECKING:
    from flint import arb

SEARCH_SECONDS = 10.0
_ACTIVE_HEADS = 48  # a plan over more takes seconds to grow, and none was needed
_NO_SEARCH = f"the search goes up to {_ACTIVE_HEADS} heads, and none of so few can"
_GROWN_LAYERS = 24  # then the best entry repeats itself, which triples every exponent
_PAIRS_TRIED = 12  # for each head and layer; trying all of them finds less, being less random


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether weights were found that exceed the formula, and which."""

    refuted: bool
    reason: str
    formula_log3: Decimal
    witness_log3: Decimal | None = None
    plan: Plan = ()
    entry: int = 0

    def as_json(self) -> dict[str, object]:
        """What `--counterexample --json` adds to a document."""
        return {
            "refuted": self.refuted,
            "counterexample": {
                "reason": self.reason,
                "formula_log3": str(self.formula_log3),
                "witness_log3": None if self.witness_log3 is None else str(self.witness_log3),
                "plan": [[list(pair) for pair in layer] for layer in self.plan],
                "entry": self.entry,
            },
        }


def find_counterexample(
    formula: "Callable[[], arb]", depth: int, width: int, heads: int, *, seconds: float
) -> Verdict:
    """A monomial witness above `formula` (log3, on balls) for this shape, if a search finds one.

    Whether one can exist is decided first: with sum E = C over m pairs, prod (E + 1) is at most
    (C/m + 1)^m. A ball above the formula's ball is then proof, whatever found the weights.
    """
    check_sizes(depth=depth, width=width, heads=heads)
    check_heads_fit(width=width, heads=heads)
    formula_log3 = digits(formula)
    active = min(heads, _ACTIVE_HEADS)
    for used, why in ((heads, f"no monomial witness of {heads} heads can"), (active, _NO_SEARCH)):
        if _largest_witness_log3(depth, used) < formula_log3:
            reason = f"{why} exceed it at depth {depth}"
            return Verdict(refuted=False, formula_log3=formula_log3, reason=reason)
    best, tries = Decimal(0), 0
    for plan, entry in _plans(depth, active, time.monotonic() + seconds):
        witness_log3 = monomial_witness_log3(depth, width, len(plan[0]), plan, entry)
        if witness_log3 > formula_log3:
            return Verdict(
                refuted=True,
                formula_log3=formula_log3,
                witness_log3=witness_log3,
                plan=plan,
                entry=entry,
                reason="explicit weights have a larger separation rank on 2 d_x or more "
                "positions, so almost all weights of this shape do",
            )
        best, tries = max(best, witness_log3), tries + 1
    reason = f"the best of {tries} searches stays below it, which proves nothing"
    return Verdict(refuted=False, formula_log3=formula_log3, witness_log3=best, reason=reason)


def grow_plan(depth: int, heads: int, *, seed: int) -> tuple[Plan, int]:
    """A plan whose exponents are spread evenly, and its best entry.

    In each layer every head takes, of a few random pairs, the one with the largest
    sum log(E + 1). After some layers the best entry repeats itself up to the depth.
    """
    return _grown_plan(min(depth, _GROWN_LAYERS + 1), heads, seed)


@lru_cache(maxsize=1024)  # a chart over depth asks for the same ones at every width
def _grown_plan(depth: int, heads: int, seed: int) -> tuple[Plan, int]:
    """The plan of networks up to this depth; deeper ones than are grown all have the last."""
    chance = random.Random(seed)
    pairs = list(combinations_with_replacement(range(heads), 2))
    index = {pair: at for at, pair in enumerate(pairs)}
    state = [[0] * len(pairs) for _ in range(heads)]
    plan: list[Layer] = []
    for _ in range(min(depth, _GROWN_LAYERS)):
        candidates = [
            tuple(chance.choice(pairs) for _ in range(heads)) for _ in range(_PAIRS_TRIED)
        ]
        grown = [next_layer(state, layer, index) for layer in candidates]
        scores = [[_evenness(exponents) for exponents in option] for option in grown]
        chosen = [
            max(range(_PAIRS_TRIED), key=[row[head] for row in scores].__getitem__)
            for head in range(heads)
        ]
        plan.append(tuple(candidates[c][head] for head, c in enumerate(chosen)))
        state = [grown[c][head] for head, c in enumerate(chosen)]
    entry = max(range(heads), key=lambda head: _evenness(state[head]))
    if depth > len(plan):
        plan.append(((entry, entry),) * heads)
    return tuple(plan), entry


def _plans(depth: int, heads: int, deadline: float) -> Iterator[tuple[Plan, int]]:
    """One plan at least, then more until the deadline."""
    for seed in count():
        yield grow_plan(depth, heads, seed=seed)
        if time.monotonic() > deadline:
            return


def _evenness(exponents: list[int]) -> float:
    return sum(map(math.log1p, exponents))


@Certified
def _largest_witness_log3(depth: int, heads: int) -> "arb":
    """m log3(C/m + 1), the logarithm of the product when all exponents are equal."""
    m = symmetric_entries(heads)
    return log3(Fraction(interaction_count(depth), m) + 1) * m
