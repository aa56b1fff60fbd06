"""Findings of made models, of which we know what is wrong, and of those the papers speak of."""

import json
import re
import shlex
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import archfit.audit.findings
from archfit.advise.law import IdealShape
from archfit.advise.redundancy import Redundancy
from archfit.audit.findings import IDS, RULES, Finding, Found, Rule, Subject, findings_of
from archfit.audit.model import InputKind, InputMap, Model, Parameters, Stack
from archfit.audit.zoo import zoo_model, zoo_models
from archfit.cli.app import program

STACK = Stack(
    role="decoder",
    depth=24,
    width=600,  # law: 600 at 24.5 layers
    heads=15,
    head_dim=40,
    kv_heads=15,
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
        stacks=(stack,),
        input=InputMap(kind=kind, vocab=vocab, inner=inner, dimensions=dimensions),
        is_tied=False,
        parameters=Parameters(blocks=None, embedding=None, total=None),
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
        (_model(replace(STACK, heads=10, head_dim=60)), "off-gpu-sizes"),
    ],
)
def test_each_finding_is_found(model: Model, expected: str) -> None:
    assert expected in _ids(model)
    assert expected in IDS


def test_every_rule_says_its_own_words() -> None:
    assert len({rule.id for rule in RULES}) == len({rule.short for rule in RULES}) == len(RULES)
    assert [rule.id for rule in RULES if rule.is_bottleneck] == list(IDS[:4])


def test_one_more_rule_is_one_entry_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sentences are filled with what its function found; stacks are looked at one by one."""

    def odd_depth(subject: Subject) -> Found | None:
        depth = subject.stack.depth or 0
        return Found(severity="low", words={"depth": depth}) if depth % 2 else None

    rule = Rule(
        id="odd", short="odd", look=odd_depth, evidence="{depth} layers", fix="use {depth} + 1"
    )
    monkeypatch.setattr(archfit.audit.findings, "RULES", (rule,))
    three = replace(STACK, depth=3, role="encoder")
    (found,) = findings_of(replace(_model(), stacks=(STACK, three)))
    assert found == Finding(
        id="odd",
        severity="low",
        stack="encoder",
        redundancy=None,
        evidence="3 layers",
        fix="use 3 + 1",
    )


@pytest.mark.parametrize(
    ("low", "high", "severity"),
    [
        (0.15, 0.15, "high"),
        (0.149, 0.15, "medium"),
        (0.10, 0.20, "high"),  # the middle counts
        (0.05, 0.05, "medium"),
        (0.049, 0.05, "low"),
        (0.15, 1.0, "high"),  # beyond the measurements: what is supported
        (0.149, 1.0, "medium"),
    ],
)
def test_severity_changes_at_15_and_5_percent_redundant(
    low: float, high: float, severity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = Redundancy(low=low, high=high, basis="measured by archfit", source="runs")
    for name in ("rank_redundancy", "attention_redundancy"):
        monkeypatch.setattr(f"archfit.audit.findings.{name}", lambda *_: share)
    (narrow,) = findings_of(_model(vocab=599))
    (wide,) = findings_of(_model(replace(STACK, heads=16)))
    assert (narrow.severity, wide.severity) == (severity, severity)
    assert narrow.redundancy is wide.redundancy is share


@pytest.mark.parametrize(
    ("depth", "on_the_law", "expected"),
    [
        (20, 30.0, []),  # exactly 1.5 times
        (20, 30.1, [("shallower-than-law", "low")]),
        (20, 60.0, [("shallower-than-law", "low")]),
        (20, 60.1, [("shallower-than-law", "medium")]),
        (30, 20.0, []),
        (30, 19.9, [("deeper-than-law", "low")]),
        (30, 10.0, [("deeper-than-law", "low")]),
        (30, 9.9, [("deeper-than-law", "medium")]),
    ],
)
def test_depth_is_judged_from_half_as_much_again_and_harder_from_three_times(
    depth: int,
    on_the_law: float,
    expected: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law = IdealShape(depth=on_the_law, width=500.0)
    monkeypatch.setattr("archfit.audit.findings.ideal_shape", lambda *_: law)
    found = findings_of(_model(replace(STACK, depth=depth)))
    assert [(finding.id, finding.severity) for finding in found] == expected
    for finding in found:
        assert finding.fix.startswith(f"a shape near {on_the_law:.1f} x 500 of the same size")
        factor = max(depth / on_the_law, on_the_law / depth)
        assert f"the law gives {on_the_law:.1f} x 500, {factor:.2g} times" in finding.evidence


def test_the_law_is_asked_for_12_l_d2_with_the_rank_that_the_input_has() -> None:
    """Beside text a vision stack has an input of its own; two stacks of text share one."""
    deep = replace(STACK, depth=128, width=256, heads=4, head_dim=64)
    pixels = _model(deep, vocab=256)
    assert _ids(pixels) == []
    both = replace(pixels, stacks=(deep, replace(deep, role="vision")))
    assert [(found.id, found.stack) for found in findings_of(both)] == [
        ("deeper-than-law", "vision")
    ]
    assert _ids(replace(pixels, stacks=(replace(deep, role="vision"),))) == []
    assert _ids(replace(pixels, stacks=(deep, replace(deep, role="encoder")))) == []
    (shallow,) = findings_of(_model(replace(STACK, depth=10)))
    assert "for 12 L d^2 = 4.32e+07 the law gives 18.8 x 438, 1.9 times as deep" in shallow.evidence


def test_sizes_that_a_gpu_is_slow_at_are_named_with_the_next_and_what_that_costs() -> None:
    """Of 12 parts of a block, 4 go with the heads and the width, 8 with the width's square."""
    (heads,) = findings_of(_model(replace(STACK, heads=10, head_dim=60)))
    assert "width 600 with heads of 60: one is no multiple of 8" in heads.evidence
    assert heads.fix.startswith("width 600 with heads of 64, which costs 2.2% more parameters")
    (width,) = findings_of(_model(replace(STACK, width=604)))
    cost = (4 * 600 * 608 + 8 * 608**2) / (4 * 600 * 604 + 8 * 604**2) - 1
    assert f"width 608 with heads of 40, which costs {cost:.1%} more" in width.fix
    assert {heads.severity, width.severity} == {"low"}
    assert _ids(_model(replace(STACK, width=608, heads=None, head_dim=None))) == []
    doubtful = replace(_model(replace(STACK, heads=10, head_dim=60)), doubtful=("heads",))
    assert _ids(doubtful) == []


@pytest.mark.parametrize(("depth", "is_below"), [(5, True), (6, False)])
def test_the_threshold_is_the_logarithm_of_the_width_to_base_3(depth: int, is_below: bool) -> None:
    """log3(729) is 6."""
    found = findings_of(_model(replace(STACK, depth=depth, width=729)))
    below = [finding for finding in found if finding.id == "below-depth-threshold"]
    assert bool(below) == is_below
    for finding in below:
        assert "5 layers at width 729: below log3(width) = 6.0," in finding.evidence
        assert (finding.severity, finding.stack) == ("medium", "decoder")
        assert finding.fix == "use 6 layers or more and less width"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (_model(vocab=600), []),
        (_model(vocab=599), ["vocabulary-bottleneck"]),
        (_model(kind="factorised_lookup", inner=600), []),
        (_model(kind="factorised_lookup", inner=599), ["low-rank-embedding"]),
        (_model(kind="factorised_lookup", inner=599, vocab=None), ["low-rank-embedding"]),
        (_model(kind="linear_patch", vocab=None, dimensions=600), []),
        (_model(kind="linear_patch", vocab=None, dimensions=599), ["patch-bottleneck"]),
        (_model(kind="linear_patch", vocab=None, inner=64, dimensions=192), ["patch-bottleneck"]),
        (_model(replace(STACK, heads=75, head_dim=8)), []),
        (_model(replace(STACK, heads=76, head_dim=8)), ["attention-bottleneck"]),
        (_model(replace(STACK, heads=601, head_dim=1)), ["attention-bottleneck", "off-gpu-sizes"]),
    ],
)
def test_a_bottleneck_begins_one_below_the_width_and_one_above_it(
    model: Model, expected: list[str]
) -> None:
    assert _ids(model) == expected


def test_a_measured_rank_is_a_finding_from_one_below_what_the_input_allows() -> None:
    assert _ids(_model(), measured_rank=599) == ["low-rank-embedding"]
    assert _ids(_model(), measured_rank=600) == []
    (finding,) = findings_of(_model(), measured_rank=64)
    assert finding.evidence.startswith("its weights have rank 64 of 600 (ratio 0.107); ")
    assert finding.fix.endswith("or store it factorised with an inner size of 64")
    assert finding.stack == "input"


def test_findings_come_with_the_severest_first_and_then_in_the_order_of_the_model() -> None:
    """A tie leaves the input before the stacks, and attention before depth."""
    stack = replace(STACK, depth=5, heads=40)
    found = [(f.id, f.severity) for f in findings_of(_model(stack, vocab=37))]
    depth = [("below-depth-threshold", "medium"), ("shallower-than-law", "low")]
    assert found == [("vocabulary-bottleneck", "high"), ("attention-bottleneck", "high"), *depth]
    mild = [(f.id, f.severity) for f in findings_of(_model(stack, vocab=590))]
    assert mild[0] == ("attention-bottleneck", "high")
    assert mild[2:] == [("vocabulary-bottleneck", "low"), ("shallower-than-law", "low")]


def test_a_fix_names_the_shape_of_the_same_size_and_the_command_that_plans_it() -> None:
    narrow = _model(kind="factorised_lookup", inner=64)
    (finding,) = findings_of(narrow)
    size = 12 * 24 * 600**2
    assert finding.fix.startswith("widen the inner size to 600; at a width of 64 a network of this")
    assert f"(archfit plan --block-params {size} --rank 64 --vocab 50257)" in finding.fix
    nameless = _model(kind="factorised_lookup", inner=64, vocab=None)
    assert findings_of(nameless)[0].fix.endswith(f"--block-params {size} --rank 64)")
    (patch,) = findings_of(_model(kind="linear_patch", vocab=None, dimensions=192))
    assert patch.fix.endswith(f"(archfit plan --block-params {size} --patch 192)")
    assert patch.evidence.endswith("here, and measured for tokens, not for values")


@pytest.mark.parametrize(("layers", "is_advised"), [(128.0, True), (128.1, False)])
def test_more_layers_than_anybody_trained_are_not_advised(
    layers: float, is_advised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = IdealShape(depth=layers, width=100.0)
    monkeypatch.setattr("archfit.audit.findings.ideal_shape", lambda *_: law)
    fix = next(f.fix for f in findings_of(_model(vocab=100)) if f.stack == "input")
    assert (", or take a width of about 100 and 128 layers" in fix) == is_advised
    assert ("; at a width of 100 a network of this size would have" in fix) != is_advised


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
        for found in findings_of(_model(replace(STACK, depth=6, heads=60)))
        if found.id == "attention-bottleneck"
    ]
    assert str(wide.redundancy) == "61% to 65%"


def test_every_published_model_is_audited_with_evidence_and_a_fix() -> None:
    for model in zoo_models():
        for finding in findings_of(model):
            assert finding.id in IDS
            assert finding.evidence
            assert finding.fix
