import errno
import os
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
