"""Whether the advice held: the recommended network against its rivals, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from archfit.advise.check import Trained
from archfit.advise.design import CheckCell
from archfit.advise.networks import binds
from archfit.fit.against import Difference, differences
from archfit.fit.cells import Cell, cells_of
from archfit.plan.planner import Plan
from archfit.spec import Architecture

Status = Literal["held", "refuted", "undecided"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """A network at the size of the check, and its difference from the one that is advised."""

    network: CheckCell
    cell: Cell
    against: Difference | None  # None: it is the one itself

    @property
    def words(self) -> str:
        """The network in a few words."""
        shape = self.cell.architecture
        return f"{self.network.network.name} ({shape.depth} x {shape.width})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """Something that the plan says and runs can refute."""

    says: str
    status: Status
    seeds_needed: int | None  # to decide what is undecided; None: nothing is, or over 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the check says about the plan."""

    status: Status
    claims: tuple[Claim, ...]
    standings: tuple[Standing, ...]  # the best first
    binds: bool | None  # whether the bottleneck is one at this size too; None: the plan has none

    @property
    def best(self) -> Standing:
        """The network with the least bits per byte."""
        return self.standings[0]


def verdict_of(plan: Plan, check: Trained) -> Verdict:
    """The claims of the plan, each judged; too few runs for that are refused with a sentence."""
    found = {(cell.architecture, cell.data_hash): cell for cell in cells_of(check.records)}
    largest = [one for one in check.cells if one.size == max(check.design.sizes)]
    pairs = [(one, cell) for one in largest if (cell := found.get(_key(one))) is not None]
    plain = [pair for pair in pairs if pair[0].network.role != "repaired"]  # they come first
    if len(plain) < 2 or plain[0][0].network.role != "recommended":
        raise ValueError(
            "the recommended network or all its rivals of other depth have no finished run, so "
            "there is nothing to compare; run the same command again"
        )
    reference = plain[0][1]
    cells = [cell for _, cell in pairs]
    others = [cell for cell in cells if cell is not reference]
    against = differences(reference, others, pooled=cells, among=len(others))
    claims = [_depth_claim(reference, against[: len(plain) - 1])]
    if len(pairs) > len(plain):
        claims.append(_repair_claim(cells[: len(plain)], cells[len(plain) :]))
    is_bound = binds(plan, check.design.share) if plan.bottleneck else None
    by_cell = {id(one.other): one for one in against}
    standings = [
        Standing(network=one, cell=cell, against=by_cell.get(id(cell))) for one, cell in pairs
    ]
    return Verdict(
        status=_status(plan, claims, is_bound),
        claims=tuple(claims),
        standings=tuple(sorted(standings, key=lambda one: one.cell.bits_per_byte)),
        binds=is_bound,
    )


def _status(plan: Plan, claims: Sequence[Claim], is_bound: bool | None) -> Status:
    """That of the claim which the advice rests on; what is not there cannot be refuted."""
    if is_bound is False:
        return "undecided"
    return claims[-1 if plan.leads_with_repairs else 0].status


def _key(one: CheckCell) -> tuple[Architecture, str]:
    spec = one.cell.spec(0)
    return spec.architecture, spec.data_hash


def _depth_claim(reference: Cell, against: Sequence[Difference]) -> Claim:
    """Of its depth: no other is better at this size; all are worse."""
    shape = reference.architecture
    says = f"{shape.depth} layers of width {shape.width} beat other depths of equal size"
    if any(one.is_better for one in against):
        status: Status = "refuted"
    else:
        status = "held" if all(one.is_worse for one in against) else "undecided"
    return Claim(says=says, status=status, seeds_needed=_needed(status, against))


def _repair_claim(plain: Sequence[Cell], repaired: Sequence[Cell]) -> Claim:
    """That one of the repairs beats every network that reads the data as they are."""
    best = min(plain, key=lambda cell: cell.bits_per_byte)
    among = len(plain) * len(repaired)
    against = differences(best, repaired, pooled=(*plain, *repaired), among=among)
    if any(one.is_better for one in against):
        status: Status = "held"
    else:
        status = "refuted" if all(one.is_worse for one in against) else "undecided"
    return Claim(
        says="a larger vocabulary or patches beat every network that reads the data as they are",
        status=status,
        seeds_needed=_needed(status, against),
    )


def _needed(status: Status, against: Sequence[Difference]) -> int | None:
    """The fewest seeds that would settle one more comparison."""
    needs = [one.seeds_needed for one in against if one.seeds_needed is not None]
    return min(needs) if needs and status == "undecided" else None
