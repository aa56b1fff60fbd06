import gzip
import hashlib
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from archfit.data.unpack import Ledger, SourceFile, lines_of, raw_chunks, unpacked_chunks

Writer = Callable[[str, bytes], SourceFile]
TEXT = b"".join(b"line %d of some text\n" % number for number in range(200_000))
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("suffix", PACK)
def test_packed_files_read_like_plain_ones(
    suffix: str, source_file: Writer, ledger: Ledger
) -> None:
    packed = PACK[suffix](TEXT)
    file = source_file("t.txt" + suffix, packed)
    assert b"".join(unpacked_chunks(file, ledger)) == TEXT
    assert file.suffix == ".txt"
    noted = ledger.files["t.txt" + suffix]
    assert (noted.bytes, noted.sha256) == (len(packed), hashlib.sha256(packed).hexdigest())


@pytest.mark.parametrize("suffix", PACK)
def test_streams_packed_one_after_another_are_all_read(
    suffix: str, source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("t" + suffix, PACK[suffix](b"first ") + PACK[suffix](b"second"))
    assert b"".join(unpacked_chunks(file, ledger)) == b"first second"


@pytest.mark.parametrize("suffix", PACK)
def test_a_truncated_file_is_named(suffix: str, source_file: Writer, ledger: Ledger) -> None:
    file = source_file("t" + suffix, PACK[suffix](os.urandom(100_000))[:-20])
    with pytest.raises(ValueError, match=r"^t\.\w+ is truncated: its packed data ends too early"):
        list(unpacked_chunks(file, ledger))


@pytest.mark.parametrize("suffix", PACK)
def test_a_damaged_file_is_named(suffix: str, source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match=r"^t\.\w+ is damaged"):
        list(unpacked_chunks(source_file("t" + suffix, b"no archive at all" * 10), ledger))


@pytest.mark.parametrize("suffix", PACK)
def test_a_bomb_is_stopped_by_the_limit(suffix: str, source_file: Writer) -> None:
    file = source_file("bomb" + suffix, PACK[suffix](bytes(100_000_000)))
    sizes: list[int] = []
    with pytest.raises(ValueError, match=r"past 50000000 bytes; .* raise --max-bytes"):
        sizes.extend(map(len, unpacked_chunks(file, Ledger(50_000_000, lambda _: None))))
    assert sum(sizes) <= 50_000_000


def test_a_file_that_grows_is_refused(source_file: Writer, ledger: Ledger) -> None:
    file = source_file("log.txt", b"x" * 100)
    stream = raw_chunks(file, ledger)
    next(stream)
    with open(file.path, "ab") as log:
        log.write(b"more")
    with pytest.raises(ValueError, match=r"^log\.txt changed while it was read"):
        list(stream)


def test_a_file_that_grows_for_ever_is_not_read_for_ever(
    source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("log.txt", b"x" * 100)
    with open(file.path, "ab", buffering=0) as log, pytest.raises(ValueError, match="changed"):
        any(log.write(b"y" * 100) == 0 for _ in raw_chunks(file, ledger))


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path, ledger: Ledger) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is not a regular file"):
        list(raw_chunks(SourceFile(tmp_path / "pipe", "pipe"), ledger))


def test_lines_come_without_their_ends(source_file: Writer, ledger: Ledger) -> None:
    assert list(lines_of(source_file("t.gz", gzip.compress(TEXT)), ledger)) == TEXT.splitlines()


def test_a_line_without_end_is_refused(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="line of more than"):
        list(lines_of(source_file("t.jsonl", bytes(70_000_000)), ledger))
