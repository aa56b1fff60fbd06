"""From a source and a budget to an advice: data, plan, and the check if one is wanted."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from archfit.advise.check import Bench, Trained, trained_check
from archfit.advise.facts import facts_of, vocabulary_of
from archfit.advise.source import Report, Source, prepared_source
from archfit.advise.verdict import Verdict, verdict_of
from archfit.data.prepared import PreparedData
from archfit.fit.conclusions import findings
from archfit.fit.fitted import Fits, fitted
from archfit.plan.planner import Plan, make_plan
from archfit.plan.request import CHINCHILLA_TOKENS, PlanRequest, TotalParams
from archfit.spec.checks import check_at_least

DATA = "data"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What somebody wants to know."""

    source: Source
    params: int
    context: int
    max_depth: int

    def __post_init__(self) -> None:
        """Refuse before any data is prepared what no plan could be made for."""
        TotalParams(params=self.params)  # it checks
        check_at_least(1, context=self.context, max_depth=self.max_depth)


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A check that was run, and what it says."""

    folder: Path
    trained: Trained
    verdict: Verdict
    fits: Fits | None  # None: too few runs for curves

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What the runs say about depth and size beyond the plan's claims."""
        if self.fits is None:
            return ()
        wanted = ("Depth against size", "Best depth", "Seeds")
        groups = [group for group in findings(self.fits) if group.subject in wanted]
        return tuple(sentence for group in groups for sentence in group.sentences)


def planned(wish: Wish, out: Path, report: Report) -> tuple[PreparedData, Plan]:
    """The data, prepared or found, and the plan for it."""
    data = prepared_source(wish.source, out / DATA, report)
    return data, plan_for(wish, data, out)


def plan_for(wish: Wish, data: PreparedData, out: Path) -> Plan:
    """The plan for data that are there; those in `out` were made from the source."""
    is_made = data.folder.resolve() == (out / DATA).resolve()
    request = PlanRequest(
        budget=TotalParams(params=wish.params),
        vocabulary=vocabulary_of(data),
        rank=None,
        patch=None,
        context=wish.context,
        is_tied=False,
        max_depth=wish.max_depth,
        multiple_of=None,
        tokens_per_param=CHINCHILLA_TOKENS,
        data=facts_of(data, wish.source.words if is_made else None),
    )
    return make_plan(request)


def check_folder(out: Path, plan: Plan, data: PreparedData, minutes: float) -> Path:
    """Where the check of this plan within this time lies: another plan has another folder."""
    request = plan.request
    words = (data.data_hash, request.budget, request.context, request.max_depth, minutes)
    return out / f"check-{hashlib.sha256(repr(words).encode()).hexdigest()[:8]}"


def checked(
    plan: Plan, data: PreparedData, bench: Bench, *, minutes: float, seeds: int | None
) -> Checked:
    """The check of a plan: run, or found and gone on with, and judged."""
    return judged(
        plan, trained_check(plan, data, bench, minutes=minutes, seeds=seeds), bench.folder
    )


def judged(plan: Plan, trained: Trained, folder: Path) -> Checked:
    """What the runs of a check say."""
    try:
        fits = fitted(trained.records)
    except ValueError:  # too few for curves; the verdict says whether they are for it
        fits = None
    return Checked(folder=folder, trained=trained, verdict=verdict_of(plan, trained), fits=fits)
