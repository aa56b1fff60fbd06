"""`archfit witness`, run as a user runs it."""

import json
import subprocess

import numpy as np
import pytest

import tests_said
from archfit.cli import exact_commands
from archfit.cli.app import main
from archfit.exact.witness import Witness, check_witness

SIZES = ("--depth", "3", "--width", "6", "--heads", "2")


def archfit(*arguments: str) -> subprocess.CompletedProcess[str]:
    return tests_said.archfit("witness", *arguments)


def answer(*arguments: str) -> dict[str, object]:
    done = archfit(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def test_the_document_has_the_keys_of_the_contract() -> None:
    document = answer(*SIZES)
    assert document == {
        "kind": "simplified",
        "inputs": {"depth": 3, "width": 6, "heads": 2, "positions": 4},
        "expected_rank": 20,
        "measured_rank": 20,
        "bound": {"id": "lb_strong", "value": 20},
        "verified": True,
        "formula": "4^((3^2 - 1)/2) (2J <v_a, v_b>)^(3^1)",
        "size": [20, 20],
        "entries_checked": 400,
        "entries_wrong": 0,
        "extent": "all",
        "embedding_rank": None,
        "prime": 2147483629,
    }


@pytest.mark.parametrize(
    ("kind", "bound", "rank"),
    [
        ("base", "lb", 4),
        ("convolution", "lb_vocab", 4),
        ("vocabulary", "lb_vocab", 4),
        ("vocabulary-long", "lb_vocab_long", 4),
        ("monomial", "monomial_witness", 150),
    ],
)
def test_every_kind_reaches_its_bound(kind: str, bound: str, rank: int) -> None:
    document = answer(*SIZES, "--kind", kind, "--prime", "1073741789")
    assert document["bound"] == {"id": bound, "value": rank}
    assert document["measured_rank"] == document["expected_rank"] == rank
    assert document["verified"] is True
    assert document["prime"] == 1073741789


def test_a_plan_can_be_given_and_comes_back() -> None:
    plan = [[[0, 0], [0, 1]], [[1, 1], [0, 0]]]
    document = answer(*SIZES, "--kind", "monomial", "--plan", json.dumps(plan), "--entry", "1")
    inputs = document["inputs"]
    assert isinstance(inputs, dict)
    assert (inputs["plan"], inputs["entry"]) == (plan, 1)


def test_people_get_a_table_and_a_sentence() -> None:
    said = archfit(*SIZES, "--kind", "vocabulary", "--why").stdout
    assert "lb_vocab = 4" in said
    assert "rank of the embedding  5" in said
    assert said.splitlines()[0].startswith("Verified: these weights have separation rank 4 or")


def test_a_rank_too_large_to_measure_is_said_to_be() -> None:
    example = ("--depth", "19", "--width", "4", "--heads", "4", "--plan", "example")
    said = archfit(*example, "--kind", "monomial").stdout
    assert "not measured: too large" in said
    assert "follows from it" in said
    document = answer(*example, "--kind", "monomial")
    assert document["measured_rank"] is None
    assert document["expected_rank"] == str(  # n = 3^16
        (3**16 + 1) // 2 * (3**16 + 1) ** 4 * (2 * 3**16 + 1) ** 3 * (3 * 3**16 + 1)
    )


def test_a_witness_that_fails_ends_with_status_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check_with_another_output(witness: Witness) -> object:
        from dataclasses import replace

        zeros = np.zeros((6, 3), int)
        last = tuple(replace(head, output=zeros) for head in witness.network[-1])
        return check_witness(replace(witness, network=(*witness.network[:-1], last)))

    monkeypatch.setattr(exact_commands, "check_witness", check_with_another_output)
    monkeypatch.setattr("sys.argv", ["archfit", "witness", *SIZES])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "NOT verified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--depth", "3", "--width", "8", "--heads", "2", "--kind", "base"), "use --width=10"),
        ((*SIZES, "--prime", "1073741825"), "is composite"),
        ((*SIZES, "--kind", "monomial", "--plan", "no"), "a plan is a list of layers"),
        ((*SIZES, "--kind", "monomial", "--plan", "[" * 5000), "nested too deeply"),
        ((*SIZES, "--kind", "wide"), "use one of base, simplified"),
        (("--depth", "9", "--width", "64", "--heads", "8"), "use depth <= 2"),
    ],
)
def test_bad_input_is_one_sentence_and_status_two(
    arguments: tuple[str, ...], sentence: str
) -> None:
    done = archfit(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr
