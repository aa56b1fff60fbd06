"""The data commands: their JSON, their table, and their refusals."""

import json
from pathlib import Path

import pytest

from tests_said import archfit, said, unwrapped

CONTRACT = {
    "kind",
    "vocab",
    "tokens",
    "bytes",
    "documents",
    "unigram_entropy_bits",
    "embedding_rank_limit",
}


def run(*arguments: str) -> str:
    return archfit("data", *arguments).stdout


def test_prepare_and_inspect_print_one_and_the_same_json_document(tmp_path: Path) -> None:
    out = str(tmp_path / "data")
    prepared = json.loads(run("prepare", "sample", "--kind", "text", "--out", out, "--json"))
    assert prepared.keys() >= CONTRACT
    assert prepared["kind"] == "text"
    assert prepared["vocab"] == 257
    assert json.loads(run("inspect", out, "--json", "--verify")) == prepared
    again = json.loads(run("prepare", "sample", "--kind", "text", "--out", out, "--json"))
    assert again == prepared


def test_the_table_is_for_people(tmp_path: Path) -> None:
    out = str(tmp_path / "data")
    first = run("prepare", "--vocab", "0.3K", "--out", out)
    assert "Unigram entropy" in first
    assert "of 300 in use" in unwrapped(first)
    assert "It was there already" not in first
    assert "It was there already" in run("prepare", "--vocab", "300", "--out", out)
    assert "shared 13-grams" in run("inspect", out, "--why")


def test_a_folder_called_sample_that_prepare_made_does_not_hide_the_sample(tmp_path: Path) -> None:
    for name in ("sample", "again"):
        assert archfit("data", "prepare", "--out", name, cwd=tmp_path).returncode == 0
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sample").write_text("own words, not the sample\n" * 99)
    own = json.loads(
        archfit("data", "prepare", "--out", "x", "--json", cwd=tmp_path / "own").stdout
    )
    assert own["bytes"] == 99 * 26


def test_the_kind_is_guessed(tmp_path: Path) -> None:
    (tmp_path / "a.fasta").write_text(">a\n" + "ACGT" * 100)
    out = str(tmp_path / "data")
    found = json.loads(run("prepare", str(tmp_path / "a.fasta"), "--out", out, "--json"))
    assert (found["kind"], found["vocab"]) == ("fasta", 5)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["prepare", "nowhere", "--kind", "text"], "no file or folder 'nowhere'"),
        (
            ["prepare", "sample", "--kind", "prose"],
            "kind='prose' is unknown; use one of text, bytes",
        ),
        (["prepare", "sample", "--vocab", "3"], "use 257 or more"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    refused = said("data", *arguments, "--out", str(tmp_path / "data")).refusal()
    assert sentence in refused.replace("--kind", "kind")
    assert list(tmp_path.iterdir()) == []


def test_a_size_that_is_none_is_refused_by_the_program() -> None:
    refused = said("data", "prepare", "--vocab", "many", "--out", "x").refusal()
    assert "'--vocab': 'many' is not a size" in refused


def test_the_program_refuses_in_one_line_with_status_2(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ab\xff" * 10)
    source, out = tmp_path / "a.txt", tmp_path / "data"
    refused = said("data", "prepare", source, "--kind", "text", "--out", out, "--json").refusal()
    assert refused.startswith("archfit: a.txt is not UTF-8: byte 0xff at offset 2")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
