"""What archfit plans, archfit's own audit has nothing to say against."""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import pytest

from archfit.advise.plan_request import ANY, PlanOptions, PlanRequest
from archfit.advise.planner import Plan, make_plan
from archfit.advise.prior import known_families
from archfit.advise.shapes import BudgetTooSmall
from archfit.audit.auditor import AuditResult, audit_model
from archfit.audit.config import model_from_config
from archfit.audit.findings import LARGEST_CODEBOOK, WRITTEN
from archfit.export.formats import ExportShape, export_config
from archfit.spec import Full
from archfit.spec.architecture import BlockFamily
from archfit.spec.files import CONFIG
from tests_plans import facts

BUDGETS, VOCABS = (3e5, 1e9), (5, 50257)
FEW = 0.2, 20.0  # tokens a parameter of small data, read four times
COUNTS = (50, pytest.param(140, marks=pytest.mark.slow))  # of random questions


def _between(draw: random.Random, ends: tuple[float, float]) -> int:
    """Every order of magnitude as often."""
    return round(math.exp(draw.uniform(*map(math.log, ends))))


def _questions(seed: int, count: int) -> Iterator[PlanOptions]:
    """Families by name, any, or none said; large vocabularies are those of text and code."""
    draw = random.Random(seed)
    for _ in range(count):
        params, vocab = _between(draw, BUDGETS), _between(draw, VOCABS)
        named = WRITTEN if vocab > LARGEST_CODEBOOK else known_families()
        family, block = draw.choice((*named, ANY, "")), draw.choice(get_args(BlockFamily))
        yield PlanOptions(params=params, vocab=vocab, family=family, block=block)


def _audited(plan: Plan) -> AuditResult:
    """The config that `archfit advise` writes, read again."""
    assert plan.request.vocabulary is not None
    assert plan.export_format is not None
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
        tokens_per_param=plan.request.tokens_per_param,
        data_tokens=plan.request.data.tokens if plan.request.data else None,
    )
    document = json.loads(export_config(shape, plan.export_format).files[CONFIG])
    return audit_model(model_from_config(document, name="planned", origin="here"))


@pytest.mark.parametrize("count", COUNTS)
def test_random_plans_are_exported_and_audited_without_a_finding(count: int) -> None:
    wrong, made = [], 0
    for options in _questions(20, count):
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
    assert made >= 0.85 * count


def _for_few_tokens(options: PlanOptions, draw: random.Random) -> PlanRequest:
    """The same question about small data, or with as few tokens asked for."""
    asked, each = options.request(), math.exp(draw.uniform(*map(math.log, FEW)))
    if draw.random() < 0.3:
        return replace(asked, tokens_per_param=float(f"{each:.2g}"))
    tokens = max(1, round(each * (options.params or 0) / 4))
    return replace(asked, data=facts(tokens=tokens, family=asked.family))


@pytest.mark.parametrize("count", COUNTS)
def test_plans_for_few_tokens_are_audited_without_a_finding_and_some_would_have_one(
    count: int,
) -> None:
    """The config says how many tokens there are; one that did not would be taken for another."""
    draw, wrong, silent = random.Random(4), [], 0
    for options in _questions(21, count):
        try:
            plan = make_plan(_for_few_tokens(options, draw))
        except BudgetTooSmall:
            continue
        result = _audited(plan)
        assert result.model.training_tokens == plan.costs.tokens
        wrong += [f"{options}: {found.id}, {found.evidence}" for found in result.findings]
        silent += bool(audit_model(replace(result.model, training_tokens=None)).findings)
    assert not wrong, "\n".join(wrong)
    assert silent >= 1


def test_a_depth_is_judged_at_the_tokens_that_a_model_names() -> None:
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 512, "n_head": 8, "vocab_size": 257}
    for tokens, ids in ((None, ["too-shallow"]), (10**7, []), (10**9, ["too-shallow"])):
        given = {} if tokens is None else {"training_tokens": tokens}
        model = model_from_config(config | given, name="few", origin="here")
        found = audit_model(model).findings
        assert [each.id for each in found if "bottleneck" not in each.id] == ids
        words = "if trained on 20 tokens per parameter or more"
        if tokens is not None:
            words = (
                f", trained on {tokens / (model.parameters.total or 0):.2g} tokens per parameter"
            )
        assert all(words in each.evidence for each in found if each.id == "too-shallow")
    for strange in ("many", 0, -3, True, 2.5, None):
        odd = model_from_config(config | {"training_tokens": strange}, name="odd", origin="here")
        assert odd.training_tokens is None


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
