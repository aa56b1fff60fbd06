"""The list of a runner: what it hands out, and what becomes of a cell that fails."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archfit.data.prepared import PreparedData
from archfit.spec import RunSpec
from archfit.spec.files import is_held
from archfit.sweep.runner import TRIES, CellQueue, SweepWatcher
from tests_sweeps import (
    PATIENCE,
    started,
    sweep_command,
    tiny_specs,
    wait_until,
    write_sweep,
)

Specs = tuple[RunSpec, ...]


@pytest.fixture(scope="module")
def specs(data: PreparedData) -> Specs:
    return tiny_specs(data, 4)


def anything(_: RunSpec) -> bool:
    return True


def everything(cells: CellQueue) -> list[RunSpec]:
    """All that it hands out until there is no more."""
    return list(iter(lambda: cells.next(anything), None))


@contextmanager
def somebody_at(spec: RunSpec, out: Path) -> Iterator[None]:
    """Hold the lock of a cell, as a worker does."""
    (out / spec.name).mkdir(exist_ok=True)
    with open(out / spec.name / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def finish(spec: RunSpec, out: Path) -> None:
    (out / spec.name).mkdir(exist_ok=True)
    (out / spec.name / "record.json").write_text("{}")


def test_every_cell_is_handed_out_once_in_order(specs: Specs, tmp_path: Path) -> None:
    assert everything(CellQueue(specs, tmp_path)) == list(specs)


def test_cells_that_are_done_are_skipped_and_their_checkpoints_removed(
    specs: Specs, tmp_path: Path
) -> None:
    finish(specs[1], tmp_path)
    left_over = tmp_path / specs[1].name / "checkpoint" / "step-000000005"
    left_over.mkdir(parents=True)
    cells = CellQueue(specs, tmp_path)
    assert everything(cells) == [specs[0], specs[2], specs[3]]
    assert (cells.skipped, cells.left) == ([specs[1]], 3)
    assert [path.name for path in (tmp_path / specs[1].name).iterdir()] == ["record.json"]


def test_a_cell_that_somebody_holds_comes_back_when_he_lets_go(
    specs: Specs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.sweep.runner.SECONDS_BETWEEN_LOOKS", 0.0)
    cells = CellQueue(specs, tmp_path)
    with somebody_at(specs[0], tmp_path), somebody_at(specs[2], tmp_path):
        assert everything(cells) == [specs[1], specs[3]]
        assert cells.elsewhere == [specs[0], specs[2]]
        finish(specs[2], tmp_path)
    assert everything(cells) == [specs[0]]
    assert (cells.skipped, cells.elsewhere) == ([specs[2]], [])


def test_a_lock_that_nobody_holds_any_more_stops_nobody(specs: Specs, tmp_path: Path) -> None:
    with somebody_at(specs[0], tmp_path):
        pass
    assert (tmp_path / specs[0].name / ".lock").exists()
    assert CellQueue(specs, tmp_path).next(anything) == specs[0]


def test_what_does_not_fit_keeps_its_place(specs: Specs, tmp_path: Path) -> None:
    cells = CellQueue(specs, tmp_path)
    assert cells.next(lambda spec: spec == specs[2]) == specs[2]
    assert everything(cells) == [specs[0], specs[1], specs[3]]


def test_a_file_where_a_folder_should_be_stops_nobody(specs: Specs, tmp_path: Path) -> None:
    (tmp_path / specs[0].name).write_text("mine")
    assert everything(CellQueue(specs, tmp_path)) == list(specs)


def test_a_cell_whose_process_dies_is_tried_after_the_others_and_given_up_in_the_end(
    specs: Specs, tmp_path: Path
) -> None:
    cells = CellQueue(specs, tmp_path)
    order = []
    while (spec := cells.next(anything)) is not None:
        order.append(spec)
        died: dict[str, object] = {"event": "died", "reason": "killed by signal 11"}
        cells.note(spec, died if spec == specs[0] else {"event": "finished"}, SweepWatcher())
    assert order == [*specs, specs[0], specs[0]]
    assert len(order) == len(specs) - 1 + TRIES
    assert cells.failed == {specs[0]: "killed by signal 11 (3 times)"}
    assert (cells.done, cells.left) == (list(specs[1:]), 0)


def test_a_refused_cell_is_not_tried_again(specs: Specs, tmp_path: Path) -> None:
    cells = CellQueue(specs, tmp_path)
    assert cells.next(anything) == specs[0]
    cells.note(specs[0], {"event": "refused", "reason": "context=9 is too long"}, SweepWatcher())
    assert everything(cells) == list(specs[1:])
    assert cells.failed == {specs[0]: "context=9 is too long"}


def test_one_that_ran_out_of_memory_is_tried_once_more_alone(specs: Specs, tmp_path: Path) -> None:
    cells = CellQueue(specs[:1], tmp_path)
    event: dict[str, object] = {"event": "out_of_memory", "reason": "too large"}
    for alone in (False, True):
        assert cells.next(anything) == specs[0]
        assert (specs[0] in cells.alone) is alone
        cells.note(specs[0], event, SweepWatcher())
    assert cells.next(anything) is None
    assert cells.failed == {specs[0]: "too large"}


def test_one_that_was_held_meanwhile_is_not_lost(
    specs: Specs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.sweep.runner.SECONDS_BETWEEN_LOOKS", 0.0)
    cells = CellQueue(specs[:1], tmp_path)
    assert cells.next(anything) == specs[0]
    cells.note(specs[0], {"event": "held"}, SweepWatcher())
    assert cells.next(anything) == specs[0]


def test_a_sweep_whose_folder_is_deleted_ends_with_a_sentence(
    data: PreparedData, tmp_path: Path
) -> None:
    specs = tiny_specs(data, 3, steps=5000)
    out = tmp_path / "out"
    runner = started(sweep_command(write_sweep(data, specs, tmp_path), out))
    wait_until(lambda: any(is_held(out / spec.name) for spec in specs), "a cell in training")

    def is_gone() -> bool:
        """A worker may write a file between the looks into its folder."""
        shutil.rmtree(out, ignore_errors=True)
        return not out.exists()

    wait_until(is_gone, "the folder to be gone")
    _, said = runner.communicate(timeout=PATIENCE)
    assert runner.returncode == 2
    assert f"{out} was deleted while the sweep ran" in said
    assert not list(out.glob("*/record.json"))
