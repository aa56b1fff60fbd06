"""Whether the advice held: the recommended network against its rivals, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from archfit.advise.check import Trained
from archfit.advise.design import CheckCell
from archfit.advise.networks import binds, networks, untested
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
    """Something that the plan says of a network and runs can refute."""

    about: str  # the name of the network
    says: str
    status: Status
    seeds_needed: int | None  # to decide what is undecided; None: nothing is, or over 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the check says about the plan."""

    status: Status
    rests_on: str | None  # the name of the network that is advised; None: no check can train it
    claims: tuple[Claim, ...]
    standings: tuple[Standing, ...]  # the best first
    binds: bool | None  # whether the bottleneck is one at this size too; None: the plan has none

    @property
    def best(self) -> Standing:
        """The network with the least bits per byte."""
        return self.standings[0]

    @property
    def is_about_the_advice(self) -> bool:
        """Whether what is advised was trained."""
        return any(claim.about == self.rests_on for claim in self.claims)


def verdict_of(plan: Plan, check: Trained) -> Verdict:
    """The claims of the plan, each judged; too few runs for that are refused with a sentence."""
    found = {(cell.architecture, cell.data_hash): cell for cell in cells_of(check.records)}
    largest = [one for one in check.cells if one.size == max(check.design.sizes)]
    pairs = [(one, cell) for one in largest if (cell := found.get(_key(one))) is not None]
    plain = [pair for pair in pairs if pair[0].network.role != "repaired"]  # they come first
    if len(pairs) < 2 or pairs[0][0].network.role != "recommended":
        raise ValueError(_nothing_to_compare(check))
    reference = plain[0][1]
    cells = [cell for _, cell in pairs]
    others = [cell for cell in cells if cell is not reference]
    against = differences(reference, others, pooled=cells, among=len(others))
    claims = [] if len(plain) < 2 else [_depth_claim(reference, against[: len(plain) - 1])]
    if len(pairs) > len(plain):
        claims += _repair_claims(cells[: len(plain)], pairs[len(plain) :])
    is_bound = binds(plan, check.design.share) if plan.bottleneck else None
    by_cell = {id(one.other): one for one in against}
    standings = [
        Standing(network=one, cell=cell, against=by_cell.get(id(cell))) for one, cell in pairs
    ]
    rests_on = _rests_on(plan, check)
    statuses: dict[str | None, Status] = {
        claim.about: claim.status for claim in claims if is_bound is not False
    }
    return Verdict(
        status=statuses.get(rests_on, "undecided"),  # what was not tested cannot be refuted
        rests_on=rests_on,
        claims=tuple(claims),
        standings=tuple(sorted(standings, key=lambda one: one.cell.bits_per_byte)),
        binds=is_bound,
    )


def _nothing_to_compare(check: Trained) -> str:
    diverged = sum(record.status == "diverged" for record in check.records)
    return (
        f"the recommended network or all its rivals have no finished run ({diverged} diverged), so "
        "there is nothing to compare; run the same command again, with more --seeds if runs "
        "diverged, or leave --check out"
    )


def _rests_on(plan: Plan, check: Trained) -> str | None:
    """The first repair where the plan leads with one, else the recommended network."""
    if not plan.leads_with_repairs:
        return "recommended"
    repaired = [one for one in networks(plan, check.design.share) if one.role == "repaired"]
    return None if plan.repairs[0].kind in untested(plan) else repaired[0].name


def _key(one: CheckCell) -> tuple[Architecture, str]:
    spec = one.cell.spec(0)
    return spec.architecture, spec.data_hash


def _depth_claim(reference: Cell, against: Sequence[Difference]) -> Claim:
    """Of its depth: no other is better at this size; all are worse."""
    shape = reference.architecture
    layers = "1 layer" if shape.depth == 1 else f"{shape.depth} layers"
    if any(one.is_better for one in against):
        status: Status = "refuted"
    else:
        status = "held" if all(one.is_worse for one in against) else "undecided"
    return Claim(
        about="recommended",
        says=f"other depths of equal size are worse than {layers} of width {shape.width}",
        status=status,
        seeds_needed=_needed(against) if status == "undecided" else None,
    )


def _repair_claims(
    plain: Sequence[Cell], repaired: Sequence[tuple[CheckCell, Cell]]
) -> list[Claim]:
    """Of each repair: that it beats every network that reads the data as they are."""
    best = min(plain, key=lambda cell: cell.bits_per_byte)
    cells = [cell for _, cell in repaired]
    among = len(plain) * len(cells)
    against = differences(best, cells, pooled=(*plain, *cells), among=among)
    return [
        Claim(
            about=one.network.name,
            says=f"{one.network.name} beats every network that reads the data as they are",
            status="held" if found.is_better else "refuted" if found.is_worse else "undecided",
            seeds_needed=found.seeds_needed,
        )
        for (one, _), found in zip(repaired, against, strict=True)
    ]


def _needed(against: Sequence[Difference]) -> int | None:
    """Seeds that would settle a depth: one that is better refutes it; else all must be worse."""
    better = [one.seeds_needed for one in against if one.bits_per_byte < 0]
    if better:
        return min((needed for needed in better if needed is not None), default=None)
    needs = [one.seeds_needed for one in against if not one.is_worse]
    known = [needed for needed in needs if needed is not None]
    return max(known) if len(known) == len(needs) else None
