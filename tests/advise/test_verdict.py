"""What a check says about the plan, for runs whose losses are made up."""

from dataclasses import replace

import pytest
from archfit.advise.design import networks
from archfit.advise.verdict import Verdict, verdict_of
from archfit.report.advice_words import check_sentences, headline, limits_of

from archfit.advise.planner import Plan
from tests_advice import made_check, plan_of

SHARE = 0.02
NOISE = (-0.01, 0.0, 0.01)
FASTA = {"recommended": 2.0, "text-shaped": 2.3, "shallower": 2.2, "deeper": 2.4}


def judged(plan: Plan, means: dict[str, float], share: float = SHARE) -> Verdict:
    bits = {name: tuple(mean + noise for noise in NOISE) for name, mean in means.items()}
    return verdict_of(plan, made_check(plan, share, bits))


def test_a_plan_that_leads_with_a_repair_holds_if_the_repair_is_better_than_all() -> None:
    plan = plan_of("fasta")
    assert plan.leads_with_repairs
    assert judged(plan, FASTA | {"kmer-2": 1.5, "convolution of 3": 4.0}).status == "held"
    assert judged(plan, FASTA | {"kmer-2": 2.5, "convolution of 3": 4.0}).status == "refuted"
    undecided = judged(plan, FASTA | {"kmer-2": 1.995, "convolution of 3": 4.0})
    assert undecided.status == "undecided"
    assert undecided.claims[1].seeds_needed is not None


def test_the_advice_rests_on_the_repair_that_it_leads_with_and_not_on_another() -> None:
    plan = plan_of("fasta")
    verdict = judged(plan, FASTA | {"kmer-2": 2.5, "convolution of 3": 1.5})
    statuses = {claim.about: claim.status for claim in verdict.claims}
    assert statuses == {"recommended": "held", "kmer-2": "refuted", "convolution of 3": "held"}
    assert verdict.status == "refuted"


def test_a_plan_whose_repair_could_not_be_had_is_undecided_however_its_depth_fares() -> None:
    plan = plan_of("fasta")
    for means in (FASTA, FASTA | {"convolution of 3": 1.5}):
        verdict = judged(plan, means)
        assert verdict.claims[0].status == "held"
        assert verdict.status == "undecided"
        assert headline(plan, verdict) == "The check could not test what is advised"
    series = plan_of("series")
    assert series.leads_with_repairs  # with more bins, which no check can have
    share = 0.1
    names = [one.name for one in networks(series, share) if one.role != "recommended"]
    bound = judged(series, {"recommended": 2.0} | dict.fromkeys(names, 3.0), share=share)
    assert (bound.rests_on, bound.status) == (None, "undecided")
    trained = made_check(series, share, {})
    assert any("Not checked: more bins" in s for s in limits_of(series, trained, bound))


def test_seeds_that_would_tell_are_those_that_decide_the_claim() -> None:
    plan = plan_of("bytes")

    def needed(shallower: float, deeper: float) -> int | None:
        verdict = judged(
            plan, {"recommended": 2.0, "shallower": shallower, "deeper": deeper}, share=0.2
        )
        assert verdict.claims[0].status == "undecided"
        return verdict.claims[0].seeds_needed

    one, two = needed(2.008, 3.0), needed(2.004, 3.0)
    assert one is not None
    assert two is not None
    assert 3 < one < two
    assert needed(2.008, 2.004) == two  # held needs both to be worse
    assert needed(1.992, 2.004) == one  # one that is better refutes
    assert needed(2.0, 2.004) is None  # a tie stays undecided, whatever the other does


def test_runs_that_diverged_are_named() -> None:
    plan = plan_of("fasta")
    trained = made_check(plan, SHARE, {n: (m, m + 0.01, m - 0.01) for n, m in FASTA.items()})
    lost = trained.records[0]
    lost = replace(lost, status="diverged", diverged_at_step=100, evaluations=())
    trained = replace(trained, records=(lost, *trained.records[1:]))
    said = " ".join(limits_of(plan, trained, verdict_of(plan, trained)))
    shape = lost.spec.architecture
    assert f"networks: 1 of recommended ({shape.depth} x {shape.width})." in said


def test_a_depth_holds_only_if_all_others_are_worse_and_fails_if_one_is_better() -> None:
    plan = plan_of("bytes")  # no bottleneck
    held = judged(plan, {"recommended": 2.0, "shallower": 2.1, "deeper": 2.1}, share=0.2)
    assert held.status == "held"
    one_better = {"recommended": 2.0, "shallower": 1.9, "deeper": 2.1}
    assert judged(plan, one_better, share=0.2).status == "refuted"
    tie = judged(plan, {"recommended": 2.0, "shallower": 2.001, "deeper": 2.1}, share=0.2)
    assert tie.status == "undecided"


def test_networks_are_listed_from_the_best_with_their_difference_from_the_recommended_one() -> None:
    verdict = judged(plan_of("fasta"), FASTA | {"kmer-2": 1.5})
    names = [one.network.network.name for one in verdict.results]
    assert names == ["kmer-2", "recommended", "shallower", "text-shaped", "deeper"]
    found = verdict.results[2].against
    assert found is not None
    assert found.estimate.value == pytest.approx(0.2)
    assert found.estimate.contains(0.2)
    assert verdict.results[1].against is None


def test_a_bottleneck_that_is_none_at_this_size_is_neither_refuted_nor_held() -> None:
    plan = plan_of("text")
    worse = {"recommended": 2.0, "shallower": 1.5, "deeper": 2.4, "bpe-512": 1.2}
    verdict = judged(plan, worse, share=0.005)
    assert verdict.binds is False
    assert verdict.status == "undecided"
    words = "The check was too small to test the bottleneck, but bpe-512"
    assert headline(plan, verdict).startswith(words)


def test_the_sentences_name_the_best_network_and_its_counterpart_at_the_size_of_the_plan() -> None:
    plan = plan_of("fasta")
    trained = made_check(plan, SHARE, {n: (m, m + 0.01, m - 0.01) for n, m in FASTA.items()})
    said = check_sentences(plan, trained, verdict_of(plan, trained))
    words = "The network recommended without repair was the best with 2.0000 bits per byte"
    assert any(words in sentence for sentence in said), said
    assert any("is 0.2000 (10.0%) worse (90 %: " in sentence for sentence in said), said
    better = {n: (m, m + 0.01, m - 0.01) for n, m in (FASTA | {"text-shaped": 1.5}).items()}
    trained = made_check(plan, SHARE, better)
    said = check_sentences(plan, trained, verdict_of(plan, trained))
    text = plan.text_shape
    assert any(
        "The best was text-shaped" in s and f"about {round(text.depth)} x 2" in s for s in said
    ), said


def test_without_the_recommended_network_nothing_can_be_said() -> None:
    plan = plan_of("fasta")
    with pytest.raises(ValueError, match=r"\(0 diverged\), so there is nothing to compare"):
        judged(plan, {"text-shaped": 2.0, "deeper": 2.0})
    with pytest.raises(ValueError, match="nothing to compare"):
        judged(plan, {"recommended": 2.0})
