"""What archfit plans, archfit's own audit has nothing to say against."""

import json
import math
import random
from collections.abc import Iterator

import pytest

from archfit.advise.plan_request import ANY, PlanOptions
from archfit.advise.planner import Plan, make_plan
from archfit.advise.prior import known_families
from archfit.advise.shapes import BudgetTooSmall
from archfit.audit.auditor import AuditResult, audit_model
from archfit.audit.config import model_from_config
from archfit.audit.findings import LARGEST_CODEBOOK, WRITTEN
from archfit.export.formats import ExportShape, export_config
from archfit.spec import Full
from archfit.spec.files import CONFIG

BUDGETS, VOCABS = (3e5, 1e9), (5, 50257)
QUESTIONS, PLANS = 140, 120
FORMAT = "hf-gpt2"


def _between(draw: random.Random, ends: tuple[float, float]) -> int:
    """Every order of magnitude as often."""
    return round(math.exp(draw.uniform(*map(math.log, ends))))


def _questions(seed: int) -> Iterator[PlanOptions]:
    """Families by name, any, or none said; large vocabularies are those of text and code."""
    draw = random.Random(seed)
    for _ in range(QUESTIONS):
        params, vocab = _between(draw, BUDGETS), _between(draw, VOCABS)
        named = WRITTEN if vocab > LARGEST_CODEBOOK else known_families()
        yield PlanOptions(params=params, vocab=vocab, family=draw.choice((*named, ANY, "")))


def _audited(plan: Plan) -> AuditResult:
    """The config that `archfit advise` writes, read again."""
    assert plan.request.vocabulary is not None
    shape = ExportShape(
        depth=plan.shape.depth,
        width=plan.shape.width,
        heads=plan.shape.heads,
        head_dim=plan.shape.head_dim,
        kv_heads=plan.shape.heads,
        feed_forward="usual",
        vocab=plan.request.vocabulary.size,
        context=plan.request.context,
        embedding=Full(),
        tied=plan.request.is_tied,
        separator=None,
    )
    document = json.loads(export_config(shape, FORMAT).files[CONFIG])
    return audit_model(model_from_config(document, name="planned", origin="here"))


def test_random_plans_are_exported_and_audited_without_a_finding() -> None:
    wrong, made = [], 0
    for options in _questions(seed=20):
        try:
            plan = make_plan(options.request())
        except BudgetTooSmall:
            continue
        result = _audited(plan)
        made += 1
        assert (result.model.depth, result.model.width) == (plan.shape.depth, plan.shape.width)
        assert result.model.parameters.total == plan.params.total
        wrong += [f"{options}: {found.id}, {found.evidence}" for found in result.findings]
    assert not wrong, "\n".join(wrong)
    assert made >= PLANS


@pytest.mark.parametrize("family", known_families())
def test_the_same_parameters_in_1_or_in_100_layers_are_found_wrong(family: str) -> None:
    """Lenient, but not so that nothing is found."""
    plan = make_plan(PlanOptions(params=4_000_000, vocab=257, family=family).request())
    assert _audited(plan).findings == ()
    for depth, id_ in ((1, "too-shallow"), (100, "too-deep")):
        width = 8 * round(math.sqrt(plan.params.blocks / 12 / depth) / 8)
        config = {"model_type": "gpt2", "n_layer": depth, "n_embd": width, "n_head": 1}
        sizes = {"vocab_size": 257, "n_positions": 1024}
        model = model_from_config(config | sizes, name="bent", origin="here")
        assert id_ in {found.id for found in audit_model(model).findings}
