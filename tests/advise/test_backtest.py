"""Back-tests: planted best depths, rules scored where they can be, nobody scored on luck."""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from archfit.advise.backtest import (
    ALL_GRIDS,
    ATLAS,
    LADDER,
    NEAR_SIZE,
    PRIOR,
    UNSEEN,
    Backtest,
    atlas_settings,
    backtest,
    public_settings,
)
from archfit.advise.prior import shipped_prior
from archfit.advise.prior_runs import grid_settings, schedule_groups
from archfit.fit.atlas import Atlas, AtlasKind, AtlasRun, read_atlas
from archfit.report.backtest_document import backtest_document
from archfit.report.document import WIDE, written
from archfit.sweep.named import named_sweep
from archfit.sweep.sweep import Corpus
from tests_curves import record
from tests_said import unwrapped

NATS = 3 * math.log(2)  # of a token that records take for a bit of each byte


def planted_atlas(best: float, noise: float) -> Atlas:
    """Families of the shipped prior, all with one best depth."""
    families = ("DNA", "protein", "music", "signal")
    random = np.random.default_rng(0)
    kinds, runs = [], []
    for at, family in enumerate(families):
        corpus = Corpus(label="x", kind="abc", vocab=28, hash=f"{at:064x}", folder="")
        kinds.append(
            AtlasKind(name=f"k{at}", family=family, unit="byte", source="none", licence="MIT")
        )
        for spec in named_sweep("atlas", "small", [corpus], seeds=[0, 1], changes={}).specs:
            shape = spec.architecture
            away = math.log(shape.depth / best)
            bits = 2 - 0.2 * math.log(shape.params / 1e5) + 0.05 * away**2
            bits += noise * random.standard_normal()
            made = record(shape, bits * NATS, spec.seed, recipe=spec.recipe)
            made = replace(made, spec=replace(made.spec, data_hash=corpus.hash))
            runs.append(AtlasRun(kind=f"k{at}", vocabulary="characters", record=made))
    return Atlas(kinds=tuple(kinds), runs=tuple(runs))


@pytest.fixture(scope="module")
def planted() -> Backtest:
    (found,) = backtest(planted_atlas(8.0, 0.004), (ATLAS,))
    return found


def test_a_rule_that_is_right_loses_nothing_and_others_what_was_planted(planted: Backtest) -> None:
    scores = {score.rule: score for score in planted.scores}
    assert scores["always 8 layers"].mean == pytest.approx(0, abs=0.004)
    assert scores["always 4 layers"].mean == pytest.approx(0.05 * math.log(2) ** 2, abs=0.008)
    assert scores["always 24 layers"].mean == pytest.approx(0.05 * math.log(3) ** 2, abs=0.012)
    gains = [score.more.value for score in planted.scores if score.more.value is not None]
    assert gains == sorted(gains)


def test_a_ladder_on_smaller_networks_comes_near(planted: Backtest) -> None:
    scores = {score.rule: score for score in planted.scores}
    ladder, prior = scores[LADDER], scores[PRIOR]
    assert ladder.mean is not None
    assert ladder.mean < 0.01
    assert prior.more.value == 0
    assert ladder.more.value is not None
    assert ladder.more.value < 0
    ours = {pick.setting for pick in prior.picks}
    assert {pick.setting for pick in ladder.picks} < ours  # small ones have no rung below


def test_references_are_chosen_on_one_half_of_the_seeds_and_scored_on_the_other() -> None:
    settings = atlas_settings(planted_atlas(8.0, 0.02))
    both = [setting for setting in settings if setting.size < 1_000_000]
    single = [setting for setting in settings if setting.size == 1_000_000]
    assert all(len(setting.halves) == 2 for setting in both)
    assert all(len(setting.halves) == 1 for setting in single)
    assert np.mean([setting.oracle for setting in both if setting.oracle is not None]) > 0
    assert all(setting.oracle is None for setting in single)


def test_a_depth_that_was_not_trained_is_not_scored(planted: Backtest) -> None:
    setting = planted.settings[0]
    assert not setting.has(64)
    assert setting.has(setting.ends[1])
    outside = [pick for score in planted.scores for pick in score.picks if pick.regret is None]
    assert all(not pick.setting.has(pick.depth) for pick in outside)


def test_the_prior_is_one_that_has_not_seen_the_family() -> None:
    families = {kind.family for kind in read_atlas().kinds}
    assert families <= set(shipped_prior().families)
    assert set(ALL_GRIDS) - {ATLAS, UNSEEN} == set(shipped_prior().grids)


def test_schedules_that_train_the_same_networks_are_one_experiment() -> None:
    settings = grid_settings("gemstones")
    groups = schedule_groups(settings)
    assert len(settings) > 50
    assert len(set(groups.values())) <= 3
    assert len(set(schedule_groups(grid_settings("archai")).values())) >= 5


def test_public_grids_are_scored_by_a_smooth_surface_through_fair_networks() -> None:
    settings = public_settings("archai")
    assert settings
    assert all(setting.name.startswith("random_") for setting in settings)
    for setting in settings[:5]:
        (best, score) = setting.halves[0]
        assert setting.ends[0] <= best <= setting.ends[1]
        assert score(best) <= score(setting.ends[0])
        assert setting.regret(best) == 0


def test_no_regret_lies_below_zero_and_a_difference_may(planted: Backtest) -> None:
    """Intervals of regrets draw families anew; the same families give the same ends."""
    for score in planted.scores:
        assert score.low is not None
        assert score.high is not None
        assert score.mean is not None
        lost = defaultdict(list)
        for pick in score.picks:
            if pick.regret is not None:
                lost[pick.setting.family].append(pick.regret)
        means = [float(np.mean(some)) for some in lost.values()]
        assert min(means) <= score.low <= score.mean <= score.high <= max(means)
    assert any(score.more.low is not None and score.more.low < 0 for score in planted.scores)
    again = backtest(planted_atlas(8.0, 0.004), (ATLAS,))[0].scores
    assert [(one.low, one.high) for one in again] == [(s.low, s.high) for s in planted.scores]


def test_the_document_has_a_row_a_rule_and_its_figure(planted: Backtest) -> None:
    document = backtest_document((planted,))
    table, by_family = document.sections[-2].tables
    scored = [score for score in planted.scores if score.scored]
    assert [row[0] for row in table.rows] == [score.rule for score in scored]
    plan = next(score for score in scored if score.rule == PRIOR)
    for family, count, lost, *_ in by_family.rows:
        own = [pick.regret for pick in plan.picks if pick.setting.family == family]
        assert (count, lost) == (str(len(own)), f"{np.mean([each or 0.0 for each in own]):.4f}")
    assert len(by_family.rows) == len({setting.family for setting in planted.settings})
    unscored = {score.rule for score in planted.scores} - {score.rule for score in scored}
    said = " ".join(document.sections[-2].sentences)
    assert ("Not scored" in said) == bool(unscored)
    assert all(rule in said for rule in unscored)
    rows = [
        row
        for rows in document.figures[0].chart(WIDE).to_dict()["datasets"].values()
        for row in rows
    ]
    drawn = {row["row"]: row["colour"] for row in rows if "low" in row}
    assert drawn.keys() == {score.rule for score in scored}
    assert drawn[PRIOR] == drawn[LADDER] != drawn["always 8 layers"]
    data = document.data
    assert isinstance(data, dict)
    rules = data["grids"][0]["rules"]
    assert {"name", "mean", "worst", "low", "high"} <= set(rules[0])


def test_the_answer_says_what_is_averaged_and_compares_with_the_best_rule_of_others(
    planted: Backtest,
) -> None:
    document = backtest_document((planted,))
    settings = len(planted.settings)
    assert f"mean over 4 families of data that it has not seen (atlas, {settings}" in unwrapped(
        document.headline
    )
    (row,) = document.sections[0].tables[0].rows
    others = [score for score in planted.scores if score.rule not in (PRIOR, LADDER)]
    assert row[2] == others[0].rule
    more = others[0].more
    assert row[3] == f"{more.low:+.4f} to {more.high:+.4f}"


def test_every_grid_is_explained_where_it_is_named() -> None:
    about = written("sections")["grids"]
    assert set(about["brief"]) == set(about["long"]) == set(ALL_GRIDS)
    assert "named before the first run" in about["long"][UNSEEN]


@pytest.mark.parametrize("grid", ["gadre", "archai"])
def test_where_all_networks_near_a_size_have_one_width_nothing_is_scored(grid: str) -> None:
    """There the deeper are the larger."""
    schedules, settings = grid_settings(grid), public_settings(grid)
    for setting in settings:
        near = [
            network
            for network in schedules[setting.name]
            if max(network.params / setting.size, setting.size / network.params) <= NEAR_SIZE
        ]
        assert len({network.width for network in near}) > 1
    assert 0 < len(settings) < 6 * len(schedules)
