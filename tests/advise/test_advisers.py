"""Other people's numbers, as they print them."""

import json
from importlib import resources

import pytest

from archfit.advise.advisers import Advice, NetworkFacts, all_advice, evidence_against
from archfit.advise.prior import shipped_prior


def _asked(size: float, *, limit: int = 50257, is_text: bool = True) -> NetworkFacts:
    return NetworkFacts(block_params=size, rank_limit=limit, is_text=is_text, is_vision=False)


def _advice(size: float, name: str, *, limit: int = 50257, is_text: bool = True) -> Advice:
    asked = _asked(size, limit=limit, is_text=is_text)
    return next(advice for advice in all_advice(asked) if advice.name == name)


@pytest.mark.parametrize(("size", "depth"), [(1e7, 5), (1e8, 6), (1e9, 7), (1e10, 8), (1e11, 9)])
def test_minimal_depths_of_levines_table(size: float, depth: int) -> None:
    assert _advice(size, "log3 threshold").depth == depth


def test_kaplans_band_holds_both_of_its_own_shapes() -> None:
    size = 12 * 48 * 1600**2
    depths = _advice(size, "Kaplan 2020").depths
    assert depths is not None
    assert depths[0] == pytest.approx(6, rel=0.05)
    assert depths[1] == pytest.approx(48)


def test_proportions_come_out_as_stated() -> None:
    chat = _advice(1e9, "nanochat 2026")
    assert chat.width is not None
    assert chat.depth is not None
    assert chat.width / chat.depth == pytest.approx(64)
    marin = _advice(12 * 8192**3 / 106, "Marin recipe")
    assert marin.width == pytest.approx(8192, rel=1e-6)
    delusion = _advice(1e9, "Depth Delusion 2026")
    assert delusion.width is not None
    assert delusion.depth == pytest.approx(delusion.width**0.44)


def test_every_shape_has_the_size_asked_for() -> None:
    for size in (1e6, 1e9, 1e12):
        for advice in all_advice(_asked(size, limit=99)):
            if advice.depth is not None and advice.width is not None:
                assert 12 * advice.depth * advice.width**2 == pytest.approx(size, rel=1e-6)


def test_mobile_llm_names_a_depth_near_the_size_that_it_names_one_for() -> None:
    assert _advice(125e6, "MobileLLM 2024").depth == 30
    for size in (1e6, 650e6):
        assert _advice(size, "MobileLLM 2024").depth is None
    assert _advice(650e6, "MobileLLM 2024").in_range


def test_our_own_runs_stand_against_us_too() -> None:
    """As the measurements have it: what is worse lies above 0, what is better below."""
    file = resources.files("archfit.resources").joinpath("evidence/conclusions.json")
    findings = {one["id"]: one["measures"] for one in json.loads(file.read_text())["findings"]}
    for data in ("dna", "proteins", "mnist"):
        (deep,) = [one for one in findings[f"depth-{data}"] if one["what"] == "32 layers"]
        assert deep["low"] > 0
        assert all(repair["high"] > 0 for repair in findings[f"repairs-{data}"])
    (sentence,) = [one for one in evidence_against() if one.startswith("archfit's own runs")]
    assert "32 layers of width 46 were worse than 4 of 128 on all three" in sentence


def test_a_question_outside_the_range_is_marked() -> None:
    assert _advice(1e8, "Levine 2020").in_range
    assert not _advice(1e12, "Levine 2020").in_range
    assert not _advice(1e8, "Levine 2020", limit=100).in_range
    assert not _advice(1e8, "Kaplan 2020", is_text=False).in_range
    assert _advice(1e8, "Henighan 2020", is_text=False).in_range


def test_all_advisers_have_a_source_and_a_range() -> None:
    everybody = all_advice(_asked(1e8, limit=500))
    assert len({advice.name for advice in everybody}) == len(everybody) > 16
    assert all(advice.source and advice.seen_in and advice.says for advice in everybody)


def test_what_rules_lost_in_back_tests_stands_beside_them() -> None:
    lost = {advice.name: advice.regret for advice in all_advice(_asked(1e8))}
    known = {name: regret for name, regret in lost.items() if regret is not None}
    assert {"Levine 2020", "Depth Delusion 2026", "shape in use"} <= set(known)
    assert known.items() <= shipped_prior().rules.items()
    assert lost["Kaplan 2020"] is None  # it names a band
    assert min(shipped_prior().rules, key=shipped_prior().rules.__getitem__) == "archfit advise"
