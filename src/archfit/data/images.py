"""Arrays (.npz, .npy) and PNG or JPEG files as pixels in raster order, one document an image.

A pixel is a token: its grey level, or the nearest colour of a palette.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, ClassVar

from archfit.data import streams
from archfit.data.sources import DataSettings, KindHandler, looks
from archfit.data.statistics import EvenSample
from archfit.data.streams import Blocks, DocumentBlock, Facts, Ledger, SourceFile, refused
from archfit.data.vocabulary import Ids, TableVocabulary, encode_upper_bits
from archfit.spec import lazy_numpy as np
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.lazy_numpy import NDArray

ARRAY_SUFFIXES = (".npz", ".npy")
GREY, RGB = 1, 3  # bytes a pixel
LARGEST_IMAGE = 1 << 26  # pixels of one image, which is held in memory as a whole
GREYED_AT_ONCE = 1 << 20  # pixels
MOST_LEVELS = 256
OURS = (ValueError, MemoryError)  # errors that are a sentence already, or no fault of the file
KMEANS_ROUNDS = 25
_MAGIC = rb"\x89PNG|\xff\xd8\xff|PK\x03\x04|\x93NUMPY"


def image_blocks(files: Sequence[SourceFile], settings: DataSettings, ledger: Ledger) -> Blocks:
    """The images of all files: those in arrays, then pictures."""
    reader = ImageReader(settings, ledger)
    for file in files:
        if file.suffix in ARRAY_SUFFIXES:
            yield from reader.array_blocks(file)
    pictures = [file for file in files if file.suffix not in ARRAY_SUFFIXES]
    yield from streams.blocks_of(map(reader.picture, pictures))


class ImageReader:
    """Images of one size and depth; the first one decides, and any that differs is refused."""

    def __init__(self, settings: DataSettings, ledger: Ledger) -> None:
        self._field, self._ledger, self._facts = settings.field, ledger, ledger.facts
        self.channels = GREY if settings.levels else RGB if settings.clusters else 0
        self.channels = self._facts.get("channels", self.channels)
        self._first = "the first image"

    def array_blocks(self, file: SourceFile) -> Blocks:
        """The images of one .npy or .npz file."""
        file.hash_into(self._ledger)
        if file.suffix == ".npy":
            with open(file.path, "rb") as stream:
                yield from self._array(stream, file.name)
            return
        with (
            refused(Exception, "damaged-archive", name=file.name, passing=OURS),  # a zoo
            zipfile.ZipFile(file.path) as archive,
        ):
            for member in self._members(archive, file.name):
                with archive.open(member) as stream:
                    yield from self._array(stream, f"{file.name}:{member}")

    def _members(self, archive: zipfile.ZipFile, name: str) -> list[str]:
        """The arrays to read: the one that --field names, or every one with the form of images."""
        members = [member for member in archive.namelist() if member.endswith(".npy")]
        arrays = ", ".join(member.removesuffix(".npy") for member in members) or "nothing"
        if self._field is not None:
            if f"{self._field}.npy" not in members:
                raise refusal("no-array", name=name, field=repr(self._field), arrays=arrays)
            return [f"{self._field}.npy"]
        found = []
        for member in members:
            with archive.open(member) as stream:
                shape, _ = array_header(stream, f"{name}:{member}")
            found += [member] * (len(shape) in (3, 4))
        refuse_if(not found, "no-image-array", name=name, arrays=arrays)
        return found

    def _array(self, stream: IO[bytes], name: str) -> Blocks:
        """Images of one array, read a few megabytes at a time and never as a whole."""
        shape, kind = array_header(stream, name)
        is_image = len(shape) == 3 or (len(shape) == 4 and shape[3] in (GREY, RGB))
        refuse_if(not is_image, "no-image-shape", name=name, shape=shape)
        refuse_if(kind.name not in ("uint8", "bool"), "no-pixels", name=name, kind=kind)
        count, rows, columns, depth = (*shape, GREY)[:4]
        size = rows * columns * depth
        self._check_form(rows, columns, depth, name)
        self._ledger.spend(count * size, name)
        at_once = max(1, streams.BLOCK_BYTES // max(size, 1))
        for start in range(0, count if size else 0, at_once):
            images = min(at_once, count - start)
            content = stream.read(images * size)  # a header may promise what is not there
            refuse_if(len(content) < images * size, "truncated-array", name=name)
            pixels = np.frombuffer(content, np.uint8)
            pixels = pixels * np.uint8(255) if kind.name == "bool" else pixels
            if depth == RGB and self.channels == GREY:
                pixels = _luma(pixels.reshape(-1, 3))
            parts = [image.tobytes() for image in pixels.reshape(images, -1)]
            yield DocumentBlock(parts, complete=True)

    def picture(self, file: SourceFile) -> bytes:
        """The pixels of one PNG or JPEG file."""
        pillow = streams.optional_module("PIL.Image", f"{file.name} needs the pillow")
        self._ledger.spend(file.path.stat().st_size, file.name)  # before any byte is read
        packed = io.BytesIO(b"".join(file.chunks(self._ledger)))
        bomb: type[Exception] = pillow.DecompressionBombError
        try:
            with (
                refused(Exception, "unreadable-image", name=file.name, passing=(*OURS, bomb)),
                warnings.catch_warnings(action="ignore"),  # our own sentences say what is wrong
                pillow.open(packed, formats=("PNG", "JPEG")) as image,
            ):
                refuse_if(image.mode.startswith(("I", "F")), "deep-pixels", name=file.name)
                columns, rows = image.size
                depth = GREY if image.mode in ("1", "L", "LA") else RGB
                self._check_form(rows, columns, depth, file.name)
                self._ledger.spend(rows * columns * RGB, file.name)  # before any pixel is unpacked
                pixels: bytes = image.convert("L" if self.channels == GREY else "RGB").tobytes()
                return pixels
        except bomb as problem:
            raise refusal("image-bomb", name=file.name, most=LARGEST_IMAGE) from problem

    def _check_form(self, rows: int, columns: int, depth: int, name: str) -> None:
        """Refuse an image that is huge, or not like the first."""
        is_large, size = rows * columns > LARGEST_IMAGE, f"{rows}x{columns}"
        refuse_if(is_large, "large-image", name=name, size=size, most=LARGEST_IMAGE)
        if not self._facts:
            self._first, self.channels = name, self.channels or depth
            self._facts |= {"rows": rows, "columns": columns, "channels": self.channels}
        usual = f"{self._facts['rows']}x{self._facts['columns']}"
        sizes = {"size": size, "first": self._first, "usual": usual}
        refuse_if(size != usual, "other-image-size", name=name, **sizes)
        refuse_if(depth < self.channels, "grey-image", name=name)


def array_header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Shape and type of an array in NumPy's format, without running what a pickle may hold."""
    older, newer = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
    read = {(1, 0): older, (2, 0): newer, (3, 0): newer}  # 3.0 differs in the names of fields only
    with refused(Exception, "unreadable-array", name=name):  # numpy lets Python read the header
        version = np.lib.format.read_magic(stream)
        if version not in read:
            raise ValueError(f"version {version[0]}.{version[1]}, but 1.0 to 3.0 are known")
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # written by Python 2
            shape, by_columns, kind = read[version](stream)
    refuse_if(kind.hasobject, "array-of-objects", name=name)
    refuse_if(by_columns and len(shape) > 1, "fortran-order", name=name)
    is_impossible = any(side < 0 for side in shape) or math.prod(shape) < 0
    refuse_if(is_impossible, "impossible-shape", name=name, shape=shape)
    return shape, kind


def _luma(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey values as ITU-R 601 and Pillow weigh them, (19595 R + 38470 G + 7471 B) / 2^16."""
    weights = np.array([19595, 38470, 7471], np.uint32)
    grey = np.empty(len(pixels), np.uint8)
    for start in range(0, len(pixels), GREYED_AT_ONCE):
        piece = slice(start, start + GREYED_AT_ONCE)
        grey[piece] = (pixels[piece].astype(np.uint32) @ weights + 0x8000) >> 16
    return grey


@dataclass(frozen=True, kw_only=True, slots=True)
class Levels(TableVocabulary):
    """Grey levels: the upper bits of a pixel, and the separator."""

    name: ClassVar[str] = "levels"
    unit_bytes: ClassVar[int] = GREY
    levels: int
    size: int

    @property
    def values(self) -> NDArray[np.uint8]:
        """Pixels from 0 to 255; with 256 levels the levels themselves."""
        return (np.arange(self.levels) * 255 // (self.levels - 1)).astype(np.uint8)

    def encode(self, block: DocumentBlock) -> Ids:
        """One id a pixel."""
        return encode_upper_bits(block, self.levels.bit_length() - 1, self.separator)


@dataclass(frozen=True, kw_only=True, slots=True)
class Palette(TableVocabulary):
    """Colours, of which a pixel takes the nearest in RGB, and the separator."""

    name: ClassVar[str] = "palette"
    unit_bytes: ClassVar[int] = RGB
    colours: tuple[tuple[int, int, int], ...]
    size: int

    @property
    def values(self) -> NDArray[np.uint8]:
        """RGB pixels."""
        return np.array(self.colours, np.uint8)

    def encode(self, block: DocumentBlock) -> Ids:
        """The nearest colour of each pixel."""
        from scipy.spatial import KDTree

        content = b"".join(block.parts)
        pixels = np.frombuffer(content, np.uint8).reshape(-1, 3).astype(np.uint32)
        packed = pixels @ np.array([65536, 256, 1], np.uint32)
        different, places = np.unique(packed, return_inverse=True)
        unpacked = different[:, None] >> np.array([16, 8, 0]) & 255
        _, nearest = KDTree(np.array(self.colours)).query(unpacked)
        return self.with_ends(np.asarray(nearest, np.uint32)[places], block)


def colour_clusters(pixels: NDArray[np.uint8], clusters: int) -> tuple[tuple[int, int, int], ...]:
    """At most `clusters` colours by k-means in RGB, as Image GPT makes its palette.

    Lloyd's rounds from colours evenly spaced among the sorted different ones; no randomness, so
    equal pixels give an equal palette. Fewer colours than clusters: the colours themselves.
    """
    from scipy.spatial import KDTree

    colours, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    chosen = np.unique(np.linspace(0, len(colours) - 1, clusters).round().astype(np.int64))
    centres = colours[chosen].astype(np.float64)
    for _ in range(KMEANS_ROUNDS):
        _, nearest = KDTree(centres).query(colours)
        weight = np.bincount(nearest, counts, len(centres))
        sums = [np.bincount(nearest, counts * colours[:, c], len(centres)) for c in range(3)]
        used = weight > 0
        centres[used] = (np.stack(sums, axis=1)[used].T / weight[used]).T
    rounded = np.unique(centres.round().astype(np.int64), axis=0).tolist()
    return tuple((red, green, blue) for red, green, blue in rounded)


def pixel_vocabulary(
    settings: DataSettings, contents: Iterable[bytes], facts: Facts
) -> Levels | Palette:
    """The palette that fits a sample of the colours, or the grey levels asked for."""
    sample, levels = EvenSample("u1", RGB), 0
    for content in contents:
        if facts["channels"] == RGB:
            sample.add(content)
        else:
            levels = levels or _levels(settings)
    if levels:
        return Levels(levels=levels, size=settings.rows(levels + 1, "levels"))
    colours = colour_clusters(sample.values.astype(np.uint8), settings.count("clusters"))
    return Palette(colours=colours, size=settings.rows(len(colours) + 1, "colours"))


def _levels(settings: DataSettings) -> int:
    """Those asked for, or as many as fill the rows of --vocab, or all."""
    beside = MOST_LEVELS if settings.vocab is None else min(settings.vocab - 1, MOST_LEVELS)
    if not settings.levels and (beside & (beside - 1) or beside < 2):
        enough = (1 << beside.bit_length()) + 1
        raise refusal("odd-grey-levels", settings.vocab, levels=beside, enough=enough)
    return settings.levels or beside


IMAGES = KindHandler(
    looks("images or arrays", _MAGIC), image_blocks, pixel_vocabulary, (Levels, Palette)
)
