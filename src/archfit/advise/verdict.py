"""Whether the advice held: the recommended network against its rivals, with intervals."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from archfit.advise.check import CheckRunner, CheckRuns, trained_check
from archfit.advise.design import CheckCell, binds, networks, untested
from archfit.data.prepared import PreparedData
from archfit.fit.cells import CellResult, cells_of
from archfit.fit.comparisons import CellDifference, differences
from archfit.fit.conclusions import subjects
from archfit.fit.fitted import Fits, fitted
from archfit.plan.planner import Plan
from archfit.spec.estimate import Estimate

Status = Literal["held", "refuted", "undecided"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankedResult:
    """A network at the size of the check, and its difference from the one that is advised."""

    network: CheckCell
    cell: CellResult
    against: CellDifference | None  # None: it is the one itself

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
    results: tuple[RankedResult, ...]  # the best first
    binds: bool | None  # whether the bottleneck is one at this size too; None: the plan has none

    @property
    def best(self) -> RankedResult:
        """The network with the least bits per byte."""
        return self.results[0]

    @property
    def is_about_the_advice(self) -> bool:
        """Whether what is advised was trained."""
        return any(claim.about == self.rests_on for claim in self.claims)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """A check that was run, and what it says."""

    folder: Path
    runs: CheckRuns
    verdict: Verdict
    fits: Fits | None  # None: too few runs for curves

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What the runs say about depth and size beyond the plan's claims."""
        if self.fits is None:
            return ()
        wanted = ("Depth against size", "Best depth", "Seeds")
        found = subjects(self.fits)
        return tuple(sentence for name in found if name in wanted for sentence in found[name])


def verdict_of(plan: Plan, check: CheckRuns) -> Verdict:
    """The claims of the plan, each judged; too few runs for that are refused with a sentence."""
    found = {(cell.architecture, cell.data_hash): cell for cell in cells_of(check.records)}
    largest = [cell for cell in check.cells if cell.size == max(check.design.sizes)]
    pairs = [(planned, cell) for planned in largest if (cell := found.get(planned.key))]
    plain = [pair for pair in pairs if pair[0].network.role != "repaired"]  # they come first
    if len(pairs) < 2 or pairs[0][0].network.role != "recommended":
        diverged = sum(record.status == "diverged" for record in check.records)
        raise ValueError(
            f"the recommended network or all its rivals have no finished run ({diverged} diverged)"
            ", so there is nothing to compare; run the same command again, with more --seeds if "
            "runs diverged, or leave --check out"
        )
    reference = plain[0][1]
    cells = [cell for _, cell in pairs]
    others = [cell for cell in cells if cell is not reference]
    against = differences(reference, others, pooled=cells, among=len(others))
    claims = [] if len(plain) < 2 else [_depth_claim(reference, against[: len(plain) - 1])]
    if len(pairs) > len(plain):
        claims += _repair_claims(cells[: len(plain)], pairs[len(plain) :])
    is_bound = binds(plan, check.design.share) if plan.bottleneck else None
    by_cell = {id(difference.first): difference for difference in against}
    results = [
        RankedResult(network=planned, cell=cell, against=by_cell.get(id(cell)))
        for planned, cell in pairs
    ]
    rests_on = _rests_on(plan, check)
    judged_claims = claims if is_bound is not False else []
    statuses: dict[str | None, Status] = {claim.about: claim.status for claim in judged_claims}
    return Verdict(
        status=statuses.get(rests_on, "undecided"),  # what was not tested cannot be refuted
        rests_on=rests_on,
        claims=tuple(claims),
        results=tuple(sorted(results, key=lambda result: result.cell.bits_per_byte)),
        binds=is_bound,
    )


def _rests_on(plan: Plan, check: CheckRuns) -> str | None:
    """The first repair where the plan leads with one, else the recommended network."""
    if not plan.leads_with_repairs:
        return "recommended"
    repaired = [net for net in networks(plan, check.design.share) if net.role == "repaired"]
    return None if plan.repairs[0].kind in untested(plan) else repaired[0].name


def _depth_claim(reference: CellResult, against: Sequence[CellDifference]) -> Claim:
    """Of its depth: no other is better at this size; all are worse."""
    shape = reference.architecture
    layers = "1 layer" if shape.depth == 1 else f"{shape.depth} layers"
    if any(difference.estimate.is_below(0) for difference in against):
        status: Status = "refuted"
    else:
        is_held = all(difference.estimate.is_above(0) for difference in against)
        status = "held" if is_held else "undecided"
    return Claim(
        about="recommended",
        says=f"other depths of equal size are worse than {layers} of width {shape.width}",
        status=status,
        seeds_needed=_needed(against) if status == "undecided" else None,
    )


def _repair_claims(
    plain: Sequence[CellResult], repaired: Sequence[tuple[CheckCell, CellResult]]
) -> list[Claim]:
    """Of each repair: that it beats every network that reads the data as they are."""
    best = min(plain, key=lambda cell: cell.bits_per_byte)
    cells = [cell for _, cell in repaired]
    among = len(plain) * len(cells)
    against = differences(best, cells, pooled=(*plain, *cells), among=among)
    return [
        Claim(
            about=planned.network.name,
            says=f"{planned.network.name} beats every network that reads the data as they are",
            status=_repair_status(found.estimate),
            seeds_needed=found.seeds_needed,
        )
        for (planned, _), found in zip(repaired, against, strict=True)
    ]


def _repair_status(difference: Estimate) -> Status:
    """Held where the repair is better beyond doubt, refuted where it is worse."""
    if difference.is_below(0):
        return "held"
    return "refuted" if difference.is_above(0) else "undecided"


def _needed(against: Sequence[CellDifference]) -> int | None:
    """Seeds that would settle a depth: one that is better refutes it; else all must be worse."""
    better = [found.seeds_needed for found in against if (found.estimate.value or 0) < 0]
    if better:
        return min((needed for needed in better if needed is not None), default=None)
    needs = [found.seeds_needed for found in against if not found.estimate.is_above(0)]
    known = [needed for needed in needs if needed is not None]
    return max(known) if len(known) == len(needs) else None


def check_folder(out: Path, plan: Plan, data: PreparedData, minutes: float) -> Path:
    """Where the check of this plan within this time lies: another plan has another folder."""
    request = plan.request
    words = (data.data_hash, request.budget, request.context, request.max_depth, minutes)
    return out / f"check-{hashlib.sha256(repr(words).encode()).hexdigest()[:8]}"


def checked(
    plan: Plan, data: PreparedData, runner: CheckRunner, *, minutes: float, seeds: int | None
) -> CheckResult:
    """The check of a plan: run, or found and gone on with, and judged."""
    trained = trained_check(plan, data, runner, minutes=minutes, seeds=seeds)
    return judged(plan, trained, runner.folder)


def judged(plan: Plan, runs: CheckRuns, folder: Path) -> CheckResult:
    """What the runs of a check say."""
    try:
        fits = fitted(runs.records)
    except ValueError:  # too few for curves; the verdict says whether they are for it
        fits = None
    return CheckResult(folder=folder, runs=runs, verdict=verdict_of(plan, runs), fits=fits)
