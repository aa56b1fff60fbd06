import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data import survey
from archfit.data.survey import EvenSample


def sampled(parts: list[np.ndarray], columns: int = 1) -> EvenSample:
    sample = EvenSample(parts[0].dtype.str, columns)
    for part in parts:
        sample.add(part.tobytes())
    return sample


def splitmix64(number: int) -> int:
    """Output `number` of the generator of Steele et al. 2014 with seed 0, in Python integers."""
    mask = (1 << 64) - 1
    mixed = (number + 1) * 0x9E3779B97F4A7C15 & mask
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & mask
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & mask
    return mixed ^ (mixed >> 31)


def test_few_values_are_all_kept() -> None:
    values = np.arange(1000.0)
    assert sampled([values]).values[:, 0].tolist() == values.tolist()


def test_values_are_kept_by_the_hash_of_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "SAMPLE_UNITS", 300)
    hashes = [splitmix64(number) for number in range(2000)]
    assert hashes[0] == 0xE220A8397B1DCDAF
    halvings = next(n for n in range(64) if sum(one < 1 << (64 - n) for one in hashes) <= 300)
    expected = [number for number, one in enumerate(hashes) if one < 1 << (64 - halvings)]
    assert sampled([np.arange(2000.0)]).values[:, 0].tolist() == expected


@given(cuts=st.lists(st.integers(0, 3000)))
def test_the_sample_does_not_depend_on_blocks(cuts: list[int]) -> None:
    values = np.arange(3000.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survey, "SAMPLE_UNITS", 200)
        whole, parts = sampled([values]), sampled(np.split(values, sorted(cuts)))
    assert 50 < len(whole.values) <= 200
    assert whole.values.tolist() == parts.values.tolist()


@pytest.mark.parametrize("width", [3, 32, 34, 144, 1000, 1024])
def test_every_column_of_an_image_is_met_alike(width: int) -> None:
    columns = np.tile(np.arange(width, dtype="<u4"), 2_000_000 // width)
    found = sampled(np.array_split(columns, 7)).values[:, 0]
    assert survey.SAMPLE_UNITS / 3 < len(found) <= survey.SAMPLE_UNITS
    counts, expected = np.bincount(found, minlength=width), len(found) / width
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_values_of_several_columns_stay_together() -> None:
    pixels = np.arange(900_000, dtype="<u4")
    found = sampled([pixels], 3).values
    assert (found[:, 1:] == found[:, :1] + [1, 2]).all()
    assert (found[:, 0] % 3 == 0).all()


@pytest.mark.parametrize("order", [1, -1])
def test_the_extremes_are_those_of_all_blocks(order: int) -> None:
    values = np.arange(1_000_000.0)[::order]
    sample = sampled(np.array_split(values, 77))
    assert (sample.lowest, sample.highest) == (0, 999_999)
