"""`archfit sweep`: what it prints, its exit status, and its refusals; each is one sentence."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archfit.cli.app import main
from archfit.data.prepared import PreparedData
from archfit.spec.run_folder import read_records
from archfit.sweep.folder import read_sweep
from tests_said import Said
from tests_sweeps import assert_same_results, tiny_specs, undisturbed, write_sweep
from tests_training import tiny_data, tiny_spec

Archfit = Callable[..., Said]
NAMES = "levine-depth"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    return tiny_data(tmp_path_factory.mktemp("sweeps"))


@pytest.fixture
def archfit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Archfit:
    """The program, in this process; workers are processes of their own."""

    def run(*arguments: str) -> Said:
        monkeypatch.setattr("sys.argv", ["archfit", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Said(ended.value.code, said.out, said.err)

    return run


def test_json_is_one_document_and_the_second_time_all_is_skipped(
    archfit: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    specs = tiny_specs(data, 2)
    file, out = write_sweep(data, specs, tmp_path), tmp_path / "out"
    command = ("sweep", str(file), "--out", str(out), "--device", "cpu", "--json")
    document = archfit(*command, "--workers", "1").document()
    expected = {
        "sweep": "tiny", "scale": "smoke", "cells": 2, "done": 2, "failed": 0, "skipped": 0,
        "elsewhere": 0, "failures": [], "folder": str(out), "results": str(out / "results.csv"),
    }  # fmt: skip
    assert document == expected
    assert_same_results(out, undisturbed(specs, data, tmp_path / "by itself"))
    (out / "results.csv").unlink()
    assert archfit(*command).document() == expected | {"done": 0, "skipped": 2}
    assert len((out / "results.csv").read_text().splitlines()) == 3


def test_a_cell_that_fails_is_reported_once_and_the_status_is_1(
    archfit: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    (good,) = tiny_specs(data, 1)
    bad = tiny_spec(data, context=10**6)
    file, out = write_sweep(data, (bad, good), tmp_path), tmp_path / "out"
    said = archfit("sweep", str(file), "--out", str(out), "--device", "cpu", "--workers", "1")
    assert said.status == 1
    assert said.out.count(bad.name) == 1
    assert "1 cells failed" in said.out
    assert "tiny: 2 cells, 1 done now, 0 done before" in said.out
    assert [record.spec for record in read_records(out)] == [good]
    ends = [line for line in said.err.splitlines() if ": finished" in line]
    assert [line.split()[0] for line in ends] == [good.name]


def test_a_dry_run_counts_and_writes_nothing(archfit: Archfit, tmp_path: Path) -> None:
    document = archfit("sweep", NAMES, "--dry-run", "--json", "--out", str(tmp_path)).document()
    assert list(tmp_path.iterdir()) == []
    runs = document["runs"]
    assert isinstance(runs, list)
    assert document["cells"] == len(runs) > 1
    assert (document["done"], document["failed"], document["skipped"]) == (0, 0, 0)
    assert document["flops"] == pytest.approx(sum(run["flops"] for run in runs))
    assert document["tokens"] == sum(run["tokens"] for run in runs)
    assert len({run["run"] for run in runs}) == len(runs)
    listed = archfit("sweep", NAMES, "--dry-run").out
    assert f"{NAMES}, smoke: {len(runs)} cells" in listed


def test_more_seeds_are_more_cells(archfit: Archfit) -> None:
    one, two = (
        archfit("sweep", NAMES, "--dry-run", "--json", "--seeds", seeds).document()["cells"]
        for seeds in ("1", "2")
    )
    assert isinstance(one, int)
    assert two == 2 * one


def test_slurm_writes_a_batch_file_and_trains_nothing(
    archfit: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    specs = tiny_specs(data, 2)
    file, out, script = write_sweep(data, specs, tmp_path), tmp_path / "out", tmp_path / "job.sh"
    command = ("sweep", str(file), "--out", str(out), "--slurm", str(script), "--workers", "3")
    document = archfit(*command, "--json").document()
    assert (document["cells"], document["tasks"], document["script"]) == (2, 3, str(script))
    assert "#SBATCH --array=0-2\n" in script.read_text()
    assert read_sweep(out / "sweep.json").specs == specs
    assert read_records(out) == ()
    assert f"submit it by sbatch {script}" in archfit(*command).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nonsense",), "sweep 'nonsense' is unknown; use levine-depth,"),
        ((NAMES, "--scale", "tiny"), "scale='tiny' is unknown; use one of smoke, small, paper"),
        ((NAMES,), "--out is missing; name the folder"),
        ((NAMES, "--seeds", "0"), "--seeds 0 is not in 1..1000; each is a run"),
        ((NAMES, "--precision", "half"), "precision='half' is unknown"),
        ((NAMES, "--out", "OUT", "--scale", "small"), "prepare data by archfit data prepare"),
        ((NAMES, "--out", "OUT", "--workers", "0"), "workers=0 is below 1"),
        (("FILE", "--out", "OUT", "--threads", "0"), "threads=0 is below 1"),
        (("FILE", "--out", "OUT", "--device", "tpu"), "device='tpu' is unknown"),
        (("FILE", "--out", "OUT", "--checkpoint-seconds", "-1"), "checkpoint_seconds=-1.0 is not"),
        (
            ("FILE", "--out", "OUT", "--slurm", "OUT/no/job.sh"),
            "is in a folder that does not exist",
        ),
        (("nowhere.json", "--out", "OUT"), "nowhere.json: No such file or directory"),
        ((NAMES, "--out", "OUT", "--data", "DATA", "--data", "DATA"), "asks about one; give one"),
        ((NAMES, "--out", "OUT", "--data", "OUT/nowhere"), "nowhere"),
    ],
)
def test_bad_input_is_one_sentence(
    archfit: Archfit,
    data: PreparedData,
    tmp_path: Path,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    file = write_sweep(data, tiny_specs(data, 1), tmp_path)
    meant = {"OUT": str(tmp_path / "out"), "FILE": str(file), "DATA": str(data.folder)}
    words = [meant.get(word, word.replace("OUT/", f"{meant['OUT']}/")) for word in arguments]
    assert said in archfit("sweep", *words).refusal()
    assert list(tmp_path.glob("out/*/spec.json")) == []


def test_another_sweep_in_the_folder_is_refused(
    archfit: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    file = write_sweep(data, tiny_specs(data, 1), tmp_path)
    archfit("sweep", str(file), "--out", str(out), "--slurm", str(tmp_path / "job.sh"))
    other = replace(read_sweep(file), name="other")
    file.write_text(file.read_text().replace('"name":"tiny"', '"name":"other"'))
    assert read_sweep(file) == other
    said = archfit("sweep", str(file), "--out", str(out)).refusal()
    assert "holds the sweep tiny at scale smoke, and this is other at scale smoke" in said
    assert json.loads((out / "sweep.json").read_text())["name"] == "tiny"
