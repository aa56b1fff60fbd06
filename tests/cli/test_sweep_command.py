"""`archfit sweep`: what it prints, its exit status, and its refusals; each is one sentence."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archfit.cli.app import main
from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import DataSettings
from archfit.spec.files import read_records
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
    conclusion = "No conclusion yet: intervals need 4 runs that repeat a network with another seed "
    assert str(document["conclusions"]).startswith(f"['{conclusion}")
    expected = {
        "conclusions": document["conclusions"],
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
    assert said.err.count(bad.name) == 1
    assert "Failed: " in said.out
    assert "tiny: 2 runs, 1 done now, 0 done before, 1 failed" in said.out
    assert [record.spec for record in read_records(out)] == [good]
    ends = [line for line in said.err.splitlines() if ": finished" in line]
    assert [line.split()[0] for line in ends] == [good.name]


def test_failures_are_told_though_the_table_cannot_be_written(
    archfit: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    bad = tiny_spec(data, context=10**6)
    file, out = write_sweep(data, (bad,), tmp_path), tmp_path / "out"
    (out / "results.csv").mkdir(parents=True)
    said = archfit("sweep", str(file), "--out", str(out), "--device", "cpu", "--workers", "1")
    assert said.status == 2
    assert bad.name in said.err
    assert "results.csv: Is a directory" in said.err


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
    assert f"{NAMES}, smoke: {len(runs)} runs" in listed


def test_more_seeds_are_more_cells(archfit: Archfit) -> None:
    one, two = (
        archfit("sweep", NAMES, "--dry-run", "--json", "--seeds", seeds).document()["cells"]
        for seeds in ("1", "2")
    )
    assert isinstance(one, int)
    assert two == 2 * one


def test_tuning_is_three_rates_of_every_cell(archfit: Archfit) -> None:
    plain, tuned = (
        archfit("sweep", NAMES, "--dry-run", "--json", *more).document()["cells"]
        for more in ((), ("--tune",))
    )
    assert isinstance(plain, int)
    assert tuned == 3 * plain


def test_the_atlas_reads_no_data_more_than_four_times(archfit: Archfit, tmp_path: Path) -> None:
    letters, data = tmp_path / "letters.txt", tmp_path / "data"
    letters.write_text("ACGTTGCA" * 50_000)  # 400,000 bytes: four times that is 1.6M tokens
    archfit("data", "prepare", str(letters), "--kind", "bytes", "--out", str(data))
    sizes = []
    for given in ((), ("--data", str(data))):
        words = ("sweep", "atlas", "--scale", "small", "--dry-run", "--json", *given)
        runs = archfit(*words).document()["runs"]
        assert isinstance(runs, list)
        sizes.append(sorted({run["tokens"] for run in runs}))
    assert len(sizes[0]) == 5
    assert sizes[1] == sizes[0][:1] == [1_200_128]
    letters.write_text("ACGTTGCA" * 500)
    archfit("data", "prepare", str(letters), "--kind", "bytes", "--out", str(data), "--overwrite")
    refused = archfit("sweep", "atlas", "--data", str(data), "--out", str(tmp_path / "out"))
    assert "reads data 4 times at most, and these have too few; give more data" in refused.refusal()
    assert not list(tmp_path.glob("out/*/spec.json"))


def test_a_sweep_of_the_atlas_has_a_kind(archfit: Archfit, tmp_path: Path) -> None:
    letters, data = tmp_path / "letters.txt", tmp_path / "data"
    letters.write_text("ACGTTGCA" * 50_000)
    archfit("data", "prepare", str(letters), "--kind", "bytes", "--out", str(data))
    words = ("sweep", "atlas", "--data", str(data), "--dry-run")
    assert archfit(*words, "--kind", "mine").status == 0
    assert "holds other data than dna of the atlas" in archfit(*words, "--kind", "dna").refusal()
    missing = archfit("sweep", "atlas", "--kind", "dna", "--dry-run").refusal()
    assert "the data of dna do not ship (Escherichia coli" in missing
    other = archfit("sweep", "repeats", "--kind", "mine", "--dry-run").refusal()
    assert "repeats belongs to no atlas; leave it out" in other


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
    assert f"    sbatch {script}" in archfit(*command).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nonsense",), "sweep 'nonsense' is unknown; use levine-depth,"),
        (
            (NAMES, "--scale", "tiny"),
            "scale='tiny' is unknown; use one of smoke, small, medium, paper",
        ),
        ((NAMES,), "--out is missing; name the folder"),
        ((NAMES, "--seeds", "0"), "--seeds=0 is not in 1..1000; the nearest is 1"),
        ((NAMES, "--precision", "half"), "precision='half' is unknown"),
        ((NAMES, "--out", "OUT", "--scale", "small"), "prepare data by archfit data prepare"),
        ((NAMES, "--out", "OUT", "--workers", "0"), "workers=0 is below 1"),
        (("FILE", "--out", "OUT", "--threads", "0"), "threads=0 is below 1"),
        (("FILE", "--out", "OUT", "--device", "tpu"), "device='tpu' is unknown"),
        (
            ("FILE", "--out", "OUT", "--checkpoint-seconds", "-1"),
            "--checkpoint-seconds=-1.0 is not",
        ),
        (
            ("FILE", "--out", "OUT", "--slurm", "OUT/no/job.sh"),
            "is in a folder that does not exist",
        ),
        (("FILE", "--out", "OUT", "--slurm", "."), "is a folder; name the file"),
        ((NAMES, "--out", "OUT", "--ray", "auto", "--slurm", "job.sh"), "--ray auto and --slurm"),
        ((NAMES, "--out", "OUT", "--ray", "auto", "--workers", "2"), "--ray auto and --workers"),
        (("FILE", "--out", "OUT", "--seeds", "3"), "--seeds is for named sweeps"),
        (("FILE", "--out", "OUT", "--precision", "float32"), "--precision is for named sweeps"),
        (("mine.toml", "--dry-run", "--scale", "small"), "--scale is for named sweeps"),
        (("mine.toml", "--learning-rate-rule", "standard"), "--learning-rate-rule is for named"),
        (("nowhere.json", "--out", "OUT"), "nowhere.json: No such file or directory"),
        ((NAMES, "--dry-run", "--data", "DATA", "--data", "DATA"), "asks about one; give one"),
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


@pytest.mark.parametrize(
    "arguments", [("--device", "tpu"), ("--threads", "0"), ("--slurm", "no/where/job.sh")]
)
def test_what_could_not_be_run_is_refused_before_data_are_prepared(
    archfit: Archfit, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    archfit("sweep", NAMES, "--out", str(tmp_path / "out"), *arguments).refusal()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["wies-vocab", "repairs", "wies-rank"])
@pytest.mark.parametrize("kind", ["fasta", "bytes"])
def test_a_dry_run_on_own_data_lists_the_networks_that_would_be_trained(
    archfit: Archfit, tmp_path: Path, name: str, kind: str
) -> None:
    folder = _prepared(tmp_path, kind)
    command = ("sweep", name, "--data", str(folder), "--seeds", "1", "--json")
    runs = archfit(*command, "--dry-run").document()["runs"]
    script = ("--out", str(tmp_path / "out"), "--slurm", str(tmp_path / "job.sh"))
    archfit(*command, *script).document()
    made = Counter(
        (shape.depth, shape.width, shape.input.vocab, shape.params)
        for shape in (spec.architecture for spec in read_sweep(tmp_path / "out/sweep.json").specs)
    )
    assert isinstance(runs, list)
    keys = ("depth", "width", "vocab", "params")
    assert Counter(tuple(run[key] for key in keys) for run in runs) == made


def _prepared(folder: Path, kind: str) -> Path:
    draws, source = random.Random(0), folder / "source"
    letters, between = ("ACGT", "\n>next\n") if kind == "fasta" else ("abcdefghijklmnopqrst", " ")
    words = ["".join(draws.choices(letters, k=9)) for _ in range(3000)]  # enough for a BPE of 1000
    source.write_text(between.lstrip() + between.join(words) + "\n")
    return prepare(str(source), folder / "data", DataSettings(kind=kind)).data.folder


def test_a_counted_sweep_file_has_the_scale_that_it_says(
    archfit: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    file = write_sweep(data, tiny_specs(data, 1), tmp_path)
    file.write_text(file.read_text().replace('"scale":"smoke"', '"scale":"small"'))
    assert archfit("sweep", str(file), "--dry-run", "--json").document()["scale"] == "small"


def test_a_sweep_goes_on_with_all_its_data_when_others_are_added(
    archfit: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    words, heldout = tmp_path / "more/words.txt", data.folder.parent / "heldout.txt"
    words.write_text("other words " * 300)
    more = prepare(
        str(words), tmp_path / "more/data", DataSettings(kind="bytes"), heldout=str(heldout)
    ).data
    out, sweep = tmp_path / "out", ("sweep", str(tmp_path / "tiny.json"), "--device", "cpu")
    for one in (data, more):
        write_sweep(one, tiny_specs(one, 1), tmp_path)
        archfit(*sweep, "--out", str(out), "--slurm", str(tmp_path / "job.sh"))
    document = archfit(*sweep, "--out", str(out), "--json").document()
    assert (document["done"], document["failed"]) == (2, 0)


def test_a_sweep_whose_data_were_moved_is_told_where_they_are(
    archfit: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    shutil.copytree(data.folder, place)
    file, out = write_sweep(open_prepared(place), tiny_specs(data, 1), tmp_path), tmp_path / "out"
    shutil.rmtree(place)
    command = ("sweep", str(file), "--out", str(out), "--device", "cpu")
    assert "give --data DIR" in archfit(*command).refusal()
    assert archfit(*command, "--data", str(data.folder), "--json").document()["done"] == 1
    assert archfit(*command, "--json").document()["skipped"] == 1  # records need no data
    more = tmp_path / "more"
    more.mkdir()
    (more / "words.txt").write_text("other words " * 300)
    other = prepare(str(more / "words.txt"), more / "data", DataSettings(kind="bytes")).data
    said = archfit(*command, "--data", str(other.folder)).refusal()
    assert "is none of the data of tiny, whose cells are made for bytes" in said


def test_data_of_one_name_are_refused(archfit: Archfit, tmp_path: Path) -> None:
    folders = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.txt").write_text(f"other words {name} " * 300)
        made = prepare(
            str(tmp_path / name / "words.txt"), tmp_path / name / "data", DataSettings(kind="bytes")
        )
        folders += ["--data", str(made.data.folder)]
    said = archfit("sweep", "wies-vocab", "--out", str(tmp_path / "out"), *folders).refusal()
    assert "two of the data sets are called data" in said


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


def test_a_file_that_is_wrong_leaves_no_folder(archfit: Archfit, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[[grid]]\ndepht = [2]\n")
    said = archfit("sweep", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out")).refusal()
    assert "line 2: 'depht' is no key of a [[grid]]" in said
    assert not (tmp_path / "out").exists()
