import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from archfit.data.prepare import prepare
from archfit.data.prepared import SIDES, PreparedData, open_prepared
from archfit.data.retokenise import (
    AS_GIVEN,
    BYTES,
    Tokenisation,
    given_tokenisation,
    larger_vocabularies,
    possible_vocabularies,
    retokenised,
)
from archfit.data.sources import DataSettings

# What a reader of files would have to escape: marks, blank lines, line ends, a byte order mark.
HARD = [
    "\ufeffa",
    "<|doc|>",
    "x\r",
    "\n\n\ny\n\n",
    "\r\n<|doc|>\r\n",
    "漢字 \U0001f600",
    "\0",
    '"\\',
]


def texts(count: int = 200) -> list[str]:
    words = ["deep", "wide", "depth", "width", "rank", "of", "the", "and", "é"]
    draw = random.Random(0)
    many = [" ".join(draw.choices(words, k=draw.randint(1, 60))) + f" {n}" for n in range(count)]
    return HARD + many


def jsonl(folder: Path, documents: list[str]) -> Path:
    path = folder / "source.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    return path


def prepared(source: Path, settings: DataSettings, heldout: Path | None = None) -> PreparedData:
    out = source.parent / "data"
    return prepare(
        str(source), out, settings, heldout=None if heldout is None else str(heldout)
    ).data


def both(data: PreparedData) -> list[list[bytes]]:
    return [data.decode(side) for side in SIDES]


@pytest.mark.parametrize("vocab", [257, 400])
@pytest.mark.parametrize("wanted", [BYTES, Tokenisation(vocab=300), Tokenisation(vocab=500)])
def test_text_comes_back_on_both_sides(tmp_path: Path, vocab: int, wanted: Tokenisation) -> None:
    source = jsonl(tmp_path, texts())
    data = prepared(source, DataSettings(kind="text", vocab=vocab))
    other = retokenised(data, tmp_path / "other", wanted)
    assert both(other) == both(data)
    assert sorted(itertools.chain(*both(other))) == sorted(text.encode() for text in texts())
    if wanted.label != "bytes":
        assert other.description["vocabulary"] == "bpe"
        assert other.vocab <= int(wanted.label.removeprefix("bpe-"))
    kept = ("documents", "bytes", "split", "leakage", "input", "heldout_input")
    assert {key: other.description[key] for key in kept} == {
        key: data.description[key] for key in kept
    }
    other.verify()


@pytest.mark.parametrize("documents", [2, 200])
def test_tokens_are_those_of_preparing_the_source(tmp_path: Path, documents: int) -> None:
    """Of whole documents; of a few, a BPE cuts the tail between words and bytes do not."""
    source = jsonl(tmp_path, texts(documents))
    data = prepared(source, DataSettings(kind="text", vocab=400))
    other = retokenised(data, tmp_path / "other", BYTES)
    direct = prepare(str(source), tmp_path / "direct", DataSettings(kind="text", vocab=257)).data
    assert (other.data_hash == direct.data_hash) == (documents == 200)
    assert both(other) == both(data)


def test_an_explicit_heldout_side_stays(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n<|doc|>\ntwo words, two words")
    (tmp_path / "b.txt").write_text("three\n<|doc|>\none")
    data = prepared(tmp_path / "a.txt", DataSettings(kind="text"), tmp_path / "b.txt")
    other = retokenised(data, tmp_path / "other", Tokenisation(vocab=260))
    assert both(other) == [[b"one", b"two words, two words"], [b"three", b"one"]]
    assert other.description["split"] == {"rule": "heldout-source", "heldout_share": None}
    assert other.description["leakage"] == data.description["leakage"]


def test_abc_becomes_bytes_and_bpe(tmp_path: Path) -> None:
    (tmp_path / "a.abc").write_text("\n\n".join(f"X:{n}\nK:G\n{'GAé|' * n}" for n in range(150)))
    data = prepared(tmp_path / "a.abc", DataSettings(kind="abc"))
    for wanted in (BYTES, Tokenisation(vocab=270)):
        other = retokenised(data, tmp_path / wanted.label, wanted)
        assert both(other) == both(data)
        assert other.description["vocabulary"] == wanted.label.split("-")[0]


def test_any_bytes_stay_bytes_and_bpe_needs_text(tmp_path: Path) -> None:
    draw = random.Random(1)
    documents = [draw.randbytes(40).replace(b"\n", b" ") for _ in range(200)]
    (tmp_path / "a").write_bytes(b"\n<|doc|>\n".join(documents))
    data = prepared(tmp_path / "a", DataSettings(kind="bytes", vocab=300))
    other = retokenised(data, tmp_path / "other", BYTES)
    assert other.vocab == 257
    assert both(other) == both(data)
    with pytest.raises(
        ValueError, match=r"^document 1 of the train side is not UTF-8 \(byte 0x..\)"
    ):
        retokenised(data, tmp_path / "bpe", Tokenisation(vocab=300))
    assert {path.name for path in tmp_path.iterdir()} == {"a", "data", "other"}


def test_valid_bytes_become_bpe(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("\n<|doc|>\n".join(f"é {n} words" for n in range(300)))
    data = prepared(tmp_path / "a", DataSettings(kind="bytes"))
    assert both(retokenised(data, tmp_path / "bpe", Tokenisation(vocab=300))) == both(data)


@pytest.mark.parametrize("records", [5, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unusual", ["keep", "map"])
def test_sequences_come_back_from_groups_of_any_size(
    tmp_path: Path, records: int, unusual: str
) -> None:
    draw = random.Random(2)
    lines = ["".join(draw.choices("ACGTacgtNRY*-", k=draw.randint(1, 90))) for _ in range(records)]
    (tmp_path / "a.fa").write_text("".join(f">r\n{line}\n" for line in lines))
    data = prepared(tmp_path / "a.fa", DataSettings(kind="fasta", kmer=2, unusual=unusual))
    for k in (1, 3):
        other = retokenised(data, tmp_path / f"k{k}", Tokenisation(k=k))
        assert both(other) == both(data)
        assert other.description["documents"] == data.description["documents"]
        assert open_prepared(tmp_path / f"k{k}").data_hash == other.data_hash


def test_a_long_document_is_decoded_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiny pieces, so that characters and documents are cut wherever a token ends."""
    rare = "".join(chr(0x4E00 + 7 * n) for n in range(100))  # several tokens each
    source = jsonl(tmp_path, ["".join(texts(20)), "漢字漢字é" * 40, rare, *texts(30)])
    datas = [
        prepare(str(source), tmp_path / f"d{vocab}", DataSettings(kind="text", vocab=vocab)).data
        for vocab in (257, 300)
    ]
    monkeypatch.setattr("archfit.data.retokenise.IDS_AT_ONCE", 7)
    for data in datas:
        for wanted in (BYTES, Tokenisation(vocab=290)):
            out = tmp_path / f"{data.folder.name}-{wanted.label}"
            assert both(retokenised(data, out, wanted)) == both(data)


def test_finished_work_is_found_without_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = prepared(jsonl(tmp_path, texts()), DataSettings(kind="text"))
    made = retokenised(data, tmp_path / "other", Tokenisation(vocab=300))
    again = retokenised(data, tmp_path / "twice", Tokenisation(vocab=300))
    assert made.description == again.description
    for name in ("train.bin", "heldout.bin", "data.json", "tokenizer.json"):
        assert (made.folder / name).read_bytes() == (again.folder / name).read_bytes()
    monkeypatch.setattr(PreparedData, "tokens", None)
    assert (
        retokenised(data, tmp_path / "other", Tokenisation(vocab=300)).description
        == made.description
    )
    with pytest.raises(ValueError, match="holds a data set made from other data or settings"):
        retokenised(data, tmp_path / "other", Tokenisation(vocab=301))


def test_what_the_data_has_is_given_back(tmp_path: Path) -> None:
    data = prepared(jsonl(tmp_path, texts()), DataSettings(kind="text", vocab=300))
    for wanted in (AS_GIVEN, Tokenisation(vocab=300)):
        assert retokenised(data, tmp_path / "other", wanted) is data
    assert not (tmp_path / "other").exists()


def test_a_foreign_tokenizer_is_not_taken_for_one_of_ours(tmp_path: Path) -> None:
    data = prepared(jsonl(tmp_path, texts()), DataSettings(kind="text", vocab=300))
    settings = DataSettings(kind="text", tokenizer=data.folder / "tokenizer.json")
    foreign = prepare(str(tmp_path / "source.jsonl"), tmp_path / "foreign", settings).data
    assert given_tokenisation(foreign) == AS_GIVEN
    assert both(retokenised(foreign, tmp_path / "bytes", BYTES)) == both(data)


def test_damaged_data_is_refused(tmp_path: Path) -> None:
    data = prepared(jsonl(tmp_path, texts()), DataSettings(kind="text"))
    ids = bytearray((data.folder / "train.bin").read_bytes())
    ids[0] ^= 1
    (data.folder / "train.bin").write_bytes(ids)
    with pytest.raises(ValueError, match=r"train\.bin is not what was written"):
        retokenised(data, tmp_path / "other", Tokenisation(vocab=300))
    assert not (tmp_path / "other").exists()


@pytest.mark.slow  # as that of `prepare`, which is tried every time
def test_a_killed_run_leaves_nothing_after_the_next(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"some words and some more " * 800_000)
    data, out = prepared(tmp_path / "a", DataSettings(kind="bytes")), tmp_path / "other"
    code = (
        "import sys; from pathlib import Path\n"
        "from archfit.data.prepared import open_prepared\n"
        "from archfit.data.retokenise import Tokenisation, retokenised\n"
        "data, out = open_prepared(Path(sys.argv[1])), Path(sys.argv[2])\n"
        "retokenised(data, out, Tokenisation(vocab=280))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(data.folder), str(out)]) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".other.partial-*/train.bin")) and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert not out.exists()
    assert len(list(tmp_path.glob(".other.partial-*"))) == 1
    retokenised(data, out, Tokenisation(vocab=280))
    assert set(os.listdir(tmp_path)) == {"a", "data", "other"}


def test_texts_can_have_bytes_and_bpe_of_the_sizes_wished_for(tmp_path: Path) -> None:
    data = prepared(jsonl(tmp_path, texts()), DataSettings(kind="text", vocab=300))
    found = possible_vocabularies(data, (100, 257, 500, 2000, 500, 1 << 25))
    assert found == (BYTES, Tokenisation(vocab=500), Tokenisation(vocab=2000))
    assert [wanted.label for wanted in found] == ["bytes", "bpe-500", "bpe-2000"]


@pytest.mark.parametrize(
    ("given", "sizes", "labels"),
    [
        (1, (257, 500, 2000), ["kmer-1", "kmer-2", "kmer-3"]),
        (1, (16,), ["kmer-1", "kmer-2"]),
        (1, (15,), ["kmer-1"]),
        (5, (64, 257), ["kmer-1", "kmer-2", "kmer-3", "kmer-5"]),
        (2, (), ["kmer-2"]),
    ],
)
def test_sequences_can_have_groups_up_to_the_largest_size(
    tmp_path: Path, given: int, sizes: tuple[int, ...], labels: list[str]
) -> None:
    (tmp_path / "a.fa").write_text(">r\n" + "ACGT" * 300)
    data = prepared(tmp_path / "a.fa", DataSettings(kind="fasta", kmer=given))
    assert [wanted.label for wanted in possible_vocabularies(data, sizes)] == labels


def test_other_kinds_stay_as_given(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "\n".join(map(str, range(2000))))
    data = prepared(tmp_path / "a.csv", DataSettings(kind="series"))
    assert [wanted.label for wanted in possible_vocabularies(data, (257, 500))] == ["as given"]
    assert larger_vocabularies(data, 1000) == ()
    with pytest.raises(
        ValueError, match="data of kind series cannot be had as bpe-300; text, bytes"
    ):
        retokenised(data, tmp_path / "other", Tokenisation(vocab=300))


def test_data_of_a_kind_that_is_not_known_stays_as_given(tmp_path: Path) -> None:
    data = prepared(jsonl(tmp_path, texts(5)), DataSettings(kind="text"))
    strange = replace(data, description=data.description | {"kind": "scent", "vocabulary": "ids"})
    assert possible_vocabularies(strange, (257, 500)) == (AS_GIVEN,)
    assert larger_vocabularies(strange, 1000) == ()


@pytest.mark.parametrize(
    ("at_least", "vocab"), [(1, 512), (256, 512), (257, 1024), (768, 1024), (5000, 8192)]
)
def test_a_larger_bpe_has_that_many_merges(tmp_path: Path, at_least: int, vocab: int) -> None:
    data = prepared(jsonl(tmp_path, texts()), DataSettings(kind="text"))
    assert larger_vocabularies(data, at_least) == (Tokenisation(vocab=vocab),)


def test_no_smaller_bpe_is_called_larger(tmp_path: Path) -> None:
    data = prepared(jsonl(tmp_path, texts(2000)), DataSettings(kind="text", vocab=512))
    assert data.vocab == 512
    assert larger_vocabularies(data, 256) == ()
    assert larger_vocabularies(data, 1 << 24) == ()


@pytest.mark.parametrize(
    ("at_least", "found"), [(5, (2,)), (16, (2,)), (17, (3,)), (256, (4,)), (257, ())]
)
def test_longer_groups_must_occur_often_enough(
    tmp_path: Path, at_least: int, found: tuple[int, ...]
) -> None:
    """4^4 + 5 rows, 50 times each, need 261 * 50 * 4 = 52,200 letters; 5-mers many more."""
    letters = "".join(random.Random(3).choices("ACGT", k=55_000))
    (tmp_path / "a.fa").write_text(f">r\n{letters}\n")
    data = prepared(tmp_path / "a.fa", DataSettings(kind="fasta"))
    assert larger_vocabularies(data, at_least) == tuple(Tokenisation(k=k) for k in found)


def test_a_size_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^vocab=256 is not in 257\.\.16777216; a BPE has"):
        Tokenisation(vocab=256)
    with pytest.raises(ValueError, match=r"^k=0 is not in 1\.\.24; use 1 to 24 letters"):
        Tokenisation(k=0)
