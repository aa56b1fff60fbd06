import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from archfit.data.series import PlainIds
from archfit.data.shards import ShardWriter, atomic_folder
from archfit.data.streams import DocumentBlock
from archfit.data.vocabulary import Bytes


@pytest.mark.parametrize(("vocab", "dtype"), [(65536, "<u2"), (65537, "<u4")])
def test_ids_are_written_flat_hashed_and_counted(tmp_path: Path, vocab: int, dtype: str) -> None:
    ids = np.random.default_rng(0).integers(0, vocab, 10_000)
    with ShardWriter(tmp_path / "x.bin", PlainIds(size=vocab, separator=None), 1) as writer:
        for part, ends in ((ids[:3000], False), (ids[3000:3001], True), (ids[3001:], True)):
            writer.add(DocumentBlock([part.astype("<u4").tobytes()], complete=ends))
        writer.add(DocumentBlock([], complete=True))
        described, checksums = writer.finish()
    content = (tmp_path / "x.bin").read_bytes()
    assert content == ids.astype(dtype).tobytes()
    assert described["sha256"] == hashlib.sha256(content).hexdigest()
    assert (described["tokens"], described["bytes"], described["documents"]) == (10000, 40000, 2)
    blocks = [content[at : at + 16384] for at in range(0, len(content), 16384)]
    assert checksums == b"".join(hashlib.sha256(block).digest()[:8] for block in blocks)
    assert np.array_equal(writer.counts, np.bincount(ids, minlength=vocab))
    assert writer.dtype.itemsize == int(dtype[-1])


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_the_folder_appears_only_when_all_went_well(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "data"
    with atomic_folder(target, overwrite=False) as folder:
        (folder / "file").write_text("x")
        assert not target.exists()
    assert (target / "file").read_text() == "x"
    assert hidden(target.parent) == []


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with atomic_folder(tmp_path / "data", overwrite=False):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    def fill() -> None:
        with atomic_folder(tmp_path / "data", overwrite=False):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=r"^no space left while writing data; free some or choose"):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_a_really_full_device_is_met_by_the_writer(tmp_path: Path) -> None:
    def fill() -> None:
        with (
            atomic_folder(tmp_path / "data", overwrite=False),
            ShardWriter(Path("/dev/full"), Bytes(), 1) as writer,
        ):
            writer.add(DocumentBlock([bytes(100_000)], complete=True))

    with pytest.raises(OSError, match=r"^no space left while writing data"):
        fill()


def test_what_a_dead_process_left_is_removed_and_a_live_one_kept(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from archfit.data.shards import atomic_folder\n"
        "with atomic_folder(Path(sys.argv[1]), overwrite=False) as folder:\n"
        "    print(folder.name, flush=True); time.sleep(60)\n"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "data")]
    with (
        subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as dead,
        subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as live,
    ):
        assert dead.stdout is not None
        assert live.stdout is not None
        left, kept = dead.stdout.readline().strip(), live.stdout.readline().strip()
        dead.kill()
        dead.wait()
        assert set(hidden(tmp_path)) == {left, kept}
        with atomic_folder(tmp_path / "data", overwrite=False):
            assert kept in hidden(tmp_path)
            assert left not in hidden(tmp_path)
        live.kill()


def test_a_target_that_appears_meanwhile_is_not_mixed_with(tmp_path: Path) -> None:
    def race() -> None:
        with atomic_folder(tmp_path / "data", overwrite=False) as folder:
            (folder / "mine").write_text("x")
            (tmp_path / "data").mkdir()
            (tmp_path / "data" / "theirs").write_text("y")

    with pytest.raises(ValueError, match="data appeared while it was being prepared"):
        race()
    assert os.listdir(tmp_path / "data") == ["theirs"]
    assert hidden(tmp_path) == []


def test_overwriting_replaces_the_whole_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "old").write_text("x")
    with atomic_folder(tmp_path / "data", overwrite=True) as folder:
        (folder / "new").write_text("y")
    assert os.listdir(tmp_path / "data") == ["new"]
    assert hidden(tmp_path) == []
