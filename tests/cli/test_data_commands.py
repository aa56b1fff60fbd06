"""The data commands: their JSON, their table, and their refusals."""

import json
import random
import re
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
    told = unwrapped(run("inspect", out, "--why"))
    assert re.search(
        r"Leakage: 0\.0 % of the held-out runs of 13 words .* \([\d,]+ looked at\)\.", told
    )
    assert re.search(r"tokens: [\d,]+ \(uint16\) for training: [\d,]+ held out: ", told)
    assert "hashes agree" not in told
    assert "hashes agree" in run("inspect", out, "--verify")


def test_sequences_are_told_as_letters_and_a_small_set_gets_a_small_network(tmp_path: Path) -> None:
    file, letters = tmp_path / "a.fasta", random.Random(1)
    records = ["".join(letters.choices("ACDEFGHIKLMNPQRSTVWY", k=200)) for _ in range(150)]
    file.write_text("".join(f">r{at}\n{record}\n" for at, record in enumerate(records)))
    told = unwrapped(run("prepare", str(file), "--out", str(tmp_path / "one")))
    assert "tokens of fasta as letters, 21 of 21 in use (one ends a document)" in told
    assert "held out (one document in twenty); 1.00 letters per token" in told
    assert "--params 1M" in told
    told = unwrapped(run("prepare", str(file), "--kmer", "2", "--out", str(tmp_path / "two")))
    assert "tokens of fasta as groups of 2 letters" in told


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
