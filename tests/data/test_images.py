import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from archfit.data.images import image_blocks
from archfit.data.sources import DataSettings
from archfit.data.streams import Ledger, SourceFile

Writer = Callable[[str, bytes], SourceFile]
RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (5, 4, 3), np.uint8)
COLOUR = RNG.integers(0, 256, (5, 4, 3, 3), np.uint8)


def images(files: list[SourceFile], ledger: Ledger, **options: object) -> list[bytes]:
    settings = DataSettings(kind="images", **options)  # type: ignore[arg-type]  # levels, clusters or field
    return [part for block in image_blocks(files, settings, ledger) for part in block.parts]


def npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]  # its stub takes allow_pickle for an array
    return stream.getvalue()


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def test_all_arrays_of_the_form_of_images_are_read(source_file: Writer, ledger: Ledger) -> None:
    file = source_file("a.npz", npz(train_x=GREY, train_y=np.arange(5), test_x=GREY[:2]))
    assert images([file], ledger) == [image.tobytes() for image in [*GREY, *GREY[:2]]]
    assert ledger.facts == {"rows": 4, "columns": 3, "channels": 1}


def test_a_field_chooses_one_array(source_file: Writer, ledger: Ledger) -> None:
    file = source_file("a.npz", npz(train_x=GREY, test_x=GREY[:2]))
    assert len(images([file], ledger, field="test_x")) == 2
    with pytest.raises(ValueError, match="has no array 'y' but train_x, test_x"):
        images([file], ledger, field="y")


def test_pictures_and_arrays_give_the_same_pixels(source_file: Writer, ledger: Ledger) -> None:
    files = [source_file(f"{place}.png", png(image)) for place, image in enumerate(COLOUR)]
    assert images(files, ledger) == [image.tobytes() for image in COLOUR]


def test_grey_from_colour_is_what_pillow_makes(source_file: Writer, ledger: Ledger) -> None:
    stream = io.BytesIO()
    np.save(stream, COLOUR)
    array = images([source_file("a.npy", stream.getvalue())], ledger, levels=256)
    files = [source_file(f"{place}.png", png(image)) for place, image in enumerate(COLOUR)]
    assert array == images(files, Ledger(10**9), levels=256)


def test_images_of_mixed_sizes_are_refused(source_file: Writer, ledger: Ledger) -> None:
    files = [source_file("a.png", png(GREY[0])), source_file("b.png", png(GREY[0][:3]))]
    with pytest.raises(ValueError, match=r"b\.png is 3x3 but a\.png is 4x3; all images must have"):
        images(files, ledger)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (GREY / 255, "holds float64, not uint8; scale it"),
        (GREY[0], r"has shape \(4, 3\); images are"),
        (np.asfortranarray(GREY), "is in Fortran order"),
        (np.empty((2, 2, 2), object), "holds Python objects, which could run code"),
    ],
)
def test_an_array_that_is_no_set_of_images_is_refused(
    array: np.ndarray, sentence: str, source_file: Writer, ledger: Ledger
) -> None:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    with pytest.raises(ValueError, match=sentence):
        images([source_file("a.npy", stream.getvalue())], ledger)


class Trap:
    """An object whose unpickling makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.folder),)


def test_a_pickle_is_never_run(tmp_path: Path, source_file: Writer, ledger: Ledger) -> None:
    trap = np.empty((1, 1, 1), object)
    trap[0, 0, 0] = Trap(tmp_path / "sprung")
    stream = io.BytesIO()
    np.save(stream, trap, allow_pickle=True)
    for name, content in (("a.npy", stream.getvalue()), ("b.npz", npz(x=trap))):
        with pytest.raises(ValueError, match="holds Python objects, which could run code"):
            images([source_file(name, content)], ledger)
    assert not (tmp_path / "sprung").exists()


def test_a_zip_bomb_is_stopped_before_it_unpacks(source_file: Writer) -> None:
    file = source_file("a.npz", npz(x=np.zeros((40, 1000, 1000), np.uint8)))
    assert file.path.stat().st_size < 100_000
    with pytest.raises(ValueError, match="past 1000000 bytes"):
        images([file], Ledger(1_000_000))


def test_a_header_that_promises_too_much_is_truncated(source_file: Writer, ledger: Ledger) -> None:
    stream = io.BytesIO()
    np.save(stream, GREY)
    promised = stream.getvalue().replace(b"(5, 4, 3)", b"(5, 4,33)")
    with pytest.raises(ValueError, match="truncated: its header promises more pixels"):
        images([source_file("a.npy", promised)], ledger)


@pytest.mark.parametrize(
    ("side", "sentence"),
    [
        (100_000, r"a\.png has more than 67108864 pixels; crop or resize it"),
        (10_000, r"a\.png is 10000x10000, but one image may have 67108864 pixels; crop or resize"),
    ],
)
def test_a_huge_picture_is_refused_by_its_header(
    side: int, sentence: str, source_file: Writer, ledger: Ledger
) -> None:
    with pytest.raises(ValueError, match=sentence):
        images([source_file("a.png", hollow_png(side))], ledger)


def hollow_png(side: int) -> bytes:
    """A square image of colours by its header, and almost no pixels."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"0")), (b"IEND", b"")]
    packed = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def test_nothing_is_warned_of(
    source_file: Writer, ledger: Ledger, recwarn: pytest.WarningsRecorder
) -> None:
    with pytest.raises(ValueError, match="10000x10000"):
        images([source_file("a.png", hollow_png(10_000))], ledger)
    old = npy(GREY).replace(b"(5, 4, 3), }", b"(5L,4L,3L),}")
    assert images([source_file("a.npy", old)], ledger) == [image.tobytes() for image in GREY]
    assert [str(warning.message) for warning in recwarn] == []


def npy(array: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version)
    return stream.getvalue()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_array_format_is_read(
    version: tuple[int, int], source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("a.npy", npy(GREY, version))
    assert images([file], ledger) == [image.tobytes() for image in GREY]


def test_an_unknown_version_of_the_array_format_is_named(
    source_file: Writer, ledger: Ledger
) -> None:
    content = npy(GREY).replace(b"NUMPY\x01", b"NUMPY\x04")
    with pytest.raises(
        ValueError, match=r"format \(version 4\.0, but 1\.0 to 3\.0 are known\); save"
    ):
        images([source_file("a.npy", content)], ledger)


def test_one_huge_image_of_an_archive_is_refused(source_file: Writer) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x.npy", npy(GREY).replace(b"(5, 4, 3), }", b"(1,50000,50000),}"))
    with pytest.raises(ValueError, match=r"a\.npz:x\.npy is 50000x50000, but one image may have"):
        images([source_file("a.npz", stream.getvalue())], Ledger(10**12))


@pytest.mark.parametrize("name", ["a.npz", "a.png"])
def test_too_little_memory_is_no_damage(
    name: str, source_file: Writer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("archfit.data.images.ImageReader._check_form", fail)
    content = npz(x=GREY) if name == "a.npz" else png(GREY[0])
    with pytest.raises(MemoryError):
        images([source_file(name, content)], ledger)


def test_the_bytes_of_a_picture_count_before_they_are_read(source_file: Writer) -> None:
    read: list[int] = []
    file = source_file("a.png", png(GREY[0]) + bytes(5000))
    with pytest.raises(ValueError, match=r"a\.png takes the unpacked input past 4000 bytes"):
        images([file], Ledger(4000, read.append))
    assert read == []


def test_bits_are_black_and_white(source_file: Writer, ledger: Ledger) -> None:
    bits = GREY > 100
    found = images([source_file("a.npz", npz(x=bits))], ledger)
    assert found == [np.where(image, 255, 0).astype(np.uint8).tobytes() for image in bits]


def test_grey_is_made_in_pieces(
    source_file: Writer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = source_file("a.npz", npz(x=COLOUR))
    whole = images([file], ledger, levels=256)
    monkeypatch.setattr("archfit.data.images.GREYED_AT_ONCE", 7)
    assert images([file], ledger, levels=256) == whole


def test_a_damaged_picture_or_archive_is_named(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match=r"a\.png is not a readable PNG or JPEG image"):
        images([source_file("a.png", png(GREY[0])[:-30])], ledger)
    with pytest.raises(ValueError, match=r"b\.npz is damaged"):
        images([source_file("b.npz", npz(x=GREY)[:-30])], ledger)


def test_grey_images_have_no_palette(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="is grey but the palette of --clusters needs colours"):
        images([source_file("a.npz", npz(x=GREY))], ledger, clusters=4)


def test_an_archive_of_other_things_is_refused(source_file: Writer, ledger: Ledger) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match="holds nothing, none of the form"):
        images([source_file("a.npz", stream.getvalue())], ledger)
