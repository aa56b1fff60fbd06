"""An advice on disk: found again wherever it is moved, and never in place of somebody's files."""

from pathlib import Path

import pytest

from archfit.advise.source import AdviceRequest, Source, planned, prepared_source
from archfit.advise.stored import check_place, read_advice, store
from archfit.data.prepare import silent
from archfit.journey import check_replaceable, write_config


def wish_for(words: Path | str) -> AdviceRequest:
    source = Source(words=str(words), kind="", vocab=None, heldout=None, field=None)
    return AdviceRequest(source=source, params=60_000, context=64, max_depth=4)


@pytest.fixture
def fasta(tmp_path: Path) -> Path:
    path = tmp_path / "small.fa"
    path.write_text("".join(f">{n}\n{'ACGT' * n}\n" for n in range(1, 60)))
    return path


def commands(out: Path) -> list[str]:
    _, _, plan, _ = read_advice(out)
    return [repair.command for repair in plan.repairs]


def test_an_advice_that_was_moved_is_read_where_it_is(fasta: Path, tmp_path: Path) -> None:
    wish, out = wish_for(fasta), tmp_path / "out"
    data, plan = planned(wish, out, silent)
    store(out, wish, data, None, "archfit advise")
    moved = out.rename(tmp_path / "moved")
    assert read_advice(moved)[1].folder == moved / "data"
    assert read_advice(moved)[2].shape == plan.shape


def test_an_advice_on_prepared_data_names_the_same_source_from_any_folder(
    fasta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared_source(wish_for(fasta).source, tmp_path / "prepared", silent)
    monkeypatch.chdir(tmp_path)
    wish, out = wish_for("prepared"), tmp_path / "out"
    out.mkdir()
    data, plan = planned(wish, out, silent)
    store(out, wish, data, None, "archfit advise")
    wanted = [repair.command for repair in plan.repairs]
    assert "archfit data prepare small.fa" in wanted[0]
    monkeypatch.chdir("/")
    assert [one for one in commands(out) if "data prepare" in one] == wanted[:1]


def test_a_source_that_is_gone_is_said_to_be_gone(fasta: Path, tmp_path: Path) -> None:
    source = wish_for(fasta).source
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
    wish = wish_for(fasta)
    data, plan = planned(wish, out, silent)
    store(out, wish, data, None, "archfit advise")
    write_config(plan, data, model)
    check_place(out, ("report.html", "model"))
    check_replaceable(model)  # its own files
    (model / "model.safetensors").touch()  # somebody trained it there
    with pytest.raises(ValueError, match=r"holds model\.safetensors, which would be lost"):
        check_replaceable(model)
