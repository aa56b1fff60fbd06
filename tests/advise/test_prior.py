"""The shipped prior: that of the atlas as it is, and what it says of families."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest

from archfit.advise.ladder import LadderRun, knowledge
from archfit.advise.prior import (
    LEAST_SIZE,
    TEXT,
    KindRuns,
    family_prior,
    known_families,
    shipped_prior,
)
from archfit.advise.prior_runs import atlas_runs, grid_runs, law_runs
from archfit.advise.surface import joined
from archfit.fit.atlas import SOURCES, Atlas, read_atlas

FITTING = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "atlas" / "prior.py"))
STALE = "run OMP_NUM_THREADS=1 python docs/atlas/prior.py"


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    return read_atlas()


def test_the_shipped_runs_are_the_plain_series_of_the_atlas_from_the_least_size_on(
    atlas: Atlas,
) -> None:
    runs = atlas_runs(atlas, atlas.curves())
    assert dict(shipped_prior().runs) == runs, STALE
    smallest = min(kind.sizes[0] for kinds in runs.values() for kind in kinds)
    assert smallest == pytest.approx(LEAST_SIZE, rel=1e-5)


def test_the_shipped_grids_are_the_public_ones_and_the_papers_law() -> None:
    wanted = {grid: grid_runs(grid) for grid in SOURCES} | {"law": (law_runs(),)}
    assert dict(shipped_prior().grid_runs) == wanted, STALE


def test_every_family_of_the_atlas_is_known_and_can_be_left_out(atlas: Atlas) -> None:
    families = {kind.family for kind in atlas.kinds}
    assert set(known_families()) == families == set(shipped_prior().families)
    assert TEXT in families


@pytest.mark.slow
def test_a_fit_to_all_families_and_grids_is_the_shipped_surface() -> None:
    prior = shipped_prior()
    families = [joined([kind.observed for kind in kinds]) for kinds in prior.runs.values()]
    grids = [kind.observed for name in SOURCES for kind in prior.grid_runs[name]]
    found, shipped = FITTING["fit_surface"]([*families, *grids]), prior.all
    for name in ("centre", "growth", "fading", "hurry", "wave", "size_length", "depth_length"):
        assert getattr(found, name) == pytest.approx(getattr(shipped, name), rel=0.05), name
    assert found.kinship == pytest.approx(shipped.kinship, abs=0.05)
    assert found.weights == pytest.approx(shipped.weights, abs=0.05)
    assert found.mean == pytest.approx(shipped.mean, abs=0.002)
    assert found.spread == pytest.approx(shipped.spread, rel=0.1, abs=2e-4)
    assert found.misfit == pytest.approx(shipped.misfit, abs=5e-4)


def test_a_family_that_is_not_known_has_the_prior_of_all_without_their_runs() -> None:
    unknown = family_prior(None)
    assert unknown.family is None
    assert family_prior("prose").family is None
    assert unknown.posterior.observed is None
    assert unknown.posterior.weights == shipped_prior().all.weights
    assert unknown.kinds == tuple(kind for kinds in shipped_prior().runs.values() for kind in kinds)


def test_a_known_family_rests_on_its_own_runs_and_text_on_public_grids_too() -> None:
    dna, text = family_prior("DNA"), family_prior(TEXT)
    plain = ["dna, 1-mers", "dna, 2-mers", "dna, 3-mers"]
    assert sorted(kind.name for kind in dna.kinds if kind.block == "gpt2") == plain
    llama = [kind.name for kind in dna.kinds if kind.block == "llama"]
    assert llama == ["dna, 1-mers, Llama's blocks"]
    assert dna.largest < 10**7 < 10**8 < text.largest
    assert not any(kind.is_grid for kind in dna.kinds)
    assert any(kind.is_grid for kind in text.kinds)


def test_what_ships_of_a_new_kind_is_what_the_runs_of_its_family_say() -> None:
    depths = np.array([1.0, 3.0, 9.0, 27.0])
    for family in known_families():
        prior = family_prior(family)
        by_runs = shipped_prior().all.given(joined([kind.observed for kind in prior.kinds]))
        assert prior.posterior.weights == pytest.approx(by_runs.weights, abs=1e-7)
        assert prior.posterior.draws(2e6, depths, 50) == pytest.approx(
            by_runs.draws(2e6, depths, 50), abs=1e-7
        )


def test_the_deepest_network_is_that_of_the_runs() -> None:
    for family in (*known_families(), None):
        prior = family_prior(family)
        depths = [row[1] for kind in prior.kinds for row in kind.rows]
        assert prior.deepest == round(math.exp(max(depths)))
    assert family_prior(TEXT).deepest > family_prior("DNA").deepest


def test_text_is_predicted_better_by_larger_networks_and_nothing_is_promised_far_beyond() -> None:
    text = family_prior(TEXT)
    levels = [text.level(size) for size in (2.5e5, 1e6, 1e7, 1e8, 1e9)]
    assert levels == sorted(levels, reverse=True)
    assert 1.9 < levels[0] < 2.7  # bits per byte
    assert 0.7 < levels[-1] < 1.1
    for family in (*known_families(), None):
        prior = family_prior(family)
        assert prior.slope(1e6) < 0
        assert prior.level(1e15) == prior.level(1e12) > 0
    # Not by the law, which is of depths alone, and as much for one block as for the other.
    assert all(text.slope(size) < -0.02 for size in (1e7, 3e7, 1e8, 1e9))
    llama = family_prior(TEXT, "llama")
    assert [llama.level(size) for size in (2.5e5, 1e6, 1e7, 1e8, 1e9)] == levels


def test_the_line_of_a_kind_goes_through_the_best_depths_of_its_sizes() -> None:
    rows = [
        (size, depth, 0.5 - 0.1 * size + 0.2 * abs(depth - 1), 1e-4, 0.0)
        for size in (-1.0, 0.0, 1.0)
        for depth in (0.0, 1.0, 2.0)
    ]
    kind = KindRuns.of("planted", rows, block="gpt2")
    assert kind.line() == pytest.approx((-0.1, 0.5))
    assert (kind.shallowest, kind.deepest) == (1, 7)
    assert kind.sizes == pytest.approx((1e6 / math.e, 1e6 * math.e), rel=1e-5)
    alone = KindRuns.of("one size", rows[:3], block="gpt2")
    assert alone.line() == pytest.approx((0.0, 0.6))


def test_runs_on_new_data_are_one_more_kind_of_a_family_and_the_first_of_none() -> None:
    runs = [
        LadderRun(size=10**6, depth=depth, seed=0, params=10**6, bits=1 + 0.1 * depth)
        for depth in (1, 2, 4)
    ]
    for family, others in (("DNA", len(family_prior("DNA").kinds)), (None, 0)):
        known = knowledge(family_prior(family), runs)
        observed = known.posterior.observed
        assert observed is not None
        assert known.kind == others == observed.kinds.max()
        assert (observed.kinds == known.kind).sum() == 3
