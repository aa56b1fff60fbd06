"""What a hostile file, a strange file system or a second process may not do."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from archfit.cli.app import main
from archfit.data.prepare import Preparation, prepare
from archfit.data.shards import atomic_folder
from archfit.data.sources import DataSettings

TEXT = "".join(f"document {n} says {n * n}\n<|doc|>\n" for n in range(300))


def test_a_file_system_without_locks_is_no_reason_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with atomic_folder(tmp_path / "data", overwrite=False) as folder:
        (folder / "a").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_refused_run_leaves_no_parents_behind(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    with pytest.raises(ValueError, match="empty"):
        prepare(
            str(tmp_path / "empty.txt"), tmp_path / "new" / "deep" / "x", DataSettings(kind="text")
        )
    assert [path.name for path in tmp_path.iterdir()] == ["empty.txt"]


def test_a_data_set_that_was_being_replaced_comes_back(tmp_path: Path) -> None:
    """Killed between the two renames, a process leaves the old data set aside."""
    aside = tmp_path / ".data.partial-1234-old"
    aside.mkdir()
    (aside / "old").touch()
    with pytest.raises(KeyError), atomic_folder(tmp_path / "data", overwrite=True):
        raise KeyError
    assert (tmp_path / "data" / "old").exists()


def test_two_equal_prepares_at_once_both_succeed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT * 50)
    both = Barrier(2, timeout=30)

    def start(stage: str, done: int, _: int) -> None:
        if (stage, done) == ("encoding", 0):  # each has looked and found nothing there
            both.wait()

    def once(_: int) -> Preparation:
        settings = DataSettings(kind="text")
        return prepare(str(tmp_path / "a.txt"), tmp_path / "data", settings, report=start)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(once, range(2))
    assert first.data == second.data
    assert first.already_there != second.already_there


def test_the_same_bytes_under_another_ending_are_other_work(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"text": f"line {n}"}) + "\n" for n in range(300))
    for name in ("w.txt", "w.jsonl"):
        (tmp_path / name).write_text(lines)
    prepare(str(tmp_path / "w.txt"), tmp_path / "data", DataSettings(kind="text"))
    with pytest.raises(ValueError, match="made from other data or settings"):
        prepare(str(tmp_path / "w.jsonl"), tmp_path / "data", DataSettings(kind="text"))


def test_output_inside_a_source_of_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc" * 100)
    with pytest.raises(ValueError, match="lies inside"):
        prepare(str(tmp_path), tmp_path / "out", DataSettings(kind="bytes"))


def test_a_folder_that_cannot_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    real = os.scandir

    def scandir(path: str | int) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path)

    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(ValueError, match="closed cannot be read"):
        prepare(str(tmp_path), tmp_path / "out", DataSettings(kind="text"))


@pytest.mark.parametrize(
    "damage",
    [{"documents": None}, {"cooccurrence": {}}, {"leakage": {}}, {"train": {"tokens": "x"}}],
)
def test_a_damaged_description_is_one_sentence(
    damage: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    prepare(str(tmp_path / "a.txt"), tmp_path / "data", DataSettings(kind="text"))
    file = tmp_path / "data" / "data.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | damage))
    monkeypatch.setattr(sys, "argv", ["archfit", "data", "inspect", str(tmp_path / "data")])
    with pytest.raises(SystemExit, match="2"):
        main()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("archfit: ")


def _interrupted(running: subprocess.Popen[str]) -> str:
    """What a process says after Ctrl-C, pressed again as people do if nothing happens: Python
    drops an interrupt that comes while it runs a finaliser or imports a module."""
    for _ in range(10):
        running.send_signal(signal.SIGINT)
        try:
            return running.communicate(timeout=6)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("ten interrupts did not end it")


def test_ctrl_c_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT * 20000)
    command = [sys.executable, "-m", "archfit", "data", "prepare", str(tmp_path / "a.txt")]
    options = ["--vocab", "2000", "--out", str(tmp_path / "data")]
    running = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    while not any(".data.partial" in path.name for path in tmp_path.iterdir()):
        assert running.poll() is None
        time.sleep(0.01)
    said = _interrupted(running)
    assert running.returncode == 130
    assert said.endswith("archfit: interrupted; nothing half-written is left\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
