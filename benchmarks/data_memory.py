"""How much memory a large input takes: peak resident size while preparing a made-up one.

Run:     python benchmarks/data_memory.py [--megabytes 2000] [--vocab 2000] [--one-document]
Prints:  the peak of the process for bytes and for BPE; at most 1000 MB is the aim for 2 GB.
"""

import argparse
import itertools
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORK = """
import resource, sys
from pathlib import Path
from archfit.data.prepare import prepare
from archfit.data.sources import DataSettings
source, out, vocab = sys.argv[1:]
prepare(source, Path(out), DataSettings(kind="text", vocab=int(vocab)))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def main() -> None:
    """Make the input, prepare it in fresh processes, print their peaks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--vocab", type=int, default=2000)
    parser.add_argument("--one-document", action="store_true", help="no separators in the input")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "large.txt"
        write_text(source, asked.megabytes * 10**6, separated=not asked.one_document)
        for vocab in (257, asked.vocab):
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", WORK, str(source), str(Path(name) / str(vocab)), str(vocab)],
                capture_output=True,
                text=True,
                check=True,
            )
            seconds = time.perf_counter() - start
            peak = int(done.stdout) / 1e6
            print(f"vocab {vocab}: peak {peak:.0f} MB for {asked.megabytes} MB in {seconds:.0f} s")


def write_text(path: Path, size: int, *, separated: bool) -> None:
    """Sentences of invented words with Zipf's frequencies, so that the tokenizer has work to do."""
    chance = random.Random(0)
    words = [
        "".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(200_000)
    ]
    cumulative = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    separator = "\n<|doc|>\n" if separated else "\n"
    with open(path, "w") as file:
        while file.tell() < size:
            sentence = chance.choices(words, cum_weights=cumulative, k=20_000)
            file.write(" ".join(sentence) + separator)


if __name__ == "__main__":
    main()
