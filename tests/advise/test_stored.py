"""An advice on disk: found again wherever it is moved, and never in place of somebody's files."""

import json
from pathlib import Path

import pytest

from archfit.advise.advice import Advice, advised, check_place, decided, read_advice, store
from archfit.advise.budgets import TrainingMinutes, known_speed
from archfit.advise.ladder import LadderRun
from archfit.advise.measure import Measured
from archfit.advise.plan_request import PlanOptions
from archfit.advise.source import prepared_source
from archfit.data.prepare import silent
from archfit.journey import check_replaceable, write_config
from archfit.spec.files import ADVICE
from tests_advice import prepared, source_of, write_fasta

OPTIONS = PlanOptions(params=60_000, context=64, max_depth=4)


@pytest.fixture
def fasta(tmp_path: Path) -> Path:
    return write_fasta(tmp_path / "small.fa")


def advice_on(words: Path | str, out: Path, options: PlanOptions = OPTIONS) -> Advice:
    """What `advise --no-measure` finds and stores."""
    source = source_of(words)
    data = prepared_source(source, out / "data", silent)
    out.mkdir(exist_ok=True)
    found = advised(source, options, data, out, None)
    store(out, found, options, "archfit advise")
    return found


def test_an_advice_on_the_sample_is_read_as_it_was_stored(tmp_path: Path) -> None:
    found = advice_on("sample", tmp_path, PlanOptions(params=300_000, context=64))
    read, stored = read_advice(tmp_path)
    assert read == found
    assert stored.command == "archfit advise"
    assert stored.family == "text"
    assert Path(stored.data).name == "bpe-512"
    assert not Path(stored.data).is_absolute()


def test_runs_and_the_speed_of_the_machine_are_stored(fasta: Path, tmp_path: Path) -> None:
    data, options = prepared(fasta, tmp_path), PlanOptions(minutes=5, context=64)
    runs = tuple(
        LadderRun(size=250_000, depth=depth, seed=0, params=251_000, bits=1.9 + 0.01 * depth)
        for depth in (1, 2, 4)
    )
    speed = known_speed("cpu")
    found = decided(source_of(fasta), options, data, "DNA", Measured(runs=runs, speed=speed))
    store(tmp_path, found, options, "archfit advise")
    read, stored = read_advice(tmp_path)
    assert read == found
    assert read.plan.basis.source == "ladder"
    assert stored.speed == speed
    budget = read.plan.request.budget
    assert isinstance(budget, TrainingMinutes)
    assert budget.speed == speed


def test_an_advice_that_was_moved_is_read_where_it_is(fasta: Path, tmp_path: Path) -> None:
    found = advice_on(fasta, tmp_path / "out")
    moved = (tmp_path / "out").rename(tmp_path / "moved")
    read, _ = read_advice(moved)
    assert read.data.folder == moved / "data"
    assert read.plan.shape == found.plan.shape


def test_an_advice_on_prepared_data_names_the_same_source_from_any_folder(
    fasta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared_source(source_of(fasta), tmp_path / "prepared", silent)
    monkeypatch.chdir(tmp_path)
    found = advice_on("prepared", tmp_path / "out")
    monkeypatch.chdir("/")
    read, stored = read_advice(tmp_path / "out")
    assert Path(stored.data) == tmp_path / "prepared"
    assert read.plan.best == found.plan.best


@pytest.mark.parametrize("changed", [{"format": 1}, {"archfit": "0.0.1"}, {"runs": "none"}])
def test_an_advice_of_another_version_is_refused_with_the_way_out(
    changed: dict[str, object], fasta: Path, tmp_path: Path
) -> None:
    advice_on(fasta, tmp_path)
    file = tmp_path / ADVICE
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    with pytest.raises(ValueError, match=r"advice\.json .*; run archfit advise again"):
        read_advice(tmp_path)


def test_a_source_that_is_gone_is_said_to_be_gone(fasta: Path, tmp_path: Path) -> None:
    source = source_of(fasta)
    prepared_source(source, tmp_path / "out" / "data", silent)
    fasta.write_text(fasta.read_text() * 2)
    with pytest.raises(ValueError, match="out holds the advice on other data or settings; use"):
        prepared_source(source, tmp_path / "out" / "data", silent)
    fasta.unlink()
    with pytest.raises(ValueError, match="there is no file or folder"):
        prepared_source(source, tmp_path / "out" / "data", silent)


def test_files_of_others_are_not_replaced(fasta: Path, tmp_path: Path) -> None:
    out, model = tmp_path / "out", tmp_path / "out" / "model"
    model.mkdir(parents=True)
    with pytest.raises(ValueError, match="holds model and no advice, and model would be lost"):
        check_place(out, ("report.html", "model"))
    found = advice_on(fasta, out)
    write_config(found.plan, found.data, model)
    check_place(out, ("report.html", "model"))
    check_replaceable(model)  # its own files
    (model / "model.safetensors").touch()  # somebody trained it there
    with pytest.raises(ValueError, match=r"holds model\.safetensors, which would be lost"):
        check_replaceable(model)
