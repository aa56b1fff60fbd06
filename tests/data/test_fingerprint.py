"""Fingerprints of data whose numbers are known."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "atlas" / "fingerprints.py"))
DISTANCES, fingerprint = SCRIPT["DISTANCES"], SCRIPT["fingerprint"]


def test_independent_tokens_tell_nothing_of_each_other() -> None:
    ids = np.random.default_rng(0).integers(0, 16, 400_000).astype(np.uint16)
    found = fingerprint(ids)
    assert found.vocab == 16
    for entropy in (found.entropy, found.entropy_after_one, found.entropy_after_two):
        assert entropy == pytest.approx(4.0, abs=0.002)
    assert max(found.information) < 3e-4
    assert found.copied < 1e-3
    assert found.packed == pytest.approx(4.0, rel=0.1)


def test_a_chain_has_the_entropy_rate_and_the_information_of_its_transitions() -> None:
    """Two states that stay with probability 0.9: everything is known in closed form."""
    random, stay = np.random.default_rng(1), 0.9
    ids = np.cumsum(random.random(600_000) > stay) % 2
    found = fingerprint(ids.astype(np.uint16))
    rate = -(stay * math.log2(stay) + (1 - stay) * math.log2(1 - stay))
    assert found.entropy == pytest.approx(1.0, abs=0.005)
    assert found.entropy_after_one == pytest.approx(rate, abs=0.005)
    for distance, bits in zip(DISTANCES, found.information, strict=True):
        same = (1 + (2 * stay - 1) ** distance) / 2
        told = 1 + same * math.log2(same) + (1 - same) * math.log2(1 - same) if same < 1 else 1
        assert bits == pytest.approx(told, abs=0.005)


def test_what_comes_again_soon_could_be_copied_and_what_comes_late_could_not() -> None:
    random = np.random.default_rng(2)
    block = random.integers(0, 200, 100)
    soon = np.concatenate([np.tile(random.integers(0, 200, 100), 3) for _ in range(1000)])
    late = np.concatenate([np.r_[block, random.integers(0, 200, 400)] for _ in range(1000)])
    assert fingerprint(soon).copied == pytest.approx((300 - 108) / 300, abs=0.01)
    assert fingerprint(late).copied == pytest.approx(0.0, abs=0.01)
    assert fingerprint(soon).packed < 8 / 3


def test_names_of_tokens_do_not_matter() -> None:
    ids = np.random.default_rng(3).integers(0, 5, 50_000) ** 2
    assert fingerprint(ids) == fingerprint(ids * 7 + 3)
    assert math.isinf(fingerprint(np.zeros(1000, np.uint16)).decay)
