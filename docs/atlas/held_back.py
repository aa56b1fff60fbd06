"""The two kinds of data that were held back until the last back-test:

    python docs/atlas/held_back.py PACKAGES SITE OUT

PACKAGES has Debian's asterisk-core-sounds-{en,es,fr,it,ru}-wav (bookworm; CC BY-SA 3.0), SITE is a
folder of installed Python packages: sympy (BSD-3), transformers (Apache-2.0) and torch (BSD-3) to
train on, networkx (BSD-3) and mypy (MIT) held out. Speech is 8-bit mu-law at 8 kHz, the Russian
speaker held out.
"""

import io
import random
import sys
import wave
from pathlib import Path

import numpy as np
from sources import DOCUMENT, debian, documents  # type: ignore[import-not-found]  # beside this

TRAINED, HELD_OUT = ("sympy", "transformers", "torch"), ("networkx", "mypy")
SPEAKERS, OTHER_SPEAKER = ("en", "es", "fr", "it"), "ru"
CODE_BYTES, SAMPLES, HELD_OUT_BYTES = 20_000_000, 16_000_000, 1_000_000


def main(packages: Path, site: Path, out: Path) -> None:
    """Write both, and what is held out of them."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "python.txt").write_bytes(code(site, TRAINED, CODE_BYTES))
    (out / "python-heldout.txt").write_bytes(code(site, HELD_OUT, HELD_OUT_BYTES))
    spoken = [prompt for speaker in SPEAKERS for prompt in speech(packages, speaker)]
    random.Random(0).shuffle(spoken)
    (out / "speech.bin").write_bytes(b"".join(spoken)[:SAMPLES])
    other = b"".join(speech(packages, OTHER_SPEAKER))
    (out / "speech-heldout.bin").write_bytes(other[:HELD_OUT_BYTES])


def code(site: Path, packages: tuple[str, ...], most: int) -> bytes:
    """Source files in an order of chance, as many as fit."""
    files = [path for name in packages for path in sorted((site / name).rglob("*.py"))]
    pages: bytes = documents([path.read_text("utf-8", "replace") for path in files], DOCUMENT)
    end = pages.rfind(DOCUMENT.encode(), 0, most)
    return pages[:end] if len(pages) > most else pages


def speech(packages: Path, speaker: str) -> list[bytes]:
    """The prompts of a speaker."""
    found = []
    for _, content in debian(packages, f"asterisk-core-sounds-{speaker}-wav", "*.wav"):
        with wave.open(io.BytesIO(content)) as sound:
            pcm = np.frombuffer(sound.readframes(sound.getnframes()), "<i2") / 32768
        curve = np.sign(pcm) * np.log1p(255 * np.abs(pcm)) / np.log(256)
        found.append(np.clip(np.round((curve + 1) * 127.5), 0, 255).astype(np.uint8).tobytes())
    return found


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
