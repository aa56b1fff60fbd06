"""Folders that may be fitted, and the sentence for those that may not."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from archfit import __version__
from archfit.fit.fitted import fitted, read_folders
from archfit.report.conclusions import conclusions
from archfit.spec import RunRecord, files
from archfit.sweep.folder import sweep_json
from archfit.sweep.sweep import Corpus, Sweep
from tests_curves import DATA, OTHER_DATA, record, shape, simulated, write_runs


def runs(data_hash: str = DATA, seeds: int = 2) -> list[RunRecord]:
    return [record(shape(2, 64), 3.0 + seed, seed, data_hash=data_hash) for seed in range(seeds)]


def write_sweep(folder: Path, *hashes: str, **changes: object) -> None:
    """The sweep of these data sets, or of the usual one; `changes` are what somebody did to it."""
    named = hashes or (DATA,)
    data = tuple(Corpus(label=n, kind="text", vocab=2000, hash=n, folder="") for n in named)
    specs = tuple(record.spec for name in named for record in runs(name))
    sweep = Sweep(name="own", scale="own", question="", data=data, specs=specs)
    document = json.loads(sweep_json(sweep)) | changes
    (folder / "sweep.json").write_text(json.dumps(document))


def refusal(*folders: Path) -> str:
    with pytest.raises(ValueError, match=r"\w") as problem:
        read_folders(folders)
    return str(problem.value)


def test_records_of_several_folders_come_in_one_order(tmp_path: Path) -> None:
    first = write_runs(tmp_path / "a", runs()[:1])
    second = write_runs(tmp_path / "b", runs()[1:])
    assert read_folders([first, second]) == read_folders([second, first])
    assert set(read_folders([first, second])[0]) == set(runs())


def test_a_run_in_two_folders_counts_once(tmp_path: Path) -> None:
    timed = [replace(one, timing=replace(one.timing, training_seconds=9.0)) for one in runs()]
    first, second = write_runs(tmp_path / "a", runs()), write_runs(tmp_path / "b", timed)
    assert len(read_folders([first, second])[0]) == 2


def test_a_run_with_two_results_is_refused(tmp_path: Path) -> None:
    first = write_runs(tmp_path / "a", [record(shape(2, 64), 3.0, 0)])
    second = write_runs(tmp_path / "b", [record(shape(2, 64), 3.1, 0)])
    assert "has different losses in" in refusal(first, second)


def test_a_sweep_may_name_several_data_sets(tmp_path: Path) -> None:
    folder = write_runs(tmp_path / "a", [*runs(), *runs(OTHER_DATA)])
    write_sweep(folder, DATA, OTHER_DATA)
    records, is_one_source = read_folders([folder])
    assert (len(records), is_one_source) == (4, True)


def test_data_sets_that_no_sweep_names_are_fitted_each_on_their_own(tmp_path: Path) -> None:
    folder = write_runs(tmp_path / "a", [*runs(seeds=5), *runs(OTHER_DATA, seeds=5)])
    records, is_one_source = read_folders([folder])
    assert not is_one_source
    found = fitted(records, is_one_source)
    assert found.rankings == ()
    said = conclusions(found)[-1]
    assert f"data sets {DATA[:8]}, {OTHER_DATA[:8]} were fitted each on their own" in said


def test_runs_on_data_that_the_sweep_does_not_name_are_refused(tmp_path: Path) -> None:
    folder = write_runs(tmp_path / "a", [*runs(), *runs(OTHER_DATA)])
    write_sweep(folder)
    assert f"has runs on the data set {OTHER_DATA[:16]}" in refusal(folder)


def test_folders_of_different_data_are_not_mixed(tmp_path: Path) -> None:
    first = write_runs(tmp_path / "a", runs())
    second = write_runs(tmp_path / "b", runs(OTHER_DATA))
    said = refusal(first, second)
    assert DATA[:16] in said
    assert OTHER_DATA[:16] in said
    assert "fit one folder at a time" in said


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"archfit": "9.9"}, f"is written by archfit 9.9, and this is archfit {__version__}"),
        ({"format": 2}, "(format 2 and 1)"),
        ({"format": True}, "(format True and 1)"),
        ({"archfit": "\x1b[31m"}, "is written by archfit ?, and"),
        ({"archfit": None}, "is written by archfit ?, and"),
        ({"data": {}}, "sweep.json holds no sweep: Sweep.data is {}, not a list"),
        ({"data": [DATA]}, "sweep.json holds no sweep: Sweep.data[0] is "),
        ({"data": []}, "sweep.json holds no sweep: sweep own has cells on data"),
    ],
)
def test_a_sweep_of_another_version_or_damaged_is_one_sentence(
    tmp_path: Path, changes: dict[str, object], sentence: str
) -> None:
    folder = write_runs(tmp_path / "a", runs())
    write_sweep(folder, **changes)
    assert sentence in refusal(folder)


@pytest.mark.parametrize("text", ["[1]", "{", "[" * 100_000, "\udcff", "1" * 5000])
def test_a_sweep_that_is_no_object_is_one_sentence(tmp_path: Path, text: str) -> None:
    folder = write_runs(tmp_path / "a", runs())
    (folder / "sweep.json").write_bytes(text.encode(errors="surrogateescape"))
    assert "sweep.json holds no sweep: " in refusal(folder)


def test_a_sweep_too_large_to_be_one_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_runs(tmp_path / "a", runs())
    write_sweep(folder)
    monkeypatch.setattr(files, "LARGEST_SWEEP", 20)
    assert "over 20 bytes" in refusal(folder)


def test_folders_without_runs_say_what_to_run(tmp_path: Path) -> None:
    assert "has no finished run" in refusal(tmp_path)
    assert "is no folder" in refusal(tmp_path / "missing")


def test_too_few_repeats_say_how_many_are_needed() -> None:
    records = [record(shape(2, 32 + 8 * at), 3.0, 0) for at in range(9)]
    with pytest.raises(ValueError, match=r"need 4 runs that repeat .* seed \(here 0 of 9\);"):
        fitted(records)


def test_too_few_sizes_say_how_many_are_needed() -> None:
    random = np.random.default_rng(0)
    shapes = [shape(2, 64), shape(2, 96)]
    with pytest.raises(ValueError, match=r"has 2 sizes .* a curve needs 3, a size law 4"):
        fitted(simulated(shapes, lambda _: 3.0, std=1e-3, seeds=4, random=random))


def test_runs_that_all_diverged_say_so() -> None:
    with pytest.raises(ValueError, match="none of 1 runs finished"):
        fitted([record(shape(2, 64), 3.0, 0, diverged=True)])
