"""A feature that foretells best depths is found; one that is chance is not."""

import math

import numpy as np

from archfit.fit.best_depth import DepthPoint, depth_curves
from archfit.fit.foretelling import KindCurves, features_of, foretold, shipped_fingerprints

DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


def kinds(effect: float, families: int = 8) -> list[KindCurves]:
    """ln of the best depth is ln 4 + effect times a feature, at two sizes."""
    random = np.random.default_rng(0)
    found = []
    for at in range(families):
        told, chance = random.uniform(-1, 1, 2)
        best = 4 * math.exp(effect * told)
        sizes = {
            size: [
                DepthPoint(
                    depth=depth,
                    params=size,
                    losses=tuple(
                        2 + 0.1 * math.log(depth / best) ** 2 + 0.003 * random.standard_normal()
                        for _ in range(2)
                    ),
                )
                for depth in DEPTHS
            ]
            for size in (100_000, 200_000)
        }
        curves = depth_curves(str(at), sizes)
        features = {"told": told, "chance": chance}
        found.append(KindCurves(family=f"f{at}", curves=curves, features=features))
    return found


def test_a_feature_that_tells_is_found_and_chance_is_not() -> None:
    alone, told, chance = foretold(kinds(effect=1.0))
    assert (alone.feature, told.feature, chance.feature) == ("", "told", "chance")
    assert told.helps
    assert told.regret < alone.regret / 3
    assert told.error < 0.2 < alone.error
    assert not chance.helps


def test_where_kinds_do_not_differ_nothing_helps() -> None:
    assert not any(each.helps for each in foretold(kinds(effect=0.0)))


def test_few_families_say_nothing() -> None:
    assert foretold(kinds(effect=1.0, families=3)) == ()


def test_every_shipped_fingerprint_has_the_same_finite_features() -> None:
    table = shipped_fingerprints()
    assert len(table) >= 15
    names = {tuple(features) for features in table.values()}
    assert len(names) == 1
    assert all(math.isfinite(value) for features in table.values() for value in features.values())


def test_features_are_those_of_the_fingerprint() -> None:
    made = features_of(
        {
            "vocab": 4,
            "entropy": 2.0,
            "entropy_after_one": 1.9,
            "entropy_after_two": 1.5,
            "information": [0.1, 0.05, 0.04, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001],
            "decay": -0.8,
            "copied": 0.25,
            "packed": 2.1,
        }
    )
    assert made["ln of the tokens that occur"] == math.log(4)
    assert made["entropy less that after two"] == 0.5
    assert made["mutual information at distance 64"] == 0.005
