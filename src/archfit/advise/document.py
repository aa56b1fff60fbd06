"""An advice as one JSON document."""

from archfit.advise.design import untested
from archfit.advise.verdict import CheckResult, Claim, RankedResult
from archfit.advise.words import check_sentences, counterpart, headline, limits_of
from archfit.plan.planner import Plan

Json = dict[str, object]


def check_json(plan: Plan, check: CheckResult) -> Json:
    """What a check found: verdict, claims, networks with intervals, and how it was made."""
    trained, verdict, design = check.trained, check.verdict, check.trained.design
    return {
        "status": verdict.status,
        "headline": headline(plan, verdict),
        "sentences": check_sentences(plan, trained, verdict),
        "claims": [_claim(claim) for claim in verdict.claims],
        "networks": [_standing(check, standing) for standing in verdict.standings],
        "limits": list(limits_of(plan, trained, verdict)),
        "conclusions": list(check.conclusions),
        "bottleneck_binds": verdict.binds,
        "share_of_plan": design.share,
        "steps": design.steps,
        "runs": len(trained.records),
        "failed": dict(trained.failures),
        "not_tested": {**trained.left_out, **dict.fromkeys(untested(plan), "needs the source")},
        "folder": str(check.folder),
    }


def _claim(claim: Claim) -> Json:
    return {
        "about": claim.about,
        "says": claim.says,
        "status": claim.status,
        "seeds_needed": claim.seeds_needed,
    }


def _standing(check: CheckResult, standing: RankedResult) -> Json:
    shape, found = standing.cell.architecture, standing.against
    return {
        "name": standing.network.network.name,
        "role": standing.network.network.role,
        "depth": shape.depth,
        "width": shape.width,
        "params": shape.params,
        "block_params": shape.block_params,
        "bits_per_byte": standing.cell.bits_per_byte,
        "seeds": standing.cell.seeds,
        "difference": None
        if found is None
        else {"bits_per_byte": found.bits_per_byte, "low": found.low, "high": found.high},
        "at_plan_size": counterpart(check.trained, standing),
    }
