"""The atlas: runs are put into series and sizes, and planted best depths come out."""

import math
from dataclasses import replace

import numpy as np
import pytest

from archfit.fit.atlas import Atlas, AtlasRun, Series, read_atlas, size_of, with_own
from archfit.spec import RunSpec
from archfit.sweep.named import named_sweep
from archfit.sweep.sweep import Corpus
from tests_curves import record

DATA = Corpus(label="as given", kind="abc", vocab=28, hash="e" * 64, folder="")
FAMILIES = {"text", "code", "protein", "DNA", "signal", "pixels", "music", "molecules"}


def asked(vocab: int = 28) -> tuple[RunSpec, ...]:
    corpus = replace(DATA, vocab=vocab)
    return named_sweep("atlas", "small", [corpus], seeds=[0, 1], changes={}).specs


def planted_run(spec: RunSpec, best: float, noise: float, kind: str = "planted") -> AtlasRun:
    shape = spec.architecture
    bits = 2 - 0.2 * math.log(shape.params / 1e5) + 0.05 * math.log(shape.depth / best) ** 2
    made = record(shape, (bits + noise) * math.log(2), spec.seed, recipe=spec.recipe)
    return AtlasRun(kind=kind, vocabulary="as given", record=made)


def test_every_size_of_a_sweep_has_its_planted_best_depth() -> None:
    random = np.random.default_rng(0)
    bests = {60_000: 3.0, 125_000: 4.0, 250_000: 5.0, 500_000: 7.0, 1_000_000: 9.0}
    runs = [
        planted_run(spec, bests[size_of(spec)], 0.005 * random.standard_normal())
        for spec in asked()
    ]
    found = Atlas(kinds=(), runs=tuple(runs)).curves()
    (series,) = found
    assert (series.kind, series.tokens_a_parameter, series.rank) == ("planted", 20, None)
    assert series.is_plain
    curves = {curve.size: curve for curve in found[series]}
    assert curves.keys() == bests.keys()
    for size, best in bests.items():
        assert curves[size].best.value == pytest.approx(best, rel=0.25)
        assert curves[size].explained > 0.9
        assert curves[size].is_inside
        assert len(curves[size].points) >= 7


def test_what_must_not_be_mixed_is_apart() -> None:
    spec = asked()[0]
    shape, recipe = spec.architecture, spec.recipe
    others = [
        spec,
        replace(spec, architecture=replace(shape, context=128)),
        replace(spec, recipe=replace(recipe, steps=3 * recipe.steps)),
    ]
    series = {Series.of(planted_run(each, 4.0, 0.0)) for each in others}
    assert len(series) == 3
    assert Series.of(planted_run(spec, 4.0, 0.0)) != Series.of(planted_run(spec, 4.0, 0.0, "other"))


def test_runs_that_diverged_are_in_no_curve() -> None:
    runs = [planted_run(spec, 4.0, 0.01 * (spec.seed - 0.5)) for spec in asked()]
    bad = replace(runs[0], record=record(runs[0].spec.architecture, 1.0, 7, diverged=True))
    plain, more = (Atlas(kinds=(), runs=tuple(each)).curves() for each in (runs, [*runs, bad]))
    assert [c.best for c in next(iter(plain.values()))] == [
        c.best for c in next(iter(more.values()))
    ]


def test_of_two_rates_of_a_network_the_better_one_counts() -> None:
    def at_rate(run: AtlasRun, factor: float, lost: float) -> AtlasRun:
        recipe = run.spec.recipe
        other = replace(recipe, peak_learning_rate=factor * recipe.peak_learning_rate)
        shape, seed = run.spec.architecture, run.spec.seed
        loss = run.record.evaluations[-1].heldout_nats_per_token + lost
        return replace(run, record=record(shape, loss, seed, recipe=other))

    runs = [planted_run(spec, 4.0, 0.01 * (spec.seed - 0.5)) for spec in asked()]
    tuned = [*runs, *(at_rate(run, 2.0, 0.3) for run in runs)]
    plain, other = (
        next(iter(Atlas(kinds=(), runs=tuple(some)).curves().values())) for some in (runs, tuned)
    )
    assert [curve.best for curve in plain] == [curve.best for curve in other]
    assert all(len({p.depth for p in c.points}) == len(c.points) for c in other)


def test_runs_on_data_of_the_atlas_are_its_kind_whatever_they_are_called() -> None:
    atlas = read_atlas()
    shipped = next(run for run in atlas.runs if run.kind == "music")
    again = replace(shipped.record, spec=replace(shipped.spec, seed=9))
    joined = with_own(atlas, "mine", [again], {})
    assert len(joined.runs) == len(atlas.runs) + 1
    assert joined.kinds == atlas.kinds
    assert joined.runs[-1].kind == "music"


def test_names_of_kinds_are_names_of_files() -> None:
    atlas = read_atlas()
    for name in ("../x", "a/b", "", "x" * 100):
        with pytest.raises(ValueError, match="is no name of a kind"):
            with_own(atlas, name, [planted_run(asked()[0], 4.0, 0.0).record], {})
    mine = with_own(atlas, "mine", [planted_run(asked()[0], 4.0, 0.0).record], {})
    other = replace(planted_run(asked()[0], 4.0, 0.0).record)
    with pytest.raises(ValueError, match="two folders are called mine"):
        with_own(mine, "mine", [replace(other, spec=replace(other.spec, data_hash="f" * 64))], {})


def test_kinds_say_what_they_are() -> None:
    kinds = read_atlas().kinds
    assert len({kind.name for kind in kinds}) == len(kinds) >= 11
    assert {kind.family for kind in kinds} == FAMILIES
    assert all(kind.source and kind.licence and kind.unit for kind in kinds)
    assert {run.kind for run in read_atlas().runs} <= {kind.name for kind in kinds}
