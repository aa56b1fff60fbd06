"""A plan as one JSON document."""

from dataclasses import asdict

from archfit.plan.advisers import Advice, evidence_against
from archfit.plan.law import IdealShape
from archfit.plan.planner import Effect, Plan
from archfit.plan.redundancy import Redundancy
from archfit.plan.repairs import Repair
from archfit.plan.request import PlanRequest
from archfit.plan.shapes import RoundedShape

Json = dict[str, object]


def plan_json(plan: Plan) -> Json:
    """The document that `archfit plan --json` prints."""
    request, costs = plan.request, plan.costs
    return {
        "question": _request(request),
        "recommended": _shape(plan.shape)
        | {
            "vocab": request.vocabulary.size if request.vocabulary else None,
            "embedding_rank": plan.embedding_rank,
            "params": asdict(plan.params),
        },
        "ideal": _ideal(plan.ideal),
        "rounding": {"of": _ideal(plan.allowed), "params_change": round(plan.rounding_cost, 4)},
        "bottleneck": asdict(plan.bottleneck) if plan.bottleneck else None,
        "leads_with": "repairs" if plan.leads_with_repairs else "shape",
        "repairs": [_repair(repair) for repair in plan.repairs],
        "expected_effect": _effect(plan.effect),
        "advisers": [_advice(advice) for advice in plan.advice],
        "evidence_against": list(evidence_against()),
        "check": asdict(plan.check),
        "export": plan.export_command,
        "training": {
            "tokens": costs.tokens,
            "tokens_per_param": request.tokens_per_param,
            "flops": costs.flops,
            "attention_flops": costs.attention_flops,
            "relative_latency": round(costs.relative_latency, 3),
            "start": asdict(costs.start),
        },
        "memory_bytes": asdict(costs.memory) | {"total": costs.memory.total},
        "warnings": list(plan.warnings),
    }


def _request(request: PlanRequest) -> Json:
    vocabulary, data = request.vocabulary, request.data
    return {
        "budget": request.budget.option,
        "vocab": vocabulary.size if vocabulary else None,
        "used_vocab": vocabulary.used if vocabulary else None,
        "rank": request.rank,
        "patch": list(request.patch) if request.patch else None,
        "rank_limit": request.limit.limit,
        "context": request.context,
        "tied": request.is_tied,
        "max_depth": request.max_depth,
        "data": asdict(data) if data else None,
    }


def _ideal(shape: IdealShape) -> Json:
    return {
        "depth": round(shape.depth, 4),
        "width": round(shape.width, 2),
        "block_params": round(shape.block_params),
    }


def _shape(shape: RoundedShape) -> Json:
    return {
        "depth": shape.depth,
        "width": shape.width,
        "heads": shape.heads,
        "head_dim": shape.head_dim,
    }


def _repair(repair: Repair) -> Json:
    return {
        "kind": repair.kind,
        "size": repair.size,
        "change": repair.change,
        "command": repair.command,
        "needs": repair.needs,
        "rank_limit": repair.rank_limit,
        "shape": _shape(repair.shape) | {"params": asdict(repair.params)},
    }


def _effect(effect: Effect) -> Json:
    saved, loss = effect.saved, effect.loss_percent
    return {
        "against": _ideal(effect.against),
        "params_saved": interval_json(saved) if saved else None,
        "loss_percent": {"low": loss[0], "high": loss[1]} if loss else None,
        "source": effect.source,
    }


def interval_json(share: Redundancy) -> Json:
    """An interval of redundancy as JSON."""
    return {"low": share.low, "high": share.high, "basis": share.basis}


def _advice(advice: Advice) -> Json:
    return {
        "name": advice.name,
        "depth": None if advice.depth is None else round(advice.depth, 1),
        "width": None if advice.width is None else round(advice.width),
        "depths": None if advice.depths is None else [round(depth, 1) for depth in advice.depths],
        "says": advice.says,
        "source": advice.source,
        "seen_in": advice.seen_in,
        "in_range": advice.in_range,
    }
