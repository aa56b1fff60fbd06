"""`archfit fit`, run as a user runs it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from archfit.fit.atlas import read_atlas
from archfit.spec import Factorised, RunRecord
from archfit.sweep.named import named_sweep
from archfit.sweep.sweep import Corpus
from tests_curves import (
    MIDDLE,
    OTHER_DATA,
    by_depth,
    power_law,
    record,
    shape,
    shifted_to_meet,
    simulated,
    widths,
    write_runs,
)
from tests_said import Said, said


def archfit(*arguments: str | Path) -> Said:
    return said("fit", *arguments)


def records() -> list[RunRecord]:
    shallow = power_law(2.0, 1.0, 0.2)
    deep = shifted_to_meet(power_law(2.1, 0.95, 0.25), shallow, MIDDLE)
    shapes = [shape(depth, width) for depth in (6, 12) for width in widths(depth, 1e6, 1e7, 5)]
    shapes.append(shape(6, 300, embedding=Factorised(inner=15)))
    random = np.random.default_rng(0)
    finished = simulated(shapes, by_depth({6: shallow, 12: deep}), std=1e-3, seeds=3, random=random)
    return [*finished, record(shape(6, 200), 9.0, 7, diverged=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_runs(tmp_path_factory.mktemp("runs"), records())


def test_the_document_has_the_keys_of_the_contract(folder: Path) -> None:
    document = archfit(folder, "--json").document()
    for key in ("crossings", "redundancy", "laws", "contrasts", "best_depth"):
        items = document[key]
        assert isinstance(items, list)
        assert items or key == "contrasts"
        assert all({"low", "high", "seeds"} <= item.keys() for item in items)
    assert document["diverged"] == 1
    crossings = document["crossings"]
    assert isinstance(crossings, list)
    (crossing,) = crossings
    assert crossing["outcome"] == "crossing"
    assert crossing["low"] < crossing["size"] < crossing["high"]
    assert 2.8e6 < crossing["low"] < crossing["high"] < 3.2e6


def test_people_get_tables_and_sentences(folder: Path) -> None:
    assert archfit(folder).out.startswith("Depth 12 overtakes depth 6 at ")
    said = archfit(folder, "--why")
    assert (said.status, said.err) == (0, "")
    assert "Redundancy" in said.out
    assert "Standard deviation over seeds: " in said.out
    assert "Left out: 1 diverged run." in said.out


def test_the_order_of_folders_does_not_matter(tmp_path: Path) -> None:
    own = records()
    first = write_runs(tmp_path / "a", own[::2])
    second = write_runs(tmp_path / "b", own[1::2])
    assert archfit(first, second, "--json").out == archfit(second, first, "--json").out


def test_mixed_data_is_one_sentence_and_status_two(folder: Path, tmp_path: Path) -> None:
    other = write_runs(tmp_path / "b", [record(shape(2, 64), 3.0, 0, data_hash=OTHER_DATA)])
    assert "fit one folder at a time" in archfit(folder, other).refusal()


def test_another_version_is_one_sentence_and_status_two(tmp_path: Path) -> None:
    write_runs(tmp_path, records()[:3])
    (tmp_path / "sweep.json").write_text(json.dumps({"format": 1, "archfit": "9.9"}))
    assert "is written by archfit 9.9" in archfit(tmp_path).refusal()


def test_too_few_points_and_no_folder_are_one_sentence_and_status_two(tmp_path: Path) -> None:
    write_runs(tmp_path, records()[:2])
    assert "intervals need 4 runs that repeat" in archfit(tmp_path).refusal()
    assert "is no folder" in archfit(tmp_path / "missing").refusal()


def test_the_shipped_runs_are_fitted_without_a_folder() -> None:
    document = archfit("--evidence", "--json").document()
    for key in ("findings", "sweeps", "crossings", "redundancy", "laws"):
        assert document[key]
    said = archfit("--evidence", "--why")
    assert said.status == 0
    assert "rank 16 of 256: 51.9 % (48.6 % to 55.1 %); 3 seeds" in said.out
    assert "REFUTED: at equal or larger ratio more is redundant at rank 16 than at" in said.out
    assert "OUTSIDE THE CLAIM'S HYPOTHESES: 2 layers are too few for theorem 2" in said.out
    assert "assumes depth above log3 of the width (Wies, theorem 2): not so for 2" in said.out


def test_folders_and_the_shipped_runs_are_not_fitted_together(folder: Path) -> None:
    assert "folders and --evidence are both given" in archfit(folder, "--evidence").refusal()
    assert "neither folders nor --evidence is given" in archfit().refusal()


def test_own_sweeps_join_the_atlas_under_the_names_of_their_folders(tmp_path: Path) -> None:
    corpus = Corpus(label="x", kind="abc", vocab=28, hash="e" * 64, folder="")
    specs = named_sweep("atlas", "smoke", [corpus], seeds=[0, 1], changes={}).specs
    made = [
        record(spec.architecture, 2 + 0.1 * np.log(spec.architecture.depth / 3) ** 2
               + 0.001 * spec.seed, spec.seed, recipe=spec.recipe)
        for spec in specs
    ]  # fmt: skip
    write_runs(tmp_path / "mine", made)
    document = archfit("--atlas", tmp_path / "mine", "--json").document()
    kinds = document["kinds"]
    assert isinstance(kinds, list)
    (size,) = kinds[-1]["series"][0]["sizes"]
    assert (kinds[-1]["name"], size["params"]) == ("mine", 30_000)
    assert size["best_depth"]["low"] < 3 < size["best_depth"]["high"]
    assert [depth["seeds"] for depth in size["depths"]] == [2] * len(size["depths"])
    listed = archfit("--atlas", tmp_path / "mine", "--why").out
    assert "mine" in listed
    assert "30k" in listed


def test_runs_on_data_of_the_atlas_are_more_seeds_of_its_kind(tmp_path: Path) -> None:
    shipped = next(run for run in read_atlas().runs if run.kind == "music")
    again = replace(shipped.record, spec=replace(shipped.spec, seed=9))
    write_runs(tmp_path / "music", [again])
    plain, more = (
        next(kind for kind in document["kinds"] if kind["name"] == "music")  # type: ignore[attr-defined]
        for document in (
            archfit("--atlas", "--json").document(),
            archfit("--atlas", tmp_path / "music", "--json").document(),
        )
    )
    assert more["runs"] == plain["runs"] + 1


def test_an_own_kind_needs_a_name_of_its_own(tmp_path: Path) -> None:
    write_runs(tmp_path / "dna", [record(shape(2, 64), 2.0, 0)])
    refused = archfit("--atlas", tmp_path / "dna").refusal()
    assert "dna is a kind of the atlas, and these runs were trained on other data" in refused
    assert "both given" in archfit("--atlas", "--evidence").refusal()
