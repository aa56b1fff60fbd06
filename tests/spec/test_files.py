import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from archfit.spec import write_whole


def test_on_a_full_disk_the_old_file_stays_and_no_half_of_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sweep.json"
    write_whole(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*sweep\.json'"):
        write_whole(path, b"new")
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == {"sweep.json": b"old"}


def test_two_writers_of_one_file_do_not_mix_their_contents(tmp_path: Path) -> None:
    """Neither fails, and whoever reads meanwhile sees what one of them wrote, whole."""
    program = (
        "import sys; from pathlib import Path; from archfit.spec import write_whole\n"
        "for _ in range(100): write_whole(Path(sys.argv[1]), sys.argv[2].encode() * 100_000)"
    )
    path = tmp_path / "advice.json"
    words = [[sys.executable, "-c", program, str(path), letter] for letter in "ab"]
    writers = [subprocess.Popen(each, stderr=subprocess.PIPE, text=True) for each in words]
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            assert path.read_bytes() in (b"a" * 100_000, b"b" * 100_000)
    assert [writer.communicate()[1] for writer in writers] == ["", ""]
    assert [file.name for file in tmp_path.iterdir()] == ["advice.json"]
