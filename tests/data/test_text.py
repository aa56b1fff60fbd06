import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from archfit.data.sources import DataSettings, find_files
from archfit.data.streams import Blocks, DocumentBlock, Ledger, SourceFile, documents_between
from archfit.data.text import (
    character_vocabulary,
    decoded,
    text_blocks,
)

Writer = Callable[[str, bytes], SourceFile]
TEXT = DataSettings(kind="text")


def marked(chunks: Iterable[bytes]) -> Blocks:
    return documents_between(chunks, b"<|doc|>")


def documents(blocks: Iterable[DocumentBlock]) -> list[bytes]:
    found = [part for block in blocks for part in block.parts]
    return [part for part in found if part]


@given(text=st.text(max_size=40), sizes=st.lists(st.integers(1, 4), max_size=50))
def test_valid_text_passes_unchanged_however_it_is_cut(text: str, sizes: list[int]) -> None:
    content, chunks = text.encode(), []
    for size in [*sizes, 1000]:
        chunks.append(content[:size])
        content = content[size:]
    assert "".join(decoded(chunks, "t", "strict")) == text.removeprefix("\ufeff")


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3(", b"\xe2\x82", b"\x80", b"\xed\xa0\x80"])
def test_the_offset_of_invalid_text_is_named(bad: bytes) -> None:
    chunks = [b"good " * 3, b"text " + bad + b" more"]
    with pytest.raises(ValueError, match=r"t is not UTF-8: byte 0x.. at offset 20; use --errors"):
        list(decoded(chunks, "t", "strict"))
    assert "\ufffd" in "".join(decoded(chunks, "t", "replace"))


def test_utf16_is_told_apart() -> None:
    with pytest.raises(ValueError, match="t is UTF-16; write it as UTF-8"):
        list(decoded([b"", "hello".encode("utf-16")], "t", "strict"))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_documents_lie_between_marked_lines(end: str) -> None:
    text = end.join(["<|doc|>", "one", "still one", "<|doc|>", "two <|doc|>", "<|doc|>"])
    found = documents(marked([text.encode()]))
    assert found == [f"one{end}still one".encode(), b"two <|doc|>"]


@pytest.mark.parametrize(
    "chunks",
    [
        [b"o" * 5000 + b"\r\n<|doc|>\r\ntwo"],
        [b"o\r\no\n<|doc|>\ntwo"],
        [b"", b"o\r\n<|doc|>\r\ntwo"],
        [b"o\r", b"\n<|doc|>\r", b"\ntwo"],
        [b"o\n<|doc|>\r\n<|doc|>\n<|doc|>\r\ntwo\r\n<|doc|>"],
    ],
)
def test_a_mark_is_found_whatever_ends_its_line_and_others(chunks: list[bytes]) -> None:
    one, two = documents(marked(chunks))
    assert one.strip(b"o") in (b"", b"\r\n")
    assert two == b"two"


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_byte_order_mark_is_no_text(size: int) -> None:
    content = "\ufeff<|doc|>\none \ufeff".encode()
    chunks = [b"", *(content[place : place + size] for place in range(0, len(content), size))]
    checked = (text.encode() for text in decoded(chunks, "t", "strict"))
    assert documents(marked(checked)) == ["one \ufeff".encode()]


def test_a_last_line_in_pieces_is_still_a_separator() -> None:
    assert documents(marked([b"one\n<|d", b"oc|>"])) == [b"one"]


def test_a_file_without_marks_is_one_document(source_file: Writer, ledger: Ledger) -> None:
    assert documents(text_blocks(source_file("a.txt", b"a\n\nb\n"), TEXT, ledger)) == [b"a\n\nb\n"]


def test_character_data_is_split_at_blank_lines(source_file: Writer, ledger: Ledger) -> None:
    file = source_file("a.abc", b"X:1\nabc|\n\n\nX:2\ndef|\n")
    found = documents(text_blocks(file, DataSettings(kind="abc"), ledger))
    assert found == [b"X:1\nabc|", b"X:2\ndef|"]


def test_json_lines_give_the_field(source_file: Writer, ledger: Ledger) -> None:
    rows = [{"text": "één", "id": 1}, {"text": ""}, {"text": "two\nlines"}]
    file = source_file("a.jsonl", "\n\n".join(map(json.dumps, rows)).encode())
    assert documents(text_blocks(file, TEXT, ledger)) == ["één".encode(), b"two\nlines"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"{broken", r"a\.jsonl line 2 is not JSON"),
        (b'{"body": "x"}', r"line 2 has no field 'text' but 'body'; choose one by --field"),
        (b"[1]", r"line 2 has no field 'text' but list"),
        (b'{"text": 5}', "line 2 holds int, not text"),
        (b'{"text": "\\ud800"}', "line 2 is not valid Unicode"),
    ],
)
def test_a_bad_json_line_is_named(
    line: bytes, sentence: str, source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("a.jsonl", b'{"text": "fine"}\n' + line)
    with pytest.raises(ValueError, match=sentence):
        list(text_blocks(file, TEXT, ledger))


def test_a_lone_surrogate_can_be_replaced(source_file: Writer, ledger: Ledger) -> None:
    file = source_file("a.jsonl", b'{"text": "a\\ud800b"}')
    replacing = DataSettings(kind="text", errors="replace")
    assert documents(text_blocks(file, replacing, ledger)) == ["a\ufffdb".encode()]


def test_parquet_gives_the_column(source_file: Writer, ledger: Ledger) -> None:
    file = source_file("a.parquet", b"")
    parquet.write_table(pyarrow.table({"body": ["one", None, "two"]}), file.path)
    found = documents(text_blocks(file, DataSettings(kind="text", field="body"), ledger))
    assert found == [b"one", b"two"]
    with pytest.raises(ValueError, match="has no column 'text' but 'body'; choose one by --field"):
        list(text_blocks(file, TEXT, ledger))


def test_something_else_is_not_parquet(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match=r"a\.parquet is not readable Parquet"):
        list(text_blocks(source_file("a.parquet", b"not at all"), TEXT, ledger))


def test_bytes_of_a_json_line_that_are_no_text_are_named_or_replaced(
    source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("a.jsonl", b'{"text": "a\xffb"}')
    with pytest.raises(ValueError, match=r"line 1 is not UTF-8: byte 0xff at offset 11; use --err"):
        list(text_blocks(file, TEXT, ledger))
    replacing = DataSettings(kind="text", errors="replace")
    assert documents(text_blocks(file, replacing, ledger)) == ["a\ufffdb".encode()]


ROWS = {"text": ["one", "", "twö"], "label": [0, 1, 2]}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import datasets

    folder = tmp_path_factory.mktemp("hf")
    train = datasets.Dataset.from_dict(ROWS)
    datasets.DatasetDict({"train": train, "test": train.select([2])}).save_to_disk(folder / "both")
    train.save_to_disk(folder / "single")
    (folder / "plain").mkdir()
    train.to_json(folder / "plain" / "train.jsonl")
    return folder


def rows_of(source: str, ledger: Ledger, field: str | None = None) -> list[bytes]:
    (file,) = find_files(source, "text")
    settings = DataSettings(kind="text", field=field)
    return documents(text_blocks(file, settings, ledger))


@pytest.mark.parametrize("name", ["both", "single", "both:train", "both:default:train"])
def test_rows_of_a_saved_data_set_are_documents(name: str, saved: Path, ledger: Ledger) -> None:
    found = rows_of(f"hf:{saved}/{name}", ledger)
    assert found == [b"one", "twö".encode()]
    assert [file.bytes for file in ledger.files.values()] == [7]


def test_another_split_and_field(saved: Path, ledger: Ledger) -> None:
    assert rows_of(f"hf:{saved}/both:test", ledger) == ["twö".encode()]
    with pytest.raises(ValueError, match=r"no split 'validation' but train, test"):
        rows_of(f"hf:{saved}/both:validation", ledger)
    with pytest.raises(ValueError, match="no column 'body' but 'text', 'label'"):
        rows_of(f"hf:{saved}/both", ledger, field="body")


def test_a_folder_of_data_files(
    saved: Path, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    found = rows_of(f"hf:{saved}/plain", ledger)
    assert found == [b"one", "twö".encode()]


def test_what_is_not_there_is_not_fetched(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match=r"cannot be loaded offline .* give a folder"):
        rows_of("hf:nobody/nothing", ledger)
    with pytest.raises(ValueError, match="is not hf:NAME"):
        rows_of("hf:", ledger)


@given(st.lists(st.text()))
def test_the_alphabet_is_every_character_once(texts: list[str]) -> None:
    made = character_vocabulary(DataSettings(kind="abc"), (text.encode() for text in texts), {})
    assert made.alphabet == "".join(sorted(set("".join(texts))))
