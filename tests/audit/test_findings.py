"""Findings of made models, of which we know what is wrong, and of those the papers speak of."""

import json
import re
import shlex
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from archfit.audit.auditor import audit_model
from archfit.audit.claims import checked_claims
from archfit.audit.findings import IDS, Finding, findings_of
from archfit.audit.model import InputKind, InputMap, Model, Parameters, Stack
from archfit.audit.zoo import zoo_model, zoo_models
from archfit.cli.app import program

STACK = Stack(
    role="decoder",
    depth=24,
    width=600,  # law: 600 at 24.5 layers
    heads=10,
    head_dim=60,
    kv_heads=10,
    feed_forward=2400,
    block_weights=12 * 24 * 600**2,
    distinct_blocks=24,
)


def _model(
    stack: Stack = STACK,
    *,
    kind: InputKind = "lookup",
    vocab: int | None = 50257,
    inner: int | None = None,
    dimensions: int | None = None,
) -> Model:
    return Model(
        name="made",
        origin="here",
        family=None,
        modality=None,
        stacks=(stack,),
        input=InputMap(kind=kind, vocab=vocab, vocab_real=None, inner=inner, dimensions=dimensions),
        is_tied=False,
        parameters=Parameters(blocks=None, embedding=None, total=None),
        published_params=None,
        assumed=(),
        missing=(),
        doubtful=(),
        notes=(),
    )


def _ids(model: Model, **measured: int) -> list[str]:
    return [finding.id for finding in findings_of(model, **measured)]


def test_a_shape_on_the_law_without_a_bottleneck_is_left_alone() -> None:
    assert _ids(_model()) == []


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (_model(vocab=100), "vocabulary-bottleneck"),
        (_model(kind="factorised_lookup", inner=64), "low-rank-embedding"),
        (_model(kind="factorised_lookup", inner=64, vocab=30), "vocabulary-bottleneck"),
        (_model(kind="linear_patch", vocab=None, dimensions=192), "patch-bottleneck"),
        (_model(replace(STACK, heads=40)), "attention-bottleneck"),
        (_model(replace(STACK, depth=5)), "below-depth-threshold"),
        (_model(replace(STACK, depth=10)), "shallower-than-law"),
        (_model(replace(STACK, depth=90)), "deeper-than-law"),
    ],
)
def test_each_finding_is_found(model: Model, expected: str) -> None:
    assert expected in _ids(model)
    assert expected in IDS


def test_depth_that_makes_up_for_a_small_vocabulary_is_not_called_too_deep() -> None:
    pixels = replace(STACK, depth=128, width=256, heads=4, head_dim=64)
    assert "deeper-than-law" in _ids(_model(pixels))
    assert _ids(_model(pixels, vocab=256)) == []


def test_a_nonlinear_input_has_no_limit_of_rank() -> None:
    assert _ids(_model(kind="nonlinear", vocab=30)) == []
    assert _ids(_model(kind="nonlinear"), measured_rank=64) == []


def test_missing_sizes_are_not_judged() -> None:
    unknown = replace(STACK, heads=None, depth=None)
    assert _ids(_model(unknown)) == []


def test_a_measured_rank_takes_the_place_of_the_limit() -> None:
    assert _ids(_model(), measured_rank=64) == ["low-rank-embedding"]
    assert _ids(_model(vocab=100), measured_rank=100) == ["vocabulary-bottleneck"]
    assert _ids(_model(), measured_rank=600) == []


def test_a_small_vocabulary_stays_one_where_the_weights_have_less_rank_still() -> None:
    found = _ids(_model(vocab=100), measured_rank=99)  # a row of zeros for padding
    assert sorted(found) == ["low-rank-embedding", "vocabulary-bottleneck"]
    narrow = _model(kind="factorised_lookup", inner=64)
    assert _ids(narrow, measured_rank=60) == ["low-rank-embedding"]


def test_more_layers_are_advised_only_where_somebody_trained_as_many() -> None:
    (bytes_,) = findings_of(_model(replace(STACK, depth=18), vocab=256))
    assert "or take a width of about 256 and 99 layers" in bytes_.fix
    esm = _finding("esm-1b", "vocabulary-bottleneck")
    assert "at a width of 33 a network of this size would have 49,648 layers" in esm.fix


def test_a_fix_is_for_the_input_that_the_model_has() -> None:
    assert "channels" in _finding("wav2vec2-base", "patch-bottleneck").fix
    assert "patches" in _finding("vit-h-14", "patch-bottleneck").fix
    assert "vectors" in _finding("decision-transformer-hopper", "patch-bottleneck").fix


def test_no_size_is_made_up_for_a_command_where_the_depth_is_not_known() -> None:
    (finding,) = findings_of(_model(replace(STACK, depth=None), vocab=100))
    assert "archfit plan" not in finding.fix


def test_the_commands_of_fixes_are_understood() -> None:
    commands = {
        command
        for model in zoo_models()
        for finding in findings_of(model)
        for command in re.findall(r"\((archfit plan [^)]*)\)", finding.fix)
    }
    assert len(commands) > 30
    for command in commands:
        made = CliRunner().invoke(program(()), [*shlex.split(command)[1:], "--json"])
        assert made.exit_code == 0, command
        assert json.loads(made.stdout)["bottleneck"]


def test_a_misprinted_size_is_not_judged() -> None:
    assert _ids(replace(_model(replace(STACK, heads=40)), doubtful=("heads",))) == []
    assert "attention-bottleneck" not in _ids(zoo_model("gpt3-xl"))


def _finding(name: str, id_: str) -> Finding:
    return next(found for found in findings_of(zoo_model(name)) if found.id == id_)


@pytest.mark.parametrize(
    ("name", "id_", "share"),
    [
        ("albert-xxlarge-v1", "low-rank-embedding", 0.25),
        ("esm-1b", "vocabulary-bottleneck", 0.25),
        ("t5-3b", "attention-bottleneck", 0.25),
        ("t5-11b", "attention-bottleneck", 0.45),
    ],
)
def test_the_papers_audits_come_out(name: str, id_: str, share: float) -> None:
    finding = _finding(name, id_)
    assert finding.severity == "high"
    assert finding.redundancy is not None
    assert finding.redundancy.low <= share <= finding.redundancy.high


def test_the_public_vit_huge_has_a_tighter_bottleneck_than_the_paper_says() -> None:
    assert zoo_model("vit-h-14").rank_limit == 588
    assert "588 values" in _finding("vit-h-14", "patch-bottleneck").evidence


def test_claims_are_reproduced_but_for_vit_huge() -> None:
    claims = checked_claims([audit_model(model) for model in zoo_models()])
    verdicts = {claim.model: claim.verdict.split(":")[0].split(" ")[0] for claim in claims}
    assert verdicts.pop("ViT-H/14") == "corrected"
    assert set(verdicts.values()) == {"reproduced"}
    assert len(verdicts) == 5


def test_a_claim_that_is_called_reproduced_says_that_its_number_lies_inside() -> None:
    claims = {one.model: one for one in checked_claims([audit_model(m) for m in zoo_models()])}
    for model, share, found in (
        ("ALBERT-xxlarge-v1", 25, "18% to 30% redundant, between measurements of the paper"),
        ("T5-3B", 25, "20% to 65% redundant, archfit's and the paper's measurements"),
        ("T5-11B", 45, "at least 40% redundant, archfit's and the paper's measurements"),
    ):
        assert claims[model].found == found
        assert claims[model].verdict.endswith(f"their {share} % lie inside")


def test_a_stack_is_judged_at_its_own_depth_and_an_unknown_one_as_deep() -> None:
    shares = []
    for depth in (6, 24, None):
        (finding,) = [
            found
            for found in findings_of(_model(replace(STACK, depth=depth), vocab=37))
            if found.id == "vocabulary-bottleneck"
        ]
        shares.append(finding.redundancy)
    assert [str(share) for share in shares] == ["at least 9%", "14% to 30%", "14% to 30%"]
    (wide,) = [
        found
        for found in findings_of(_model(replace(STACK, depth=6, heads=40)))
        if found.id == "attention-bottleneck"
    ]
    assert str(wide.redundancy) == "61% to 65%"


def test_every_published_model_is_audited_with_evidence_and_a_fix() -> None:
    for model in zoo_models():
        for finding in findings_of(model):
            assert finding.id in IDS
            assert finding.evidence
            assert finding.fix
