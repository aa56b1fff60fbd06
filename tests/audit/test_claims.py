"""What the papers say of published models, beside what their audits say."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

import pytest

from archfit.advise.redundancy import Basis, Redundancy
from archfit.audit.auditor import AuditResult, Claim, audit_model, checked_claims
from archfit.audit.findings import Finding
from archfit.audit.zoo import zoo_models
from archfit.theory.law import IdealShape

RESULTS = tuple(map(audit_model, zoo_models()))


def _claims(findings: tuple[Finding, ...] | None = None) -> Mapping[str, Claim]:
    """By model; `findings` take the place of ALBERT's."""
    changed: list[AuditResult] = [
        replace(result, findings=findings)
        if findings is not None and result.model.name == "ALBERT-xxlarge-v1"
        else result
        for result in RESULTS
    ]
    return {claim.model: claim for claim in checked_claims(changed)}


def test_a_share_that_rests_on_the_papers_own_point_is_not_called_reproduced() -> None:
    """What went into an interval cannot be confirmed by it."""
    for model, share, found in (
        ("ALBERT-xxlarge-v1", 25, "18 to 30 % redundant, between measurements of the paper"),
        ("T5-3B", 25, "20 to 47 % redundant, archfit's and the paper's measurements"),
        ("T5-11B", 45, "40 to 81 % redundant, archfit's and the paper's measurements"),
    ):
        claim = _claims()[model]
        assert claim.found == found
        point = f"the share rests on the paper's own point, {share} % plus or minus 5"
        assert point in claim.verdict
        assert "reproduced" not in claim.verdict
        assert ("our runs beside it" in claim.verdict) == ("archfit" in found)


def test_few_tokens_in_a_deep_network_correct_the_paper() -> None:
    claim = _claims()["ESM-1b"]
    assert claim.found == "no finding"
    assert claim.verdict.startswith("corrected: few tokens are a finding in a network that is too")


def _finding(low: float, high: float, basis: Basis = "measured by archfit") -> Finding:
    share = Redundancy(low=low, high=high, basis=basis, source="it")
    return Finding(id="x", severity="low", stack="input", redundancy=share, evidence="", fix="")


@pytest.mark.parametrize("basis", get_args(Basis))
@pytest.mark.parametrize(
    ("low", "high", "is_inside"),
    [(0.25, 0.3, True), (0.2, 0.25, True), (0.251, 0.3, False), (0.2, 0.249, False)],
)
def test_a_share_at_the_end_of_an_interval_lies_inside_and_only_our_runs_reproduce_it(
    low: float, high: float, is_inside: bool, basis: Basis
) -> None:
    milder, nothing = _finding(0.0, 0.1), replace(_finding(0, 1), redundancy=None)
    claim = _claims((milder, _finding(low, high, basis), nothing))["ALBERT-xxlarge-v1"]
    verdict = "the shape is as they say" if "paper" in basis else "reproduced by our runs"
    assert re.split("[:;]", claim.verdict)[0] == (verdict if is_inside else "corrected")
    assert (
        claim.found == f"{100 * low:.0f} to {100 * high:.0f} % redundant, {basis}"
    )  # the worst of them


def test_the_public_vit_huge_and_the_sparse_transformer_are_told_with_their_numbers() -> None:
    claims = _claims()
    assert claims["ViT-H/14"].found == "input rank 588 at width 1280"
    sparse = claims["Sparse Transformer, CIFAR-10"]
    assert sparse.found == "the law gives 128 x 256 for 12 L d^2 = 101M"
    assert sparse.verdict.startswith("reproduced in shape; its 59M parameters")


@pytest.mark.parametrize(
    ("depth", "verdict"),
    [(134.3, "reproduced"), (134.5, "corrected"), (121.7, "reproduced"), (121.5, "corrected")],
)
def test_a_shape_within_a_twentieth_of_the_law_is_reproduced(
    depth: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = IdealShape(depth=depth, width=256.0)
    monkeypatch.setattr("archfit.audit.auditor.ideal_shape", lambda *_: law)
    assert _claims()["Sparse Transformer, CIFAR-10"].verdict.startswith(f"{verdict} in shape")
