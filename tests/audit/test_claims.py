"""What the papers say of published models, beside what their audits say."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from archfit.advise.law import IdealShape
from archfit.advise.redundancy import Redundancy
from archfit.audit.auditor import AuditResult, audit_model
from archfit.audit.claims import Claim, checked_claims
from archfit.audit.findings import Finding
from archfit.audit.zoo import zoo_models

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


def test_claims_are_reproduced_but_for_vit_huge() -> None:
    verdicts = {model: claim.verdict.split(":")[0].split()[0] for model, claim in _claims().items()}
    assert verdicts.pop("ViT-H/14") == "corrected"
    assert set(verdicts.values()) == {"reproduced"}
    assert len(verdicts) == 5


def test_a_claim_that_is_called_reproduced_says_that_its_number_lies_inside() -> None:
    for model, share, found in (
        ("ALBERT-xxlarge-v1", 25, "18% to 30% redundant, between measurements of the paper"),
        ("T5-3B", 25, "20% to 65% redundant, archfit's and the paper's measurements"),
        ("T5-11B", 45, "at least 40% redundant, archfit's and the paper's measurements"),
    ):
        assert _claims()[model].found == found
        assert _claims()[model].verdict.endswith(f"their {share} % lie inside")


def _finding(low: float, high: float) -> Finding:
    share = Redundancy(low=low, high=high, basis="measured in the paper", source="it")
    return Finding(id="x", severity="low", stack="input", redundancy=share, evidence="", fix="")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.25, 0.3, "reproduced"),
        (0.2, 0.25, "reproduced"),
        (0.251, 0.3, "corrected"),
        (0.2, 0.249, "corrected"),
    ],
)
def test_a_share_at_the_end_of_an_interval_lies_inside(
    low: float, high: float, verdict: str
) -> None:
    milder, nothing = _finding(0.0, 0.1), replace(_finding(0, 1), redundancy=None)
    claim = _claims((milder, _finding(low, high), nothing))["ALBERT-xxlarge-v1"]
    assert claim.verdict.split(":")[0] == verdict
    assert claim.found.startswith(f"{low:.0%} to {high:.0%} redundant")  # the worst of them


def test_a_model_without_a_finding_does_not_reproduce_a_claim() -> None:
    claim = _claims(())["ALBERT-xxlarge-v1"]
    assert (claim.found, claim.verdict) == ("no finding", "corrected")


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
    monkeypatch.setattr("archfit.audit.claims.ideal_shape", lambda *_: law)
    assert _claims()["Sparse Transformer, CIFAR-10"].verdict.startswith(f"{verdict} in shape")
