import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from archfit.data.prepare import Preparation, prepare
from archfit.data.prepared import open_prepared
from archfit.data.sources import DataSettings

BYTES = DataSettings(kind="bytes")


def corpus(folder: Path, documents: int = 400) -> tuple[Path, list[bytes]]:
    """A text file of different documents, and those documents."""
    texts = [
        f"Document {n}. " + f"Some words, number {n * n}. " * (n % 7) for n in range(documents)
    ]
    path = folder / "corpus.txt"
    path.write_text("\n<|doc|>\n".join(texts))
    return path, [text.encode() for text in texts]


def made(
    source: Path, out: Path, settings: DataSettings, heldout: Path | None = None
) -> Preparation:
    return prepare(str(source), out, settings, heldout=None if heldout is None else str(heldout))


@pytest.mark.parametrize(
    "settings",
    [BYTES, DataSettings(kind="text", vocab=300), DataSettings(kind="abc", separator="<|doc|>")],
)
def test_all_documents_come_back_each_on_one_side(tmp_path: Path, settings: DataSettings) -> None:
    source, documents = corpus(tmp_path)
    data = made(source, tmp_path / "data", settings).data
    train, heldout = data.decode("train"), data.decode("heldout")
    assert sorted(train + heldout) == sorted(documents)
    assert not set(train) & set(heldout)
    assert data.description["documents"] == 400
    assert data.description["bytes"] == sum(map(len, documents))


def test_every_vocabulary_splits_alike(tmp_path: Path) -> None:
    source, _ = corpus(tmp_path)
    by_bytes = made(source, tmp_path / "a", BYTES).data.decode("heldout")
    by_bpe = made(source, tmp_path / "b", DataSettings(kind="text", vocab=300)).data.decode(
        "heldout"
    )
    assert by_bytes == by_bpe


def test_nanogpt_reads_the_same_tokens(tmp_path: Path) -> None:
    """The read of nanoGPT's train.py: np.memmap(..., dtype=np.uint16, mode='r')."""
    source, _ = corpus(tmp_path)
    data = made(source, tmp_path / "data", DataSettings(kind="text", vocab=300)).data
    theirs = np.memmap(tmp_path / "data" / "train.bin", dtype=np.uint16, mode="r")
    assert np.array_equal(theirs, data.tokens("train"))
    tokenizer = data.vocabulary()
    assert b"".join(tokenizer.decode(theirs)) == b"".join(data.decode("train"))


def test_the_numbers_are_those_of_the_files(tmp_path: Path) -> None:
    source, _ = corpus(tmp_path)
    description = made(source, tmp_path / "data", BYTES).data.description
    train = np.fromfile(tmp_path / "data" / "train.bin", "<u2")
    heldout = np.fromfile(tmp_path / "data" / "heldout.bin", "<u2")
    shares = np.unique(train, return_counts=True)[1] / len(train)
    assert description["tokens"] == len(train) + len(heldout)
    assert description["unigram_entropy_bits"] == pytest.approx(-(shares * np.log2(shares)).sum())
    assert description["used_vocab"] == description["embedding_rank_limit"] == len(shares)
    assert description["vocab"] == 257
    assert description["bytes_per_token"] == pytest.approx(
        (len(train) + len(heldout) - 400) / (len(train) + len(heldout))
    )


def test_a_few_long_documents_lose_their_last_twentieth(tmp_path: Path) -> None:
    texts = [f"Novel {n} " + "and so on, é, " * 500 for n in range(3)]
    (tmp_path / "a.txt").write_text("\n<|doc|>\n".join(texts))
    for vocab in (257, 300):
        settings = DataSettings(kind="text", vocab=vocab)
        data = made(tmp_path / "a.txt", tmp_path / str(vocab), settings).data
        heads, tails = data.decode("train"), data.decode("heldout")
        joined = [head + tail for head, tail in zip(heads, tails, strict=True)]
        assert joined == [text.encode() for text in texts]
        assert len(tails[0]) == pytest.approx(len(texts[0].encode()) / 20, abs=12)
        assert data.description["split"] == {"rule": "tails", "heldout_share": 0.05}


def test_an_explicit_heldout_source_is_the_heldout_side(tmp_path: Path) -> None:
    source, documents = corpus(tmp_path)
    (tmp_path / "other.txt").write_bytes(b"Something else.\n<|doc|>\n" + documents[6])
    data = made(source, tmp_path / "data", BYTES, tmp_path / "other.txt").data
    assert data.decode("train") == documents
    assert data.decode("heldout") == [b"Something else.", documents[6]]
    leakage = data.description["leakage"]
    assert isinstance(leakage, dict)
    assert leakage["shared_documents"] == 1
    assert leakage["share"] > 0.5


def test_the_hash_names_content_and_not_place_or_time(tmp_path: Path) -> None:
    first, _ = corpus(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    second, _ = corpus(tmp_path / "elsewhere")
    second = second.rename(second.with_name("renamed.txt"))
    one, two = made(first, tmp_path / "a", BYTES).data, made(second, tmp_path / "b", BYTES).data
    assert one.data_hash == two.data_hash
    assert one.description["work_hash"] == two.description["work_hash"]
    assert (
        made(first, tmp_path / "c", DataSettings(kind="text", vocab=300)).data.data_hash
        != one.data_hash
    )


def test_finished_work_is_recognised_and_other_work_refused(tmp_path: Path) -> None:
    source, _ = corpus(tmp_path)
    out = tmp_path / "data"
    assert not made(source, out, BYTES).already_there
    before = (out / "train.bin").stat().st_mtime_ns
    assert made(source, out, BYTES).already_there
    assert (out / "train.bin").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match=r"other data or settings; use --overwrite to replace it"):
        made(source, out, DataSettings(kind="text", vocab=300))
    source.write_text(source.read_text() + "more")
    with pytest.raises(ValueError, match="other data or settings"):
        made(source, out, BYTES)
    replaced = prepare(str(source), out, BYTES, overwrite=True)
    assert not replaced.already_there
    assert made(source, out, BYTES).already_there


def test_a_folder_of_other_things_is_never_replaced(tmp_path: Path) -> None:
    source, _ = corpus(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    (tmp_path / "home" / "data.json").write_text("{}")
    with pytest.raises(ValueError, match="exists and is not a complete data set; choose another"):
        prepare(str(source), tmp_path / "home", BYTES)
    with pytest.raises(ValueError, match="holds other things than a data set; choose another"):
        prepare(str(source), tmp_path / "home", BYTES, overwrite=True)
    assert (tmp_path / "home" / "thesis.tex").exists()


def left_over(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if "data" in path.name]


@pytest.mark.parametrize(
    ("content", "settings", "sentence"),
    [
        (b"", BYTES, "is empty: it holds no document of kind bytes"),
        (b"\n<|doc|>\n", BYTES, "is empty"),
        (b"tiny", BYTES, r"is too small \(4 bytes of content\) to hold out 5 %"),
        (
            b"ab \xff cd",
            DataSettings(kind="text"),
            "is not UTF-8: byte 0xff at offset 3; use --errors",
        ),
        (
            b"abcdef\n\nghij",
            DataSettings(kind="abc", vocab=5),
            "vocab=5 is smaller than the alphabet",
        ),
        (b"ACGT" * 9, DataSettings(kind="fasta"), "not with a FASTA header"),
        (
            b">a\n" + b"ACGTN" * 40,
            DataSettings(kind="fasta", unusual="refuse"),
            r"hold N \(40 times\)",
        ),
        (
            b">a\n" + b"ACGT" * 40,
            DataSettings(kind="fasta", kmer=20),
            "kmer=20 of 4 letters needs",
        ),
        (b"x" * 1000, dataclasses.replace(BYTES, max_bytes=999), "past 999 bytes; .* --max-bytes"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, content: bytes, settings: DataSettings, sentence: str
) -> None:
    (tmp_path / "source").write_bytes(content)
    with pytest.raises(ValueError, match=sentence) as caught:
        made(tmp_path / "source", tmp_path / "data", settings)
    assert "\n" not in str(caught.value)
    assert left_over(tmp_path) == []


def test_a_file_that_changes_between_readings_is_refused(tmp_path: Path) -> None:
    source, _ = corpus(tmp_path)

    def meddle(stage: str, done: int, _: int) -> None:
        if stage == "encoding" and done == 0:
            source.write_text(source.read_text().replace("words", "WORDS"))

    with pytest.raises(ValueError, match=r"corpus\.txt changed while it was read"):
        prepare(str(source), tmp_path / "data", BYTES, report=meddle)
    assert left_over(tmp_path) == []


def test_a_source_that_gained_documents_is_refused(tmp_path: Path) -> None:
    source, _ = corpus(tmp_path)

    def meddle(stage: str, done: int, _: int) -> None:
        if stage == "encoding" and done == 0:
            source.write_text(source.read_text() + "\n<|doc|>\nand one more")

    with pytest.raises(ValueError, match=r"it changed while it was read"):
        prepare(str(source), tmp_path / "data", BYTES, report=meddle)
    assert left_over(tmp_path) == []


def test_kmers_and_unusual_letters(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    records = ["".join(rng.choice(list("ACGT"), rng.integers(1, 200))) + "N" for _ in range(300)]
    (tmp_path / "a.fa").write_text("".join(f">r{n}\n{one}\n" for n, one in enumerate(records)))
    data = made(tmp_path / "a.fa", tmp_path / "data", DataSettings(kind="fasta", kmer=3)).data
    found = data.decode("train") + data.decode("heldout")
    assert sorted(found) == sorted(record.encode() for record in records)
    assert data.description["vocab"] == 5**3 + 5 + 1
    mapped = DataSettings(kind="fasta", unusual="map")
    assert made(tmp_path / "a.fa", tmp_path / "m", mapped).data.description["vocab"] == 6


def save_images(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    pixels = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    np.savez(path, x=pixels)
    return pixels


@pytest.mark.parametrize("levels", [2, 16, 256])
def test_grey_images(tmp_path: Path, levels: int) -> None:
    pixels = save_images(tmp_path / "a.npz", (150, 5, 4))
    settings = DataSettings(kind="images", levels=levels)
    data = made(tmp_path / "a.npz", tmp_path / "data", settings).data
    assert data.description["vocab"] == levels + 1
    assert data.description["image"] == {"rows": 5, "columns": 4, "channels": 1}
    shift = 8 - (levels - 1).bit_length()
    found = {bytes(p >> shift for p in one) for s in ("train", "heldout") for one in data.decode(s)}
    assert found == {bytes(p >> shift for p in image.tobytes()) for image in pixels}


def test_colour_images_get_a_palette_and_vocab_sets_its_size(tmp_path: Path) -> None:
    save_images(tmp_path / "a.npz", (150, 4, 4, 3))
    data = made(tmp_path / "a.npz", tmp_path / "d", DataSettings(kind="images", vocab=9)).data
    assert (data.description["vocabulary"], data.description["vocab"]) == ("palette", 9)
    assert data.description["tokens"] == 150 * 17


def test_vocab_sets_the_levels_where_it_can(tmp_path: Path) -> None:
    save_images(tmp_path / "a.npz", (150, 4, 4))
    data = made(tmp_path / "a.npz", tmp_path / "d", DataSettings(kind="images", vocab=17)).data
    assert data.description["vocab"] == 17
    with pytest.raises(
        ValueError, match=r"vocab=16 leaves 15 grey levels .*; use 17, or choose levels"
    ):
        made(tmp_path / "a.npz", tmp_path / "e", DataSettings(kind="images", vocab=16))


def test_series_and_tokens(tmp_path: Path) -> None:
    values = np.cumsum(np.random.default_rng(2).normal(size=2000))
    (tmp_path / "a.csv").write_text("x\n" + "\n".join(map(str, values)))
    quantiles = DataSettings(kind="series", bins=16, binning="quantile")
    data = made(tmp_path / "a.csv", tmp_path / "series", quantiles).data
    assert data.description["vocab"] == 17
    assert data.description["unigram_entropy_bits"] == pytest.approx(4, abs=0.05)
    again = DataSettings(kind="tokens", separator="16")
    tokens = made(tmp_path / "series" / "train.bin", tmp_path / "tokens", again).data
    whole = np.concatenate([tokens.tokens("train")[:-1], tokens.tokens("heldout")])
    assert np.array_equal(whole, data.tokens("train"))


def test_a_vocabulary_beyond_uint16_is_written_wider(tmp_path: Path) -> None:
    ids = np.random.default_rng(3).choice([*range(60), 69_999], 5000).astype("<u4")
    (tmp_path / "a.bin").write_bytes(ids.tobytes())
    wide = DataSettings(kind="tokens", dtype="uint32", vocab=100_000)
    data = made(tmp_path / "a.bin", tmp_path / "data", wide).data
    assert data.description["dtype"] == "uint32"
    assert np.array_equal(np.fromfile(tmp_path / "data" / "train.bin", "<u4"), ids[:4750])


def test_a_tokenizer_is_reused(tmp_path: Path) -> None:
    source, _ = corpus(tmp_path)
    first = made(source, tmp_path / "a", DataSettings(kind="text", vocab=300)).data
    settings = DataSettings(kind="text", tokenizer=tmp_path / "a" / "tokenizer.json")
    second = made(source, tmp_path / "b", settings).data
    assert first.data_hash == second.data_hash


def test_fewer_tokens_than_asked_for_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc " * 1000)
    data = made(tmp_path / "a.txt", tmp_path / "data", DataSettings(kind="text", vocab=1000)).data
    size = data.description["vocab"]
    assert isinstance(size, int)
    assert size < 300
    assert data.description["warnings"] == [
        f"the data has only {size} of the 1000 tokens, colours or bins asked for"
    ]


def test_large_and_small_documents_take_the_same_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiny blocks, so that every document comes in parts, change nothing."""
    source, _ = corpus(tmp_path)
    settings = DataSettings(kind="text", vocab=300)
    whole = made(source, tmp_path / "a", settings).data
    monkeypatch.setattr("archfit.data.streams.HELD_PART_BYTES", 40)
    monkeypatch.setattr("archfit.data.streams.BLOCK_BYTES", 64)
    reused = dataclasses.replace(settings, vocab=None, tokenizer=tmp_path / "a" / "tokenizer.json")
    assert made(source, tmp_path / "b", reused).data.data_hash == whole.data_hash


def test_a_killed_run_leaves_nothing_that_looks_complete(tmp_path: Path) -> None:
    source, out = tmp_path / "big.txt", tmp_path / "data"
    source.write_bytes(os.urandom(1 << 20) * 12)
    code = (
        "import sys; from pathlib import Path\n"
        "from archfit.data.prepare import prepare; from archfit.data.sources import DataSettings\n"
        "prepare(sys.argv[1], Path(sys.argv[2]), DataSettings(kind='bytes'))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(source), str(out)]) as process:
        deadline = time.monotonic() + 30
        while not _half_written(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert not out.exists()
    (partial,) = tmp_path.glob(".data.partial-*")
    for folder in (out, partial):
        with pytest.raises(ValueError, match=r"is not a prepared data set"):
            open_prepared(folder)
    assert not made(source, out, BYTES).already_there
    assert open_prepared(out).description["bytes"] == 12 << 20
    assert left_over(tmp_path) == ["data"]


def _half_written(folder: Path) -> bool:
    return any(file.stat().st_size > 0 for file in folder.glob(".data.partial-*/train.bin"))


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library, name in (
        ("zstandard", "a.txt.zst"),
        ("pyarrow", "a.parquet"),
        ("PIL.Image", "a.png"),
    ):
        monkeypatch.setitem(sys.modules, library, None)
        (tmp_path / name).write_bytes(b"something")
        kind = "images" if name.endswith("png") else "text"
        with pytest.raises(ValueError, match=r"run pip install 'archfit\[data\]'"):
            made(tmp_path / name, tmp_path / "data", DataSettings(kind=kind))


def test_the_description_holds_no_path_and_no_time(tmp_path: Path) -> None:
    source, _ = corpus(tmp_path)
    first = made(source, tmp_path / "a", BYTES).data
    time.sleep(0.01)
    second = made(source, tmp_path / "b", BYTES).data
    assert (tmp_path / "a" / "data.json").read_text() == (tmp_path / "b" / "data.json").read_text()
    assert str(tmp_path) not in json.dumps(first.description)
    assert first.description == second.description


def test_hugging_face_data_sets_are_sources(tmp_path: Path) -> None:
    import datasets

    rows = {"text": [f"row number {n} of many" for n in range(300)]}
    datasets.Dataset.from_dict(rows).save_to_disk(tmp_path / "saved")
    out = tmp_path / "data"
    data = prepare(f"hf:{tmp_path}/saved", out, DataSettings(kind="text")).data
    assert sorted(data.decode("train") + data.decode("heldout")) == sorted(
        text.encode() for text in rows["text"]
    )
    assert prepare(f"hf:{tmp_path}/saved", out, DataSettings(kind="text")).already_there


def test_an_archive_cut_short_leaves_nothing(tmp_path: Path) -> None:
    import gzip

    stream = io.BytesIO(gzip.compress(os.urandom(100_000)))
    (tmp_path / "a.txt.gz").write_bytes(stream.getvalue()[:-100])
    with pytest.raises(ValueError, match=r"a\.txt\.gz is truncated"):
        made(tmp_path / "a.txt.gz", tmp_path / "data", BYTES)
    assert left_over(tmp_path) == []


def test_held_out_images_must_have_the_same_size(tmp_path: Path) -> None:
    save_images(tmp_path / "a.npz", (120, 4, 4))
    save_images(tmp_path / "b.npz", (10, 4, 5))
    with pytest.raises(
        ValueError, match=r"b\.npz:x\.npy is 4x5 but the first image is 4x4; all images"
    ):
        made(tmp_path / "a.npz", tmp_path / "d", DataSettings(kind="images"), tmp_path / "b.npz")


def test_arrays_of_one_archive_can_be_the_two_sides(tmp_path: Path) -> None:
    pixels = np.random.default_rng(4).integers(0, 256, (30, 4, 4), np.uint8)
    np.savez(tmp_path / "a.npz", train_x=pixels[:20], test_x=pixels[20:])
    settings = DataSettings(kind="images", field="train_x", heldout_field="test_x")
    data = made(tmp_path / "a.npz", tmp_path / "d", settings, tmp_path / "a.npz").data
    assert data.decode("train") == [image.tobytes() for image in pixels[:20]]
    assert data.decode("heldout") == [image.tobytes() for image in pixels[20:]]


def test_odd_names_of_folders_are_fine(tmp_path: Path) -> None:
    source, _ = corpus(tmp_path)
    for name in ("with space", "[1]*", "ünï"):
        assert made(source, tmp_path / name, BYTES).data.vocab == 257
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert made(source, tmp_path / "link", BYTES).data.vocab == 257
    assert (tmp_path / "real" / "data.json").exists()


def test_very_many_files_are_counted_and_not_listed(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for number in range(150):
        (tmp_path / "texts" / f"{number}.txt").write_text(f"text number {number}")
    data = made(tmp_path / "texts", tmp_path / "data", DataSettings(kind="text")).data
    (listed,) = json.loads(json.dumps(data.description["input"]))
    assert listed["name"] == "150 files, most of them .txt"
    assert data.description["documents"] == 150
    assert made(tmp_path / "texts", tmp_path / "data", DataSettings(kind="text")).already_there
