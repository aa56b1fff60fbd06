"""The folder of a sweep: what `sweep.json` takes up and refuses, and a table always remade."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from archfit import __version__
from archfit.data.prepared import PreparedData
from archfit.sweep.folder import open_sweep, read_sweep, sweep_json, write_results
from tests_sweeps import tiny_specs, tiny_sweep
from tests_training import record_of


def test_more_cells_extend_a_sweep_and_fewer_take_none_away(
    data: PreparedData, tmp_path: Path
) -> None:
    specs = tiny_specs(data, 3)
    open_sweep(tmp_path, tiny_sweep(data, specs[1:]))
    assert set(open_sweep(tmp_path, tiny_sweep(data, specs[:2])).specs) == set(specs)
    assert set(open_sweep(tmp_path, tiny_sweep(data, specs[:1])).specs) == set(specs)
    assert set(read_sweep(tmp_path / "sweep.json").specs) == set(specs)
    (corpus,) = read_sweep(tmp_path / "sweep.json").data
    assert corpus.folder == str(data.folder.resolve())


def test_a_sweep_that_is_there_as_wanted_is_not_written_again(
    data: PreparedData, tmp_path: Path
) -> None:
    wanted = tiny_sweep(data, tiny_specs(data, 2))
    open_sweep(tmp_path, wanted)
    written = os.stat(tmp_path / "sweep.json").st_ino, os.stat(tmp_path / "sweep.json").st_mtime_ns
    assert open_sweep(tmp_path, wanted) == wanted
    found = os.stat(tmp_path / "sweep.json")
    assert (found.st_ino, found.st_mtime_ns) == written


def test_another_sweep_or_scale_in_the_folder_is_refused(
    data: PreparedData, tmp_path: Path
) -> None:
    specs = tiny_specs(data, 1)
    open_sweep(tmp_path, tiny_sweep(data, specs))
    with pytest.raises(ValueError, match=r"holds the sweep tiny .* this is other .*--out"):
        open_sweep(tmp_path, tiny_sweep(data, specs, "other"))
    with pytest.raises(ValueError, match="at scale smoke, and this is tiny at scale small"):
        open_sweep(tmp_path, replace(tiny_sweep(data, specs), scale="small"))


def test_a_sweep_of_another_version_is_refused(data: PreparedData, tmp_path: Path) -> None:
    wanted = tiny_sweep(data, tiny_specs(data, 1))
    open_sweep(tmp_path, wanted)
    text = (tmp_path / "sweep.json").read_text()
    assert f'"archfit":"{__version__}"' in text
    (tmp_path / "sweep.json").write_text(text.replace(__version__, "0.0.1"))
    with pytest.raises(ValueError, match=r"written by archfit 0\.0\.1, and this is archfit"):
        open_sweep(tmp_path, wanted)


@pytest.mark.parametrize("form", ["true", "2", "null"])
def test_a_sweep_of_another_format_is_refused(tmp_path: Path, form: str) -> None:
    path = tmp_path / "sweep.json"
    path.write_text(f'{{"format":{form},"archfit":"{__version__}"}}')
    with pytest.raises(ValueError, match=r"is written by archfit .* \(format "):
        read_sweep(path)


@pytest.mark.parametrize("content", ["", "[]", '{"format":', "[" * 100_000, "\0\1\2"])
def test_a_damaged_file_is_refused_by_its_name(
    data: PreparedData, tmp_path: Path, content: str
) -> None:
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(ValueError, match=r"sweep\.json holds no sweep: .*delete it"):
        open_sweep(tmp_path, tiny_sweep(data, tiny_specs(data, 1)))


def test_a_pipe_is_refused_by_its_name_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "sweep.json")
    with pytest.raises(ValueError, match=r"sweep\.json holds no sweep: it is a pipe"):
        read_sweep(tmp_path / "sweep.json")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data": []}, "has cells on data .* that it does not name"),
        ({"specs": []}, "has no cells"),
        ({"question": "\x1b]0;yours\x07"}, r"question='\\x1b.*control character"),
        ({"name": "\ud800"}, "holds half a character"),
    ],
)
def test_a_sweep_that_no_runner_writes_is_refused(
    data: PreparedData, tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    document = json.loads(sweep_json(tiny_sweep(data, tiny_specs(data, 1))))
    (tmp_path / "sweep.json").write_text(json.dumps(document | changes))
    with pytest.raises(ValueError, match=rf"sweep\.json holds no sweep: .*{said}"):
        read_sweep(tmp_path / "sweep.json")


def test_data_in_a_folder_that_cannot_be_written_down_are_refused(data: PreparedData) -> None:
    (place,) = tiny_sweep(data, tiny_specs(data, 1)).data
    assert replace(place, folder="/d\u202fata/ü").folder  # blanks of macOS are fine
    with pytest.raises(ValueError, match=r"folder='/a.nb' has a control character"):
        replace(place, folder="/a\nb")


def test_a_sweep_with_a_changed_cell_is_refused(data: PreparedData, tmp_path: Path) -> None:
    open_sweep(tmp_path, tiny_sweep(data, tiny_specs(data, 1)))
    text = (tmp_path / "sweep.json").read_text()
    (tmp_path / "sweep.json").write_text(text.replace('"steps":12', '"steps":"many"'))
    with pytest.raises(ValueError, match=r"sweep\.json holds no sweep"):
        read_sweep(tmp_path / "sweep.json")


def test_the_table_is_made_from_records_whatever_lay_there(
    data: PreparedData, tmp_path: Path
) -> None:
    specs = tiny_specs(data, 3)
    sweep = open_sweep(tmp_path, tiny_sweep(data, specs))
    records = [record_of(spec, data, tmp_path) for spec in specs[:2]]
    first = write_results(tmp_path, sweep).read_bytes()
    (tmp_path / "results.csv").unlink()
    assert write_results(tmp_path, sweep).read_bytes() == first
    (tmp_path / "results.csv").write_bytes(b"\xff garbage")
    assert write_results(tmp_path, sweep).read_bytes() == first
    rows = list(csv.DictReader(first.decode().splitlines()))
    expected = {
        record.spec.name: repr(record.evaluations[-1].heldout_nats_per_token) for record in records
    }
    assert {row["run"]: row["loss"] for row in rows} == expected
    assert {(row["data"], row["status"], row["steps"]) for row in rows} == {
        ("bytes", "finished", "12")
    }


def test_the_table_has_the_units_of_the_feed_forward_layer(
    data: PreparedData, tmp_path: Path
) -> None:
    (spec,) = tiny_specs(data, 1)
    shape = replace(spec.architecture, feed_forward=3 * spec.architecture.width)
    sweep = open_sweep(tmp_path, tiny_sweep(data, (replace(spec, architecture=shape),)))
    record_of(sweep.specs[0], data, tmp_path)
    (row,) = csv.DictReader(write_results(tmp_path, sweep).read_text().splitlines())
    assert int(row["feed_forward"]) == 3 * int(row["width"])


def test_a_record_in_the_folder_of_another_run_is_noticed(
    data: PreparedData, tmp_path: Path
) -> None:
    specs = tiny_specs(data, 2)
    sweep = open_sweep(tmp_path, tiny_sweep(data, specs))
    record_of(specs[0], data, tmp_path)
    (tmp_path / specs[0].name).rename(tmp_path / specs[1].name)
    with pytest.raises(ValueError, match=f"is of another run, {specs[0].name}"):
        write_results(tmp_path, sweep)
