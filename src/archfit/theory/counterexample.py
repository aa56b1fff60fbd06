"""Which disputed formulas can be tested, and the search for weights that exceed them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from archfit.spec.errors import refusal
from archfit.theory.arithmetic import Product, interaction_count, symmetric_entries
from archfit.theory.bounds import BoundsReport
from archfit.theory.catalogue import ENTRIES, quantity
from archfit.theory.reals import digits
from archfit.theory.shape import Bound
from archfit.theory.witness_formula import Plan, grow_plan, monomial_witness

SEARCH_SECONDS = 10.0
_ACTIVE_HEADS = 48  # a plan over more takes seconds to grow, and none was needed
_NO_SEARCH = f"the search goes up to {_ACTIVE_HEADS} heads, and none of so few can"
_REFUTED = (
    "explicit weights have a larger separation rank on 2 d_x or more positions, so almost all "
    "weights of this shape do"
)
_OVER_A_VOCABULARY = (
    "explicit weights have a larger separation rank on long enough sequences, since the "
    "vocabulary has more tokens than S has entries"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Refutation:
    """What a search for weights that exceed a formula found."""

    refuted: bool
    reason: str
    formula_log3: Decimal
    witness_log3: Decimal | None = None
    plan: Plan = ()
    entry: int = 0


def disputed_bounds() -> list[str]:
    """The names of the bounds whose proofs have a gap."""
    disputed = (name for name, entry in ENTRIES.items() if entry.status == "disputed")
    return [name for name in disputed if name.startswith("ub_")]


def refute_formula(name: str, inputs: Mapping[str, object]) -> Refutation:
    """Weights whose separation rank exceeds the disputed formula `name`, if a search finds any.

    Formulas that do not name the heads claim to hold for any number of them, so that H = d_x is
    theirs to survive. With an embedding of rank r the network may as well have width r.
    """
    if name not in disputed_bounds():
        raise refusal("not-disputed", name=name, names=", ".join(disputed_bounds()))
    entry = ENTRIES[name if "_log3" in name else f"{name}_log3"]
    checked = quantity(entry.name, **inputs).inputs  # its own checks refuse what is no size
    sizes = {entry.words[at]: size for at, size in checked.items() if isinstance(size, int)}
    width = sizes["embedding_rank"] if "embedding_rank" in sizes else sizes["width"]
    return _refutation(entry.value(**sizes), sizes["depth"], width, sizes.get("heads", width))


def refute_for_shape(report: BoundsReport) -> Refutation:
    """Whether the disputed bound of this shape fails; it holds where a proved one is below it."""
    shape = report.shape
    targets = {"ub_thm2", "ub_residual_thm4"}
    if shape.is_rank_limited or shape.vocab is not None:
        targets = {"ub_vocab_statement"}
    target = next(bound for bound in report.bounds if bound.id in targets)
    if reason := _reason_against(report, target):
        said = f"{target.id}: {reason}"
        return Refutation(refuted=False, reason=said, formula_log3=target.log3)
    width = shape.embedding_rank if target.id == "ub_vocab_statement" else shape.width
    verdict = _refutation(target.log3, shape.depth, width, shape.heads)
    if verdict.refuted and shape.vocab is not None:
        return replace(verdict, reason=_OVER_A_VOCABULARY)
    return verdict


def _reason_against(report: BoundsReport, target: Bound) -> str:
    """Why no search is made; empty where one is."""
    shape = report.shape
    if report.upper.log3 <= target.log3:
        return f"it holds here, because {report.upper.id} is below it"
    if shape.vocab is not None and shape.vocab <= symmetric_entries(shape.embedding_rank):
        return f"no witness is known for a vocabulary of only {shape.vocab}"
    if shape.vocab is not None and shape.positions is not None:
        return "over a vocabulary the witness needs sequences of any length"
    if shape.positions is not None and shape.positions < 2 * shape.width:
        return f"the witness needs {2 * shape.width} positions or more"
    return ""


def _refutation(formula_log3: Decimal, depth: int, width: int, heads: int) -> Refutation:
    """A monomial witness above the value of a formula for this shape, if a search finds one.

    Whether one can exist is decided first: with sum E = C over m pairs, prod (E + 1) is at most
    (C/m + 1)^m. Certified digits above the formula's are then proof, whatever found the weights.
    """
    heads = min(heads, width)
    active = min(heads, _ACTIVE_HEADS)
    for used, why in ((heads, f"no monomial witness of {heads} heads can"), (active, _NO_SEARCH)):
        m = symmetric_entries(used)
        largest = Product(powers=[(Fraction(interaction_count(depth), m) + 1, m)])
        if digits(largest.log3) < formula_log3:
            reason = f"{why} exceed it at depth {depth}"
            return Refutation(refuted=False, formula_log3=formula_log3, reason=reason)
    best, tries = Decimal(0), 0
    deadline = time.monotonic() + SEARCH_SECONDS
    while tries == 0 or time.monotonic() <= deadline:
        plan, entry = grow_plan(depth, active, seed=tries)
        witness_log3 = digits(monomial_witness(depth, width, len(plan[0]), plan, entry).log3)
        if witness_log3 > formula_log3:
            found = {"formula_log3": formula_log3, "witness_log3": witness_log3}
            return Refutation(refuted=True, reason=_REFUTED, **found, plan=plan, entry=entry)
        best, tries = max(best, witness_log3), tries + 1
    reason = f"the best of {tries} searches stays below it, which proves nothing"
    return Refutation(refuted=False, formula_log3=formula_log3, witness_log3=best, reason=reason)
