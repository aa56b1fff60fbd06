"""Files of others: a sentence, whatever they hold; and what killed commands leave goes away."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from archfit.advise.source import facts_of
from archfit.data import vocabulary
from archfit.data.kinds import read_vocabulary, tokenizer_rows
from archfit.data.prepare import prepare
from archfit.data.prepared import open_prepared
from archfit.data.sources import DataSettings, find_files
from archfit.report.document import Document
from archfit.report.page import save_page

HUGE = 4_000_000_000
BPE = {"type": "BPE", "vocab": {"a": 0}, "merges": []}
ADDED = {"id": HUGE, "content": "<x>", "special": True, "normalized": False}
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "text.txt").write_text("some words in a row, again and again\n" * 50)
    settings = DataSettings(kind="bytes")
    return prepare(str(folder / "text.txt"), folder / "data", settings).data.folder


@pytest.mark.parametrize(
    "change",
    [
        {"input": [{}]},
        {"input": [{"name": 3}]},
        {"heldout_input": 7},
        {"vocab": "257"},
        {"vocab": 1 << 40},
        {"bytes_per_token": "four"},
        {"bytes": 0},
        {"bytes_per_token": 0},
        {"tokens": -1},
        {"unigram_entropy_bits": float("inf")},
        {"warnings": {}},
        {"train": []},
        {"data_hash": "0" * 64},
    ],
)
def test_a_description_that_others_wrote_is_refused_in_a_sentence(
    made: Path, tmp_path: Path, change: dict[str, object]
) -> None:
    copy = shutil.copytree(made, tmp_path / "data")
    description = json.loads((copy / "data.json").read_text())
    (copy / "data.json").write_text(json.dumps(description | change))
    with pytest.raises(ValueError, match="prepare it again with --overwrite"):
        facts_of(open_prepared(copy))  # what plan and advise read


@pytest.mark.parametrize(
    "document",
    [
        {"model": {"type": "WordLevel", "vocab": {"a": 0, "b": HUGE}, "unk_token": "a"}},
        {"model": BPE | {"vocab": {"a": 0, "b": HUGE}}},
        {"model": BPE | {"vocab": {"a": 0, "b": -1}}},
        {"model": BPE, "added_tokens": [ADDED | FLAGS]},
    ],
)
def test_ids_of_a_tokenizer_are_bounded_before_it_is_loaded(
    tmp_path: Path, document: dict[str, object]
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document))
    for read in (
        lambda: read_vocabulary(path.read_text(), path.name),
        lambda: tokenizer_rows(path),
    ):
        with pytest.raises(ValueError, match=r"has ids from .* and a vocabulary ends at 16777215"):
            read()


def test_a_tokenizer_that_takes_all_memory_does_not_take_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vocabulary, "MOST_MEMORY", 1 << 29)
    blown_up = {"type": "Replace", "pattern": {"String": " "}, "content": "x" * 200_000}
    text = json.dumps({"version": "1.0", "normalizer": blown_up, "model": BPE})
    with pytest.raises(ValueError, match="cannot be loaded within 60 seconds and 0 GiB"):
        read_vocabulary(text, "tokenizer.json")


def test_a_link_that_leads_outside_of_a_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a key")
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.txt").write_text("a text")
    (folder / "b.txt").symlink_to("a.txt")  # one that stays inside is a file like others
    assert [file.name for file in find_files(str(folder), "text")] == ["a.txt", "b.txt"]
    (folder / "c.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ValueError, match=r"'c\.txt' is a link that leads outside of 'source'"):
        find_files(str(folder), "text")
    named = find_files(str(folder / "c*.txt"), "text")  # who names it means it
    assert [file.name for file in named] == ["c.txt"]


def killed(program: str, *words: str) -> None:
    """A process that kills itself in the middle of its work."""
    start = f"import os, sys\nfrom pathlib import Path\n{program}"
    ended = subprocess.run([sys.executable, "-c", start, *words], capture_output=True)
    assert ended.returncode == -9, ended.stderr


def hidden(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


def test_a_report_takes_away_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".archfit-mine").mkdir()  # somebody's
    page = tmp_path / "report.html"
    program = "from archfit.spec.files import write_whole\n"
    program += "os.fsync = lambda _: os.kill(os.getpid(), 9)\n"
    program += "write_whole(Path(sys.argv[1]), b'half')"
    killed(program, str(page))
    assert len(hidden(tmp_path)) == 2
    save_page(Document(title="t", headline="h", sections=(), data={}), page)
    assert sorted(os.listdir(tmp_path)) == [".archfit-mine", "report.html"]


def test_prepare_takes_away_what_a_killed_one_left_where_all_is_done(
    made: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(made, tmp_path / "data")
    program = "from archfit.data.shards import atomic_folder\n"
    program += "with atomic_folder(Path(sys.argv[1]), overwrite=True): os.kill(os.getpid(), 9)"
    killed(program, str(copy))
    assert len(hidden(tmp_path)) == 1
    source = str(made.parent / "text.txt")
    assert prepare(source, copy, DataSettings(kind="bytes")).already_there
    assert hidden(tmp_path) == []
