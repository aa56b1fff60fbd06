"""The networks of a check: the plan itself, or the same shapes smaller."""

import math

import pytest
from archfit.advise.design import Network, binds, networks, untested

from archfit.advise.planner import Plan
from archfit.data.retokenise import InBpe, InKmers
from tests_advice import plan_of

KINDS = ["fasta", "text", "images", "bytes"]


def by_role(plan: Plan, share: float) -> dict[str, Network]:
    return {one.role: one for one in networks(plan, share) if one.role != "repaired"}


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_is_shrunk_the_networks_are_those_of_the_plan(kind: str) -> None:
    plan = plan_of(kind)
    recommended, *_ = networks(plan, 1.0)
    assert recommended.role == "recommended"
    assert (recommended.depth, recommended.width) == (plan.shape.depth, plan.shape.width)
    repaired = [one for one in networks(plan, 1.0) if one.role == "repaired"]
    shapes = [(one.shape.depth, one.shape.width) for one in plan.repairs]
    assert [(one.depth, one.width) for one in repaired] == shapes


def test_a_repair_is_read_in_the_tokens_that_the_plan_names() -> None:
    (kmers, patches) = (one for one in networks(plan_of("fasta"), 0.1) if one.role == "repaired")
    assert kmers.tokens == InKmers(k=2)
    assert (patches.tokens.label, patches.patch) == ("as given", math.ceil(patches.width / 24))
    bpe = next(one for one in networks(plan_of("text"), 0.1) if one.role == "repaired")
    assert bpe.tokens == InBpe(vocab=512)


@pytest.mark.parametrize("share", [0.3, 0.05, 0.01])
@pytest.mark.parametrize("kind", KINDS)
def test_rivals_have_the_blocks_of_the_recommended_network_and_depths_of_their_own(
    kind: str, share: float
) -> None:
    plan = plan_of(kind)
    rivals = by_role(plan, share)
    assert len({one.depth for one in rivals.values()}) == len(rivals) >= 2
    wanted = share * plan.shape.block_params
    for one in rivals.values():
        exact = math.sqrt(wanted / (12 * one.depth))
        assert abs(one.width - exact) <= 1 + 1e-9  # the nearest even width
    if "shallower" in rivals:
        assert rivals["shallower"].depth == rivals["recommended"].depth // 2


def test_a_capped_network_is_as_wide_as_the_rank_and_the_text_shape_keeps_its_ratio() -> None:
    plan, share = plan_of("fasta"), 0.02
    found = by_role(plan, share)
    assert binds(plan, share)
    assert abs(found["recommended"].width - 24) <= 2
    text = plan.text_shape
    assert found["text-shaped"].depth == round(text.depth * share ** (1 / 3))
    ratio = found["text-shaped"].width / found["text-shaped"].depth
    assert ratio == pytest.approx(text.width / text.depth, rel=0.3)  # depths are whole


def test_a_plan_of_two_layers_is_not_shrunk_to_the_one_layer_of_its_rival() -> None:
    plan = plan_of("fasta", params=60_000, used=17, max_depth=4, context=1024)
    assert (plan.shape.depth, round(plan.text_shape.depth)) == (2, 1)
    found = by_role(plan, 0.25)
    assert (found["recommended"].depth, found["text-shaped"].depth) == (2, 1)


@pytest.mark.parametrize("used", [4, 8, 24])
def test_no_rival_is_larger_because_networks_cannot_be_narrower(used: int) -> None:
    plan = plan_of("fasta", used=used)
    share = 6_000 / plan.shape.block_params
    sizes = [12 * one.depth * one.width**2 for one in by_role(plan, share).values()]
    assert max(sizes) < 1.35 * min(sizes)  # widths are even, and small ones coarse


def test_where_the_rank_does_not_bind_at_the_smaller_size_nothing_is_made_deeper_for_it() -> None:
    plan, share = plan_of("text"), 0.005
    assert plan.bottleneck is not None
    assert not binds(plan, share)
    text = max(2, round(plan.text_shape.depth * share ** (1 / 3)))
    assert by_role(plan, share)["recommended"].depth == text


def test_without_a_bottleneck_there_is_no_text_shape_beside_the_plan() -> None:
    plan = plan_of("bytes", used=257)
    assert plan.bottleneck is None
    assert set(by_role(plan, 0.1)) <= {"recommended", "shallower", "deeper"}


def test_a_repair_that_finished_data_cannot_have_is_named() -> None:
    series = plan_of("series")
    assert untested(series) == ("bins",)
    assert untested(plan_of("text")) == ()
