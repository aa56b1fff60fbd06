"""Findings of made models, of which we know what is wrong, and of those the papers speak of."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

import archfit.audit.findings
from archfit.advise.prior import FAR, TEXT, DepthOutlook, family_prior, known_families
from archfit.advise.redundancy import Redundancy
from archfit.audit.config import model_from_config
from archfit.audit.findings import (
    IDS,
    RULES,
    Finding,
    Subject,
    findings_of,
    good_depths,
)
from archfit.audit.model import InputKind, InputMap, Model, Parameters, Stack
from archfit.audit.zoo import zoo_model, zoo_models

STACK = Stack(  # 104M: trained networks of text are best at 10 to 50 layers
    role="decoder",
    depth=24,
    width=600,
    heads=15,
    head_dim=40,
    kv_heads=15,
    feed_forward=2400,
    block_weights=12 * 24 * 600**2,
    distinct_blocks=None,
)
SHALLOW = replace(STACK, depth=3, width=1664, heads=13, head_dim=128)  # 100M, for nobody
DEPTH_IDS = {"too-deep", "too-shallow"}


def _model(
    stack: Stack = STACK,
    *,
    kind: InputKind = "lookup",
    vocab: int | None = 50257,
    inner: int | None = None,
    dimensions: int | None = None,
    tables: int | None = None,
) -> Model:
    return Model(
        name="made",
        origin="here",
        stacks=(stack,),
        input=InputMap(kind=kind, vocab=vocab, inner=inner, dimensions=dimensions),
        is_tied=False,
        parameters=Parameters(blocks=None, embedding=tables, total=None),
    )


def _patches(stack: Stack = STACK, *, dimensions: int, inner: int | None = None) -> Model:
    return _model(stack, kind="linear_patch", vocab=None, dimensions=dimensions, inner=inner)


def _ids(model: Model, **measured: int) -> list[str]:
    return [finding.id for finding in findings_of(model, **measured)]


def _one(model: Model, id_: str, **measured: int) -> Finding:
    (finding,) = (found for found in findings_of(model, **measured) if found.id == id_)
    return finding


def test_a_shape_that_trained_networks_are_good_at_is_left_alone() -> None:
    assert _ids(_model()) == []


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (_model(SHALLOW, vocab=100), "vocabulary-bottleneck"),
        (_model(kind="factorised_lookup", inner=64), "low-rank-embedding"),
        (_model(SHALLOW, kind="factorised_lookup", inner=64, vocab=30), "vocabulary-bottleneck"),
        (_patches(SHALLOW, dimensions=192), "patch-bottleneck"),
        (_model(replace(STACK, heads=40)), "attention-bottleneck"),
        (_model(SHALLOW), "too-shallow"),
        (_model(replace(STACK, depth=96, width=96, heads=2, head_dim=48)), "too-deep"),
        (_model(replace(STACK, heads=75, head_dim=8)), "narrow-heads"),
        (_model(replace(STACK, heads=10, head_dim=60)), "off-gpu-sizes"),
    ],
)
def test_each_finding_is_found(model: Model, expected: str) -> None:
    assert expected in _ids(model)
    assert expected in IDS


def test_every_rule_says_its_own_words() -> None:
    assert len({rule["short"] for rule in RULES.values()}) == len(RULES)
    assert [id_ for id_ in IDS if "is_bottleneck" in RULES[id_]] == list(IDS[:4])


def test_one_more_rule_is_one_entry_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sentences are filled with what its function found; stacks are looked at one by one."""

    def odd_depth(subject: Subject) -> Finding | None:
        depth = subject.stack.depth or 0
        return subject.found("odd", "low", depth=depth) if depth % 2 else None

    rule = {"short": "odd", "evidence": "{depth} layers", "fix": "use {depth} + 1"}
    monkeypatch.setattr(archfit.audit.findings, "RULES", {"odd": rule})
    monkeypatch.setattr(archfit.audit.findings, "STACK_LOOKS", (odd_depth,))
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
        monkeypatch.setattr(f"archfit.audit.findings.{name}", lambda *_, **__: share)
    narrow = _one(_model(SHALLOW, vocab=599), "vocabulary-bottleneck")
    (wide,) = findings_of(_model(replace(STACK, heads=16)))
    assert (narrow.severity, wide.severity) == (severity, severity)
    assert narrow.redundancy is wide.redundancy is share


# ---- depths

Known = Callable[[str | None, str, int, int, float], tuple[DepthOutlook, float, bool]]


def _outlook(low: float, high: float, lost: float) -> DepthOutlook:
    """Best at 20 layers; 10 and 40 lose this share more than that."""
    return DepthOutlook(
        depth=20.0,
        low=low,
        high=high,
        expected_regret=0.002,
        regret_at_most=0.1,
        half_better=0.5,
        double_better=0.5,
        regrets=((1.0, 9.0), (10.0, 0.002 + lost), (20.0, 0.002), (40.0, 0.002 + lost)),
    )


def _told(monkeypatch: pytest.MonkeyPatch, known: Known) -> None:
    monkeypatch.setattr("archfit.audit.findings._known", known)


@pytest.mark.parametrize(("depth", "id_"), [(10, "too-shallow"), (40, "too-deep")])
@pytest.mark.parametrize(
    ("lost", "severity"), [(0.0024, None), (0.0026, "low"), (0.0149, "low"), (0.0151, "medium")]
)
def test_a_depth_is_judged_from_half_a_hundredth_of_a_bit_and_harder_from_three_hundredths(
    depth: int, id_: str, lost: float, severity: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 2 bits per byte a share of 0.0025 is 0.005 bits; one layer more or less is no finding."""
    _told(monkeypatch, lambda *_: (_outlook(11.5, 38.5, lost), 2.0, False))
    found = findings_of(_model(replace(STACK, depth=depth)))
    expected = [] if severity is None else [(id_, severity)]
    assert [(finding.id, finding.severity) for finding in found] == expected
    for finding in found:
        assumed = "if trained on 20 tokens per parameter or more"
        fact, _, reason = finding.evidence.partition(". ")
        assert fact.startswith(f"{depth} layers of width 600, {assumed}: a loss {100 * lost:.1f} %")
        assert "trained on text did best with 12 to 38 layers. " in reason
        width = {"too-deep": "more", "too-shallow": "less"}[id_]
        assert finding.fix.startswith(f"take 12 to 38 layers and {width} width")


def test_a_depth_among_those_that_are_as_good_as_the_best_is_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _told(monkeypatch, lambda *_: (_outlook(10.0, 40.0, 0.5), 2.0, False))
    for depth in (10, 40):
        assert _ids(_model(replace(STACK, depth=depth))) == []


@pytest.mark.parametrize(
    ("model", "first", "others"),
    [
        (_model(SHALLOW, vocab=255), None, len(known_families())),
        (_model(SHALLOW, vocab=256), TEXT, len(known_families()) - 3),  # not in letters
        (_model(SHALLOW, vocab=16_384), TEXT, len(known_families())),
        (_model(SHALLOW, vocab=16_385), TEXT, 2),  # and code, and all data
        (_patches(SHALLOW, dimensions=50_000), None, len(known_families())),
        (_model(SHALLOW, vocab=None), None, len(known_families())),
    ],
)
def test_a_depth_is_wrong_only_where_it_is_wrong_for_all_data_that_the_input_may_be(
    model: Model, first: str | None, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever family likes it, no finding; the words are those of the likeliest."""
    bad, good = (_outlook(10.5, 39.5, 0.5), 2.0, False), (_outlook(1.0, 99.0, 0.5), 2.0, False)
    asked: dict[str | None, None] = {}

    def known(family: str | None, *_: object) -> tuple[DepthOutlook, float, bool]:
        asked[family] = None
        return bad

    _told(monkeypatch, known)
    words = "text" if first == TEXT else "data of all families"
    assert f" trained on {words} did best" in _one(model, "too-shallow").evidence
    assert next(iter(asked)) == first
    assert len(asked) == 1 + others
    for liking in asked:
        _told(monkeypatch, lambda family, *_, liking=liking: good if family == liking else bad)
        assert not DEPTH_IDS & set(_ids(model))


def test_the_size_of_a_network_is_what_a_plan_asks_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and tables, but no more of tables than of blocks; two steps a doubling."""
    steps: list[int] = []

    def known(
        _: str | None, __: str, step: int, deepest: int, ___: float
    ) -> tuple[DepthOutlook, float, bool]:
        steps.append(step)
        assert deepest == 128
        return _outlook(1.0, 99.0, 0.0), 1.0, False

    _told(monkeypatch, known)
    stack = replace(STACK, depth=12, width=1024, heads=16, head_dim=64)  # 9 x 2^24 in blocks
    for tables in (None, 0, 7 << 24, 9 << 24, 1 << 40):
        findings_of(_model(stack, tables=tables))
    assert [*dict.fromkeys(steps)] == [54, 56]  # 27.17 doublings, 28, and 28.17 at the most


def test_smaller_networks_than_anybody_trained_are_not_judged_by_depth() -> None:
    tiny = replace(STACK, depth=80, width=16, heads=1, head_dim=16)  # 245,760
    assert _ids(_model(tiny)) == []
    assert _ids(_model(tiny, tables=4_239)) == []
    assert _ids(_model(tiny, tables=4_240)) == ["too-deep"]


def test_sizes_that_nobody_has_are_judged_all_the_same() -> None:
    monster = replace(STACK, depth=10**6, width=1 << 70, heads=1 << 60, head_dim=1 << 10)
    assert "too-deep" not in _ids(_model(monster))  # of 10^18 parameters more is known of none
    thousand = replace(STACK, depth=1000, width=64, heads=1, head_dim=64)
    assert "too-deep" in _ids(_model(thousand))
    assert DEPTH_IDS & set(_ids(_model(replace(SHALLOW, depth=1)))) == {"too-shallow"}


def test_where_nobody_has_looked_the_finding_says_so() -> None:
    assert "by extrapolation" not in _one(_model(SHALLOW), "too-shallow").evidence
    far = _one(_patches(SHALLOW, dimensions=5000), "too-shallow").evidence
    assert re.search(r"on data of all families did best with .* layers \(by extrapolation\)", far)


def test_a_deep_narrow_network_of_bytes_is_too_deep_for_all_data() -> None:
    config = {"model_type": "gpt2", "n_layer": 48, "n_embd": 64, "n_head": 1, "vocab_size": 257}
    model = model_from_config(config | {"n_positions": 1024}, name="deep", origin="here")
    (finding,) = findings_of(model)
    assert (finding.id, finding.severity) == ("too-deep", "medium")


def test_the_chart_has_depths_of_text_up_to_where_somebody_looked() -> None:
    sizes, found = zip(*good_depths(), strict=True)
    assert list(sizes) == sorted(sizes)
    assert all(each.low <= each.depth <= each.high for each in found)
    assert sizes[0] == pytest.approx(1e6, rel=0.2)
    last = FAR * family_prior(TEXT).largest
    assert last / 2 < sizes[-1] <= last
    assert found[-1].depth > 3 * found[0].depth


# ---- sizes of heads


def test_sizes_that_a_gpu_is_slow_at_are_named_with_the_next_and_what_that_costs() -> None:
    """Of 12 parts of a block, 4 go with the heads and the width, 8 with the width's square."""
    (heads,) = findings_of(_model(replace(STACK, heads=10, head_dim=60)))
    assert "Width 600 with heads of 60: one is no multiple of 8. " in heads.evidence
    assert heads.fix.startswith("width 600 with heads of 64, which costs 2.2 % more parameters")
    (width,) = findings_of(_model(replace(STACK, width=604)))
    cost = (4 * 600 * 608 + 8 * 608**2) / (4 * 600 * 604 + 8 * 604**2) - 1
    assert f"width 608 with heads of 40, which costs {100 * cost:.1f} % more" in width.fix
    assert {heads.severity, width.severity} == {"low"}
    assert _ids(_model(replace(STACK, width=608, heads=None, head_dim=None))) == []
    doubtful = replace(_model(replace(STACK, heads=10, head_dim=60)), doubtful=("heads",))
    assert _ids(doubtful) == []


@pytest.mark.parametrize(("width", "is_found"), [(258, False), (260, True)])
def test_small_networks_may_have_any_size(width: int, is_found: bool) -> None:
    """12 x 10 x 260^2 is 8.1M, from which on plans have multiples of 8; 7.99M with 258."""
    small = replace(STACK, depth=10, width=width, heads=2, head_dim=width // 2)
    assert _ids(_model(small, vocab=512)) == ["off-gpu-sizes"] * is_found


def test_heads_are_narrow_below_16() -> None:
    assert _ids(_model(replace(STACK, width=608, heads=38, head_dim=16))) == []
    narrow = replace(STACK, width=608, heads=76, head_dim=8)
    (finding,) = findings_of(_model(narrow))
    assert (finding.id, finding.severity) == ("narrow-heads", "medium")
    assert finding.evidence.startswith("Heads of 8 at width 608 are narrow. ")
    assert _ids(replace(_model(narrow), doubtful=("heads",))) == []
    sizes = {stack.head_dim for model in zoo_models() for stack in model.stacks} - {None}
    assert min(size for size in sizes if size) == 32
    assert "No published model of the table has heads below 32" in finding.evidence


def test_a_config_with_one_head_of_8_has_a_narrow_head() -> None:
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 1, "vocab_size": 257}
    model = model_from_config(config | {"n_positions": 64}, name="tiny", origin="here")
    assert _ids(model) == ["narrow-heads"]


# ---- bottlenecks


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (_model(SHALLOW, vocab=1664), []),
        (_model(SHALLOW, vocab=1663), ["vocabulary-bottleneck"]),
        (_model(vocab=599), []),  # as deep as is good
        (_model(kind="factorised_lookup", inner=600), []),
        (_model(kind="factorised_lookup", inner=599), ["low-rank-embedding"]),
        (_model(kind="factorised_lookup", inner=599, vocab=None), ["low-rank-embedding"]),
        (_patches(SHALLOW, dimensions=1664), []),
        (_patches(SHALLOW, dimensions=1663), ["patch-bottleneck"]),
        (_patches(dimensions=599), []),
        (_patches(SHALLOW, dimensions=192, inner=64), ["patch-bottleneck"]),
        (_model(replace(STACK, heads=25, head_dim=24)), []),
        (_model(replace(STACK, heads=26, head_dim=24)), ["attention-bottleneck"]),
        (_model(replace(STACK, heads=601, head_dim=1)), ["attention-bottleneck"]),
    ],
)
def test_a_bottleneck_begins_one_below_the_width_and_one_above_it(
    model: Model, expected: list[str]
) -> None:
    assert [id_ for id_ in _ids(model) if "bottleneck" in id_ or "rank" in id_] == expected


def test_few_tokens_are_a_finding_only_where_the_network_could_be_deeper() -> None:
    """Depth is what a small vocabulary asks for, in theory and in the atlas."""
    assert set(_ids(_model(SHALLOW, vocab=100))) == {"vocabulary-bottleneck", "too-shallow"}
    assert _ids(_model(vocab=100)) == []
    deep = replace(STACK, depth=48, width=64, heads=1, head_dim=64)
    assert _ids(_model(deep, vocab=257)) == ["too-deep"]
    assert _ids(_model(deep, vocab=33)) == []  # DNA, read often, may want as much
    unknown = replace(SHALLOW, depth=None)
    assert _ids(_model(unknown, vocab=100)) == []
    assert _ids(zoo_model("esm-1b")) == _ids(zoo_model("vit-h-14")) == []


def test_a_measured_rank_is_a_finding_from_one_below_what_the_input_allows() -> None:
    assert _ids(_model(), measured_rank=599) == ["low-rank-embedding"]
    assert _ids(_model(), measured_rank=600) == []
    (finding,) = findings_of(_model(), measured_rank=64)
    assert finding.evidence.startswith("The embedding's weights have rank 64 of 600 (11 %). ")
    assert finding.fix.endswith("or store it factorised with an inner size of 64")
    assert finding.stack == "input"


def test_findings_come_with_the_severest_first_and_then_in_the_order_of_the_model() -> None:
    """A tie leaves the input before the stacks, and attention before depth."""
    stack = replace(SHALLOW, heads=26)
    found = [(f.id, f.severity) for f in findings_of(_model(stack, vocab=8))]
    assert found == [
        ("vocabulary-bottleneck", "high"),
        ("attention-bottleneck", "high"),
        ("too-shallow", "medium"),
    ]
    mild = [(f.id, f.severity) for f in findings_of(_model(stack, vocab=1600))]
    assert mild == [
        ("attention-bottleneck", "high"),
        ("too-shallow", "medium"),
        ("vocabulary-bottleneck", "low"),
    ]


def test_a_nonlinear_input_has_no_limit_of_rank() -> None:
    assert _ids(_model(kind="nonlinear", vocab=30)) == []
    assert _ids(_model(SHALLOW, kind="nonlinear", vocab=30)) == ["too-shallow"]
    assert _ids(_model(kind="nonlinear"), measured_rank=64) == []


def test_missing_sizes_are_not_judged() -> None:
    unknown = replace(SHALLOW, heads=None, depth=None)
    assert _ids(_model(unknown)) == []


def test_a_measured_rank_takes_the_place_of_the_limit() -> None:
    assert _ids(_model(), measured_rank=64) == ["low-rank-embedding"]
    assert "low-rank-embedding" not in _ids(_model(SHALLOW, vocab=100), measured_rank=100)
    assert _ids(_model(), measured_rank=600) == []


def test_a_small_vocabulary_stays_one_where_the_weights_have_less_rank_still() -> None:
    found = _ids(_model(SHALLOW, vocab=100), measured_rank=99)  # a row of zeros for padding
    assert sorted(found) == ["low-rank-embedding", "too-shallow", "vocabulary-bottleneck"]
    narrow = _model(kind="factorised_lookup", inner=64)
    assert _ids(narrow, measured_rank=60) == ["low-rank-embedding"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("linear_patch", "larger patches"),
        ("linear_on_conv_features", "end the convolutional stem in 1,664 channels or more"),
        ("linear_continuous", "embed the vectors by a small network"),
    ],
)
def test_a_fix_is_for_the_input_that_the_model_has(kind: InputKind, words: str) -> None:
    patch = _one(_model(SHALLOW, kind=kind, vocab=None, dimensions=192), "patch-bottleneck")
    assert words in patch.fix
    assert patch.fix.endswith(", or take more layers and less width")
    assert patch.evidence.endswith("measured for tokens, not for values")


def test_a_misprinted_size_is_not_judged() -> None:
    assert _ids(replace(_model(replace(STACK, heads=40)), doubtful=("heads",))) == []
    assert "attention-bottleneck" not in _ids(zoo_model("gpt3-xl"))


def test_a_stack_is_judged_at_its_own_depth_and_an_unknown_one_as_deep() -> None:
    shares = []
    for depth in (6, 24, None):
        model = _model(replace(STACK, depth=depth), kind="factorised_lookup", inner=37)
        shares.append(_one(model, "low-rank-embedding").redundancy)
    assert [str(share) for share in shares] == ["at least 9 %", "14 to 30 %", "14 to 30 %"]
    wide = _one(_model(replace(STACK, depth=6, heads=60)), "attention-bottleneck")
    assert str(wide.redundancy) == "61 to 65 %"


# ---- published models


@pytest.mark.parametrize(
    ("name", "id_", "share"),
    [
        ("albert-xxlarge-v1", "low-rank-embedding", 0.25),
        ("t5-3b", "attention-bottleneck", 0.25),
        ("t5-11b", "attention-bottleneck", 0.45),
    ],
)
def test_the_papers_audits_come_out(name: str, id_: str, share: float) -> None:
    findings = [found for found in findings_of(zoo_model(name)) if found.id == id_]
    assert findings
    for finding in findings:  # T5 has two stacks
        assert finding.severity == "high"
        assert finding.redundancy is not None
        assert finding.redundancy.low <= share <= finding.redundancy.high


@pytest.mark.parametrize(
    "name",
    [
        *("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "gpt3-175b", "gpt-neox-20b"),
        *("llama-2-7b", "llama-2-70b", "llama-3-8b", "llama-3.1-405b", "mistral-7b-v0.1"),
        *("bert-base-uncased", "roberta-large", "t5-base", "pythia-1.4b", "opt-125m"),
        *("smollm2-135m", "mobilellm-125m", "tinyllama-1.1b", "esm2-650m", "vit-b-16"),
        *("sparse-transformer-cifar10", "imagegpt-small", "dnabert-6", "musicgen-large"),
    ],
)
def test_models_that_turned_out_well_have_no_finding(name: str) -> None:
    assert _ids(zoo_model(name)) == []


def test_every_published_model_is_audited_with_evidence_and_a_fix() -> None:
    for model in zoo_models():
        for finding in findings_of(model):
            assert finding.id in IDS
            assert finding.evidence
            assert finding.fix
            assert "{" not in finding.evidence + finding.fix
            fact, _, reason = finding.evidence.partition(". ")  # an answer says the first alone
            assert len(fact) < 160
            assert reason


def test_layers_that_share_their_weights_are_not_judged_by_depth() -> None:
    """More of them cost no parameters, so that depths at equal size say nothing."""
    for depth_stack in (SHALLOW, replace(STACK, depth=96, width=96, heads=2, head_dim=48)):
        for distinct, expected in ((depth_stack.depth, 1), (1, 0)):
            found = _ids(_model(replace(depth_stack, distinct_blocks=distinct)))
            assert len(DEPTH_IDS & set(found)) == expected
    assert _ids(zoo_model("albert-xxlarge-v1")) == ["low-rank-embedding"]


def test_few_published_models_have_a_depth_that_is_found_wrong() -> None:
    """Their makers tried depths; a rule that blames many of them would be wrong itself."""
    found = {model.name for model in zoo_models() if DEPTH_IDS & set(_ids(model))}
    assert 1 <= len(found) < 0.25 * len(zoo_models())


def test_all_published_models_are_audited_in_seconds() -> None:
    """Depths are looked up at steps of size, and most models need the likeliest family alone."""
    code = (
        "import os, time; os.environ['OPENBLAS_NUM_THREADS'] = '1'; "
        "from archfit.audit.zoo import zoo_models; "
        "from archfit.audit.findings import findings_of; "
        "[findings_of(model) for model in zoo_models()]; print(time.process_time())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(done.stdout) < 5
