"""How fast data is prepared: bytes in MB/s, BPE against the tokenizers library, batches.

Run:     python benchmarks/data_throughput.py [FILE] [--megabytes 100] [--vocab 2000] [--repeats 3]
Prints:  medians over the repeats; ratios compare with the tokenizers library's own batch encoding
         of the same documents on the same cores. Without FILE the corpus is the shipped sample,
         repeated, each copy with a mark of its own so that copies are different documents.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from archfit.data.kinds import SourceDocuments
from archfit.data.loader import Loader
from archfit.data.prepare import prepare, silent
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import DataSettings, find_files
from archfit.data.streams import Ledger
from archfit.data.vocabulary import Bytes
from archfit.spec.data_kinds import SAMPLE

SEPARATOR = b"\n<|doc|>\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--vocab", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = folder / "corpus.txt"
        corpus.write_bytes(content_of(asked.file, asked.megabytes * 10**6))
        measure_bytes(corpus, folder, asked.repeats)
        measure_bpe(corpus, folder, asked.vocab, asked.repeats)
        measure_loader(open_prepared(folder / "bytes"), asked.repeats)


def content_of(file: Path | None, size: int) -> bytes:
    """The first `size` bytes of a plain text file, or that much made from the sample."""
    if file is not None:
        with open(file, "rb") as stream:
            return stream.read(size).decode(errors="ignore").encode()
    (sample,) = find_files(SAMPLE, "text")
    text = b"".join(sample.unpacked(Ledger(10**9, lambda _: None)))
    paragraphs = text.split(b"\n\n")
    chapters = [b"\n\n".join(paragraphs[n : n + 40]) for n in range(0, len(paragraphs), 40)]
    copies = size // len(text) + 1
    documents = [b"copy %d\n" % n + chapter for n in range(copies) for chapter in chapters]
    return SEPARATOR.join(documents)[:size]


def median_seconds(
    work: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The middle of some measured times, after one unmeasured."""
    work()
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return statistics.median(times)


def measure_bytes(corpus: Path, folder: Path, repeats: int) -> None:
    """Bytes: encoding alone, and everything prepare does, by CPU time."""
    settings = DataSettings(kind="bytes")

    def encode() -> None:
        for block in SourceDocuments(str(corpus), settings, {}, silent).blocks("encoding"):
            Bytes().encode(block)

    def everything() -> None:
        prepare(str(corpus), folder / "bytes", settings, overwrite=True)

    size = corpus.stat().st_size / 1e6
    for name, work in (("read, split, encode", encode), ("prepare, all statistics", everything)):
        rate = size / median_seconds(work, repeats, time.process_time)
        print(f"bytes, {name}: {rate:.0f} MB per second of one core")


def measure_bpe(corpus: Path, folder: Path, vocab: int, repeats: int) -> None:
    """BPE: reading and encoding all documents against the library's own batch encoding of them."""
    from tokenizers import Tokenizer

    data = prepare(str(corpus), folder / "bpe", DataSettings(kind="text", vocab=vocab)).data
    vocabulary = data.vocabulary()
    theirs = Tokenizer.from_file(str(data.folder / "tokenizer.json"))
    documents = corpus.read_text().split(SEPARATOR.decode())

    def ours() -> None:
        documents = SourceDocuments(str(corpus), DataSettings(kind="text"), {}, silent)
        for block in documents.blocks("encoding"):
            vocabulary.encode(block)

    seconds = median_seconds(ours, repeats)
    size = corpus.stat().st_size / 1e6
    print(f"BPE {vocab}, read, split, encode: {size / seconds:.2f} MB/s on all cores")
    for name, batch in (
        ("encode_batch", theirs.encode_batch),
        ("encode_batch_fast", theirs.encode_batch_fast),
    ):
        library = median_seconds(lambda batch=batch: batch(documents), repeats)  # type: ignore[misc]  # bound now
        print(f"BPE {vocab}, tokenizers' {name}: {size / library:.2f} MB/s")
        print(f"BPE {vocab}, our time / that of {name}: {seconds / library:.2f}")


def measure_loader(data: PreparedData, repeats: int) -> None:
    """Batches of 512 x 128 from the mapped file."""
    loader = Loader(data=data, batch=512, context=128, seed=0)
    steps = 200

    def work() -> None:
        for step in range(steps):
            loader.training_batch(step)

    rate = steps * 512 * 128 / median_seconds(work, repeats, time.process_time)
    print(f"loader, 512 x 128: {rate / 1e6:.1f} million tokens per second of one core")


if __name__ == "__main__":
    main()
