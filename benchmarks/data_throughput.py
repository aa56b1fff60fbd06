"""How fast data is prepared: bytes in MB/s, BPE against the tokenizers library, batches.

Run:     python benchmarks/data_throughput.py [FILE] [--megabytes 100] [--vocab 2000] [--repeats 3]
Prints:  medians over the repeats; ratios compare with the tokenizers library's own encode_batch
         on the same documents and cores. Without FILE the corpus is the shipped sample repeated,
         each copy with a mark of its own so that copies are different documents.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from archfit.data.loader import Loader
from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.settings import Settings
from archfit.data.sources import SAMPLE, find_files
from archfit.data.unpack import Ledger, unpacked_chunks

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
        megabytes = corpus.stat().st_size / 1e6
        measure_bytes(corpus, folder, megabytes, asked.repeats)
        measure_bpe(corpus, folder, asked.vocab, asked.repeats)
        measure_loader(open_prepared(folder / "bytes"), asked.repeats)


def content_of(file: Path | None, size: int) -> bytes:
    """The first `size` bytes of a plain text file, or that much made from the sample."""
    if file is not None:
        with open(file, "rb") as stream:
            return stream.read(size)
    (sample,) = find_files(SAMPLE, Settings(kind="text"))
    text = b"".join(unpacked_chunks(sample, Ledger(10**9, lambda _: None)))
    paragraphs = text.split(b"\n\n")
    chapters = [b"\n\n".join(paragraphs[n : n + 40]) for n in range(0, len(paragraphs), 40)]
    copies = size // len(text) + 1
    documents = [b"copy %d\n" % n + chapter for n in range(copies) for chapter in chapters]
    return SEPARATOR.join(documents)[:size]


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """The middle of some measured times, after one unmeasured."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure_bytes(corpus: Path, folder: Path, megabytes: float, repeats: int) -> None:
    """Bytes: the encoding pass alone, and everything prepare does, on one core."""
    passes: list[float] = []
    started = [0.0]

    def watch(stage: str, done: int, total: int) -> None:
        if stage == "encoding" and done == 0:
            started[0] = time.perf_counter()
        if stage == "encoding" and done == total:
            passes.append(time.perf_counter() - started[0])

    def work() -> None:
        prepare(str(corpus), folder / "bytes", Settings(kind="bytes"), overwrite=True, report=watch)

    whole = median_seconds(work, repeats)
    encoding = encoding_seconds(corpus, repeats)
    print(f"bytes, read + split + encode:      {megabytes / encoding:8.0f} MB/s on one core")
    print(f"bytes, prepare with all statistics: {megabytes / whole:7.0f} MB/s on one core")
    print(f"  of which the encoding pass:      {megabytes / statistics.median(passes):8.0f} MB/s")


def encoding_seconds(corpus: Path, repeats: int) -> float:
    """Seconds to turn the file into blocks of ids in memory."""
    from archfit.data.reading import Reading
    from archfit.data.vocabulary import Bytes

    def work() -> None:
        for block in Reading(str(corpus), Settings(kind="bytes"), lambda *_: None).blocks("x"):
            Bytes().encode(block)

    return median_seconds(work, repeats)


def measure_bpe(corpus: Path, folder: Path, vocab: int, repeats: int) -> None:
    """BPE: our encoding of all documents against one encode_batch of the library's."""
    from tokenizers import Tokenizer

    from archfit.data.reading import Reading

    settings = Settings(kind="text", vocab=vocab)
    data = prepare(str(corpus), folder / "bpe", settings).data
    vocabulary = data.vocabulary()
    theirs = Tokenizer.from_file(str(data.folder / "tokenizer.json"))
    documents = corpus.read_text(errors="replace").split(SEPARATOR.decode())

    def ours() -> None:
        replacing = Settings(kind="text", errors="replace")
        for block in Reading(str(corpus), replacing, lambda *_: None).blocks("encoding"):
            vocabulary.encode(block)

    their_seconds = median_seconds(lambda: theirs.encode_batch(documents), repeats)
    our_seconds = median_seconds(ours, repeats)
    size = corpus.stat().st_size / 1e6
    print(f"BPE {vocab}, tokenizers' encode_batch: {size / their_seconds:8.2f} MB/s")
    print(f"BPE {vocab}, read + split + encode:    {size / our_seconds:8.2f} MB/s")
    print(
        f"BPE {vocab}, time of ours / theirs:    {our_seconds / their_seconds:8.2f} (at most 1.2)"
    )


def measure_loader(data: PreparedData, repeats: int) -> None:
    """Batches of 512 x 128 from the mapped file."""
    loader = Loader(data=data, batch=512, context=128, seed=0)
    steps = 200

    def work() -> None:
        for step in range(steps):
            loader.training_batch(step)

    rate = steps * 512 * 128 / median_seconds(work, repeats)
    print(f"loader, 512 x 128:                 {rate / 1e6:8.1f} million tokens/s on one core")


if __name__ == "__main__":
    main()
