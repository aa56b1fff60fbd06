"""`archfit theory` and `archfit bounds`, run as a user runs them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests_said import archfit, unwrapped


def answer(*arguments: str) -> dict[str, object]:
    done = archfit(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def test_version_names_version_and_commit() -> None:
    assert re.fullmatch(r"archfit \d+\.\d+\.\d+ \(commit \S+\)\n", archfit("--version").stdout)


def test_theory_prints_the_document_of_the_library() -> None:
    document = answer("theory", "ub_stat_vocab", "L=2", "V=5", "r=3", "n_P=4", "n_Q=4")
    assert document["value"] == 30
    assert document["inputs"] == {"L": 2, "V": 5, "r": 3, "n_P": 4, "n_Q": 4}


def test_theory_takes_sizes_and_words() -> None:
    inputs = ("L_deep=6", "d_deep=1K", "H=16", "L_shallow=3", "lower=relaxA")
    assert str(answer("theory", "required_width", *inputs)["value"]).startswith("194685.18745813")


def test_theory_without_a_name_lists_all() -> None:
    listed = archfit("theory", "--why")
    assert listed.returncode == 0
    assert "ub_stat_simple_log3" in listed.stdout
    assert "lb_strong L d_x H [r]  [proved here (docs/theory.md), for" in listed.stdout
    assert re.search(r"Lower bounds: lb, lb_strong, [^:]*lb_causal_chain", archfit("theory").stdout)
    assert len(json.loads(archfit("theory", "--json").stdout)) >= 40


@pytest.mark.parametrize(("depth", "exceeds"), [(18, False), (19, True)])
def test_the_example_witness_is_compared_with_the_formula(depth: int, exceeds: bool) -> None:
    document = answer("theory", "monomial_witness", f"L={depth}", "d_x=4", "H=4", "plan=example")
    assert document["exceeds_formula"] is exceeds


def test_a_formula_is_refuted_by_weights_that_check() -> None:
    document = answer("theory", "ub_thm2", "L=8", "d_x=6", "--counterexample")
    assert document["refuted"] is True
    found = document["counterexample"]
    assert isinstance(found, dict)
    plan = "plan=" + json.dumps(found["plan"])
    shape = ("L=8", "d_x=6", "H=6", f"entry={found['entry']}")
    check = answer("theory", "monomial_witness", *shape, plan)
    assert check["exceeds_formula"] is True


def test_bounds_have_the_keys_of_the_contract() -> None:
    document = answer("bounds", "--depth", "12", "--width", "768", "--heads", "12")
    assert document.keys() >= {"inputs", "regime", "lower", "upper", "bounds"}
    for side in ("lower", "upper"):
        bound = document[side]
        assert isinstance(bound, dict)
        assert bound.keys() >= {"id", "log3", "exact", "status", "source"}
        assert bound["status"] != "disputed"
    listed = document["bounds"]
    assert isinstance(listed, list)
    assert listed[:2] == [document["lower"], document["upper"]]


def test_bounds_of_the_largest_networks_answer() -> None:
    document = answer("bounds", "--depth", "200", "--width", "100000", "--heads", "100")
    upper = document["upper"]
    assert isinstance(upper, dict)
    assert upper["id"] == "ub_stat_simple"
    assert upper["exact"] is None


def test_bounds_say_refuted() -> None:
    done = archfit(
        "bounds", "--depth", "8", "--width", "6", "--heads", "6", "--counterexample", "--why"
    )
    assert "REFUTED" in done.stdout
    assert "disputed (its proof has a gap)" in done.stdout


def test_bounds_tell_people_what_they_speak_of() -> None:
    text = archfit("bounds", "--depth", "12", "--width", "768", "--heads", "12", "--why").stdout
    assert "unmasked" in text
    assert "6.047 = log3(width)" in text  # log3(768)
    assert "12.726 = 2 log3(d) + log3(2)" in text
    assert "Upper bound: ub_stat_simple, proved here (docs/theory.md)." in text
    assert "Saturation" not in text  # a reading of an upper bound, for programs


def test_a_factorised_embedding_limits_the_rank_that_counts() -> None:
    document = answer(
        *("bounds", "--depth", "4", "--width", "64", "--heads", "4", "--vocab", "257"),
        *("--rank", "16", "--position-rank", "2", "--positions", "32", "--residual"),
    )
    assert document["embedding_rank"] == 16
    assert document["upper"] != document["lower"]


@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
def test_a_chart_is_written_in_the_format_of_its_name(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"bounds.{suffix}"
    shape = ("--depth", "4", "--width", "16", "--heads", "4")
    assert answer("bounds", *shape, "--chart", str(file))["chart"] == str(file)
    start = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}[suffix]
    content = file.read_bytes()
    assert content.lstrip().startswith(start)
    assert list(tmp_path.iterdir()) == [file]
    if suffix == "html":  # opens offline: scripts are inside
        assert not re.search(rb'<script[^>]+src="http', content)


SHAPE = ("--width", "8", "--heads", "2")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("bounds", "--depth", "0", *SHAPE), "depth=0 is not in 1..1000000; the nearest is 1"),
        (("bounds", "--depth", "-2", *SHAPE), "depth=-2 is not in"),
        (("bounds", "--depth", "2.5", *SHAPE), "'2.5' is not a whole number; the nearest is 2"),
        (("bounds", "--depth", "deep", *SHAPE), "'deep' is not a size"),
        (("bounds", "--depth", "2", "--width", "2e9", "--heads", "2"), "width=2000000000"),
        (("bounds", "--depth", "2", "--width", "8", "--heads", "9"), "use at most 8 heads"),
        (("bounds", "--depth", "2", "--width", "8"), "Missing option '--heads'"),
        (("bounds", "--depth", "2", *SHAPE, "--rank", "0"), "--rank=0 is not in"),
        (("bounds", "--depth", "2", *SHAPE, "--positions", "1"), "positions=1 is not in"),
        (("bounds", "--depth", "2", *SHAPE, "--chart", "a.gif"), "ends in '.gif'; use .svg"),
        (("bounds", "--depth", "2", *SHAPE, "--chart", "no/a.svg"), "make no first"),
        (("theory", "ub_stt", "L=2"), "did you mean ub_stat"),
        (("theory", "C", "L"), "'L' is not an input; write KEY=VALUE"),
        (("theory", "C", "L=2", "L=3"), "given twice"),
        (("theory", "C", "L=" + "9" * 5000), "is not"),
        (("theory", "C", "L=" + "[" * 100_000), "nested too deeply"),
        (("theory", "C", "L=2", "--counterexample"), "C is no disputed bound"),
        (("theory", "ub_thm2", "L=2", "--counterexample"), "needs d_x"),
        (("theory", "lb", "L=1000000", "d_x=1000000", "H=2"), "_log3"),
        (("theory", "", "L=3"), "'' is no quantity"),
        (("theory", "lb_log3", "L=4", "d_x=4", "H=4"), "d_x=4 with H=4 leaves floor((d_x - H)"),
        (("theory", "multiset", "n=1e400", "k=1e400"), "more than 1,000,000 digits"),
        (("theory", "C", "L=1e999999999"), "is not a whole number"),
        (("theory", "required_width", "lower=[1]"), "needs L_deep"),
        (("bounds", "--depth", "20000", *SHAPE, "--chart", "a.svg"), "use at most 10000"),
        (("bounds", "--depth", "2", *SHAPE, "--chart", "."), "use .svg"),
        (("nonsense",), "No such command 'nonsense'"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(arguments: tuple[str, ...], sentence: str) -> None:
    done = archfit(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"archfit: [^\n]+\n", done.stderr)
    assert sentence in done.stderr


def test_a_million_layers_answer_by_logarithm() -> None:
    document = answer("theory", "ub_stat_simple_log3", "L=1e6", "d_x=1e9")
    assert str(document["value"]).startswith("4.99981277025")


def test_without_arguments_help_is_shown() -> None:
    done = archfit()
    assert done.returncode == 0
    assert "theory" in done.stdout
    assert done.stderr == ""


def test_a_reader_that_stops_early_is_no_error() -> None:
    program = f"{sys.executable} -m archfit theory | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program}"], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_long_inputs_are_not_echoed_whole() -> None:
    assert len(archfit("theory", "x" * 100_000).stderr) < 600


@pytest.mark.parametrize(
    ("written", "meant"), [("1e23", 10**23), ("1" + "0" * 23, 10**23), ("100B", 10**11)]
)
def test_large_numbers_are_taken_to_the_last_digit(written: str, meant: int) -> None:
    value = answer("theory", "multiset", f"n={written}", "k=1")["value"]
    assert int(str(value)) == meant


def test_a_whole_float_is_a_size_also_for_a_counterexample() -> None:
    assert answer("theory", "ub_thm2", "L=8.0", "d_x=6e0", "--counterexample")["refuted"] is True


def test_a_wide_witness_is_compared_by_logarithm() -> None:
    document = answer("theory", "monomial_witness", "L=12", "d_x=1e9", "H=4", "plan=example")
    assert document["exceeds_formula"] is False


def test_parts_of_an_answer_are_named() -> None:
    said = unwrapped(archfit("theory", "min_depth", "size=1e9").stdout)
    line = said.partition(" The depth that")[0]
    assert line.endswith(", min_depth 7")
    assert "digits" not in line


def test_a_folder_is_no_chart(tmp_path: Path) -> None:
    folder = tmp_path / "chart.svg"
    folder.mkdir()
    done = archfit("bounds", "--depth", "2", *SHAPE, "--chart", str(folder))
    assert done.returncode == 2
    assert "is a folder" in done.stderr
