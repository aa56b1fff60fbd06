"""Cells against cells: tables of one shape, one network against others, networks of equal size."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from archfit.fit.cells import CellResult
from archfit.fit.comparisons import CellDifference, Ranking, differences
from archfit.fit.fitted import Fits, fitted
from archfit.report.conclusions import conclusions
from archfit.report.fit_document import fit_json
from archfit.spec import Architecture, Factorised, Patches, RunRecord
from tests_curves import DATA, OTHER_DATA, RECIPE, record, shape, simulated

RANKS = (2, 8, 32)
COST = {"embedding": 0.10, "head": 0.04, "positions": 0.01}  # nats at rank 1
BITS = 1 / math.log(2) / 3  # a byte, for a nat per token of the simulated data
GIVEN = shape(6, 200, vocab=257)
DEEPER = shape(12, 142, vocab=257)
PATCHED = shape(6, 196, vocab=257, input=Patches(vocab=257, size=2, encoding="one-hot"))
LARGER = shape(6, 190, vocab=1000)


def loss(architecture: Architecture) -> float:
    return 3 + math.fsum(
        cost / getattr(architecture, name).inner
        for name, cost in COST.items()
        if isinstance(getattr(architecture, name), Factorised)
    )


def tables(std: float = 1e-3, seeds: int = 3) -> Fits:
    """A network with full tables, and with each table of a few ranks."""
    shapes = [shape(4, 64)]
    for name in COST:
        shapes += [
            replace(shape(4, 64), **{name: Factorised(inner=inner)})  # type: ignore[arg-type]
            for inner in RANKS
        ]
    random = np.random.default_rng(0)
    return fitted(simulated(shapes, loss, std=std, seeds=seeds, random=random))


def cost(found: Fits, table: str, rank: int) -> CellDifference:
    (item,) = (
        item
        for item in found.contrasts
        if (item.kind, item.first.key.factorised, item.first.rank) == ("cost", (table,), rank)
    )
    return item


def test_a_cost_has_the_interval_of_a_t_test_with_pooled_variance() -> None:
    found = tables()
    (noise,) = found.noise
    losses = {cell.architecture: cell.losses for cell in noise.cells}
    first = losses[shape(4, 64, embedding=Factorised(inner=8))]
    second = losses[shape(4, 64)]
    item = cost(found, "embedding", 8)
    pooled = math.fsum(np.var(own, ddof=1) for own in losses.values()) / len(losses)
    half = stats.t.ppf(0.95, 2 * len(losses)) * math.sqrt(pooled * 2 / 3)
    value = np.mean(first) - np.mean(second)
    expected = [value, value - half, value + half]
    assert list(item.estimate.row().values()) == pytest.approx(expected)
    assert item.stds == pytest.approx(value / math.sqrt(pooled))


def test_sides_of_the_same_rank_are_compared() -> None:
    sides = [item for item in tables().contrasts if item.kind == "side"]
    found = {(item.second.key.factorised, item.first.rank): item for item in sides}
    assert set(found) == {((name,), rank) for name in ("head", "positions") for rank in RANKS}
    assert found[("head",), 2].estimate.value == pytest.approx(0.03, abs=3e-3)
    assert found[("positions",), 2].is_settled


def test_sentences_say_which_side_hurts_and_which_rank_of_positions_is_enough() -> None:
    said = "\n".join(conclusions(tables()))
    assert "A low rank costs more on the embedding than on the head (rank 2 at depth 4" in said
    assert "Position embeddings of rank 8 are within 2 standard deviations of full ones" in said


def test_what_is_undecided_says_how_many_seeds_would_settle_it() -> None:
    found = tables(std=0.03)
    assert not cost(found, "embedding", 32).is_settled
    said = [line for line in conclusions(found) if "is undecided" in line]
    assert said
    assert all("seeds would" in line for line in said)


def test_without_full_tables_the_control_is_what_a_limit_costs_against() -> None:
    """The papers' list of position ranks ends with the width, and has no full table."""
    shapes = [shape(4, 64, positions=Factorised(inner=inner)) for inner in (2, 8, 64, 96)]
    random = np.random.default_rng(0)
    found = fitted(simulated(shapes, loss, std=1e-4, seeds=3, random=random))
    costs = [item for item in found.contrasts if item.kind == "cost"]
    assert [(c.first.rank, c.first.rank < c.first.architecture.width) for c in costs] == [
        (2, True),
        (8, True),
        (96, False),
    ]
    assert {item.second.architecture.positions for item in costs} == {Factorised(inner=64)}
    assert costs[0].estimate.value == pytest.approx(0.01 / 2 - 0.01 / 64, abs=3e-4)
    said = "\n".join(conclusions(found))
    assert "Against factorised but unlimited embeddings, 4 x 64, positions: rank 2" in said


TRUTH = (2.0, 2.0, 2.05, 1.9, 2.4)  # bits per byte
STD = 0.03


def cells(generator: np.random.Generator, seeds: int) -> list[CellResult]:
    found = []
    for depth, mean in enumerate(TRUTH, start=1):
        losses = tuple(float(loss) for loss in generator.normal(2 * mean, 2 * STD, seeds))
        found.append(
            CellResult(
                architecture=shape(depth, 16, vocab=9),
                data_hash=DATA,
                recipe=RECIPE,
                losses=losses,
                bits_per_byte=sum(losses) / seeds / 2,
            )
        )
    return found


def against_all(found: list[CellResult], among: int = 4) -> tuple[CellDifference, ...]:
    reference, *others = found
    named = {str(at): cell for at, cell in enumerate(others)}
    return tuple(differences(reference, named, pooled=found, among=among).values())


def length(item: CellDifference) -> float:
    assert item.estimate.low is not None
    assert item.estimate.high is not None
    return item.estimate.high - item.estimate.low


def test_an_interval_among_four_is_that_of_bonferroni() -> None:
    made = cells(np.random.default_rng(0), seeds=3)
    pooled = math.fsum(np.var(cell.losses, ddof=1) / 4 for cell in made) / len(made)
    half = stats.t.ppf(1 - 0.05 / 4, 2 * len(made)) * math.sqrt(pooled * 2 / 3)
    for item, other in zip(against_all(made), made[1:], strict=True):
        value = other.bits_per_byte - made[0].bits_per_byte
        expected = [value, value - half, value + half]
        assert list(item.estimate.row().values()) == pytest.approx(expected)


def test_all_intervals_together_hold_the_truth_in_nine_of_ten_experiments() -> None:
    generator, trials, held = np.random.default_rng(0), 300, 0
    for _ in range(trials):
        found = against_all(cells(generator, seeds=3))
        held += all(
            item.estimate.contains(mean - TRUTH[0])
            for item, mean in zip(found, TRUTH[1:], strict=True)
        )
    assert 0.87 < held / trials < 0.97  # Bonferroni is a little too careful


def test_a_reference_that_was_chosen_among_several_needs_wider_intervals() -> None:
    made = cells(np.random.default_rng(1), seeds=3)
    usual, careful = against_all(made), against_all(made, among=12)
    assert all(length(a) < length(b) for a, b in zip(usual, careful, strict=True))


def runs(architecture: Architecture, losses: list[float], data_hash: str = DATA) -> list[RunRecord]:
    return [
        record(architecture, loss, seed, data_hash=data_hash) for seed, loss in enumerate(losses)
    ]


def ranked(*groups: list[RunRecord]) -> tuple[Fits, Ranking]:
    fits = fitted([run for group in groups for run in group])
    (ranking,) = fits.rankings
    return fits, ranking


def test_the_best_comes_first_and_the_others_by_how_much_they_are_worse() -> None:
    fits, ranking = ranked(
        runs(GIVEN, [3.0, 3.02, 3.01]),
        runs(LARGER, [2.9, 2.91, 2.92], OTHER_DATA),
        runs(PATCHED, [3.3, 3.31, 3.32]),
    )
    assert [item.first.architecture for item in ranking.results] == [LARGER, GIVEN, PATCHED]
    second = ranking.results[1]
    error = 0.01 * BITS * math.sqrt(2 / 3)  # every cell has a standard deviation of 0.01
    half = stats.t.ppf(0.95, 6) * error
    expected = [0.1 * BITS, 0.1 * BITS - half, 0.1 * BITS + half]
    assert list(second.estimate.row().values()) == pytest.approx(expected)
    assert second.is_settled
    (sentence,) = (line for line in conclusions(fits) if line.startswith("Of networks"))
    assert "depth 6 with vocabulary 1,000 is best" in sentence
    assert "tokens of a patch are predicted at once" in sentence
    standings = fit_json(fits)["comparisons"][0]["standings"]  # type: ignore[index]  # a list
    assert [standing["vocab"] for standing in standings] == [1000, 257, 257]


def test_what_cannot_be_told_from_the_best_is_undecided() -> None:
    fits, ranking = ranked(
        runs(GIVEN, [3.0, 3.1, 2.9]), runs(LARGER, [2.98, 3.08, 2.88], OTHER_DATA)
    )
    second = ranking.results[1]
    assert not second.is_settled
    assert second.seeds_needed is not None
    assert second.seeds_needed > 100
    assert any("undecided among 2: about" in line for line in conclusions(fits))


def test_depths_alone_and_networks_of_other_sizes_are_no_ranking() -> None:
    depths = [*runs(GIVEN, [3.0, 3.01, 3.02]), *runs(DEEPER, [3.1, 3.11, 3.12])]
    assert fitted(depths).rankings == ()
    half = runs(shape(6, 128, vocab=1000), [2.9, 2.91, 2.92], OTHER_DATA)
    assert fitted([*depths, *half]).rankings == ()


def test_networks_within_six_percent_of_the_smallest_are_of_equal_size() -> None:
    near, far = shape(6, 196, vocab=1000), shape(6, 198, vocab=1000)
    ratios = [one.params / GIVEN.params for one in (near, far)]
    assert ratios[0] < 1.06 < ratios[1]
    for other, count in ((near, 1), (far, 0)):
        records = [
            *runs(GIVEN, [3.0, 3.01, 3.02, 3.0, 3.01]),
            *runs(other, [2.9, 2.91, 2.92], OTHER_DATA),
        ]
        assert len(fitted(records).rankings) == count


def test_data_sets_that_may_be_of_different_sources_are_not_ranked_together() -> None:
    records = [
        *runs(GIVEN, [3.0, 3.01, 3.02]),
        *runs(PATCHED, [3.1, 3.11, 3.12]),
        *runs(LARGER, [2.9, 2.91, 2.92], OTHER_DATA),
    ]
    (ranking,) = fitted(records, is_one_source=False).rankings
    assert [item.first.architecture for item in ranking.results] == [GIVEN, PATCHED]


def test_intervals_hold_the_truth_as_often_as_they_should() -> None:
    random, covered = np.random.default_rng(0), 0
    for _ in range(200):
        losses = random.normal(0, 0.02, (3, 3)) + np.array([[2.8], [3.0], [3.1]])
        one, two, three = losses.tolist()
        _, ranking = ranked(runs(LARGER, one, OTHER_DATA), runs(GIVEN, two), runs(PATCHED, three))
        covered += sum(
            item.estimate.contains(truth * BITS)
            for item, truth in zip(ranking.results[1:], (0.2, 0.3), strict=True)
        )
    assert 0.85 < covered / 400 < 0.95


def test_many_seeds_of_one_cell_are_an_answer_and_few_are_none() -> None:
    losses = [3.0, 3.01, 2.99, 3.02, 2.98]
    sentences = conclusions(fitted(runs(GIVEN, losses)))
    std = np.std(losses, ddof=1)
    assert any(f"depth 6, width 200 {std:.2e} (5 seeds)" in line for line in sentences)
    with pytest.raises(ValueError, match="intervals need 4 runs that repeat a network"):
        fitted(runs(GIVEN, losses[:3]))


def test_of_six_equal_networks_few_are_said_to_be_worse_than_the_best() -> None:
    """The best of six is best by luck, and the worst by far more than one interval allows for."""
    random, wrong = np.random.default_rng(0), 0
    shapes = [shape(6, 196, heads=heads, vocab=257) for heads in (1, 2, 4, 7, 14)]
    for _ in range(200):
        losses = random.normal(3, 0.02, (6, 3)).tolist()
        groups = [runs(one, own) for one, own in zip(shapes, losses, strict=False)]
        _, ranking = ranked(*groups, runs(LARGER, losses[-1], OTHER_DATA))
        wrong += any(item.is_settled for item in ranking.results)
    assert wrong / 200 < 0.13


def test_a_noisy_network_is_pooled_apart() -> None:
    quiet = [3.0, 3.001, 3.002]
    _, ranking = ranked(
        runs(GIVEN, quiet),
        runs(DEEPER, [loss + 0.1 for loss in quiet]),
        runs(LARGER, [loss + 0.2 for loss in quiet], OTHER_DATA),
        runs(PATCHED, [3.2, 3.5, 3.8]),
    )
    lengths = [length(item) for item in ranking.results[1:]]
    assert lengths[2] > 100 * lengths[0]


def test_losses_of_zero_are_no_ranking() -> None:
    with pytest.raises(ValueError, match="intervals need 4 runs that repeat a network"):
        fitted([*runs(GIVEN, [0.0] * 3), *runs(LARGER, [0.0] * 3, OTHER_DATA)])
