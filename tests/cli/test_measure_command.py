"""`archfit measure`, run as a user runs it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from archfit.cli.app import main
from archfit.report.measure_document import certificate
from tests_experiments import measured
from tests_said import archfit, unwrapped


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return archfit("measure", *arguments)


def answer(arguments: str) -> dict[str, Any]:
    done = run(*arguments.split(), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize(
    ("arguments", "rank", "is_exact"),
    [
        ("--depth 2 --width 3", 49, True),
        ("--depth 2 --width 3 --heads 3", 43, False),
        ("--depth 2 --width 5 --head-dim 1 --positions 10 --residual", 10, False),
        ("--depth 2 --width 3 --partition 0", 39, False),
        ("--depth 2 --width 3 --partition 0 --output-position 2", 43, True),
        ("--depth 2 --width 3 --partition 0 --output-position last", 43, True),
        ("--depth 2 --width 2 --causal --partition interleaved", 37, False),
        ("--depth 2 --width 2 --causal --partition first-half", 18, True),
        ("--depth 2 --width 4 --heads 2 --rank 2 --position-rank 1", 39, True),
        ("--depth 2 --width 4 --patch 2", 18, True),
        ("--depth 2 --width 4 --patch 9 --rank 3", 49, True),
        ("--depth 2 --width 3 --vocab 4 --positions 8", 22, True),
    ],
)
def test_ranks_come_out_of_the_command(arguments: str, rank: int, is_exact: bool) -> None:
    document = answer(arguments)
    assert (document["separation_rank"], document["exact"]) == (rank, is_exact)
    assert document["ranks"] == [rank] * len(document["primes"])
    assert len(set(document["primes"])) == 2


def test_the_document_has_all_of_the_certificate() -> None:
    document = answer("--depth 2 --width 3 --prime 65537")
    del document["seconds"]
    assert document == {
        "separation_rank": 49,
        "exact": True,
        "samples": 55,
        "primes": [65537],
        "ranks": [49],
        "upper": 49,
        "lower": 4,
        "failure_probability": 0.0,
        "certificate": "at least 49 for almost all weights: certain, by a minor that is not 0 "
        "modulo a prime; not more, by the proved upper bound: exact",
        "parts_by_degree": None,
    }


def test_people_read_the_rank_the_certificate_and_the_network() -> None:
    text = run("--depth", "2", "--width", "3", "--heads", "3").stdout
    assert "separation rank = 43\n" in text
    assert "2 random tests agree, which err with probability 4.9e-13 (if" in unwrapped(text)
    assert re.search(r"Bounds proved in the paper or here: \w+ \(lower\), 49 \(upper\)\.", text)
    assert "Unmasked network, linear attention" in text
    assert "separation rank = 49 (exact)" in run("--depth", "2", "--width", "3").stdout


def test_no_more_is_promised_than_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    causal = certificate(measured(2, 2, causal=True))
    assert causal.endswith("not more, by the proved upper bound: exact")
    monkeypatch.setattr("archfit.exact.matrix.MOST_LISTED", 8)
    monkeypatch.setattr("archfit.exact.experiment.MOST_LISTED", 8)
    assert "not all fillings" in certificate(measured(2, 3, 1, 8, V=4))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "--depth and --width say which network"),
        ("--depth 2", "give both, or --claim NAME"),
        ("--depth 2 --width 3 --prime 9", "prime=9 is not an odd prime below 2^31"),
        ("--depth 2 --width 3 --prime 8388593 --prime 8388595", "prime=8388595 is not"),
        ("--depth 2 --width 3 --partition 0,1,2,3", "do not cover positions 0..3"),
        ("--depth 2 --width 3 --partition 0,4", "names a position outside 0..3"),
        ("--depth 2 --width 3 --positions 2 --partition 2", "names a position outside 0..1"),
        ("--depth 2 --width 3 --partition middle", "--partition 'middle' is unknown"),
        ("--depth 2 --width 3 --output-position 4", "output position 4 is not in 0..3"),
        ("--depth 2 --width 3 --output-position=-1", "output position -1 is not in 0..3"),
        ("--depth 2 --width 3 --output-position first", "'first' is not a size; write a whole"),
        ("--depth 2 --width 3 --positions 1", "positions=1 cannot be divided"),
        ("--depth 2 --width 3 --positions 5000", "positions=5000 is over 4096"),
        ("--depth 2 --width 3 --heads 2", "--width=3 is not a multiple of --heads=2"),
        ("--depth 2 --width 3 --heads 0", "heads=0 is below 1"),
        ("--depth 0 --width 3", "depth=0 is below 1"),
        ("--depth 8 --width 3", "depth=8 is over 7"),
        ("--depth 2 --width 65", "width=65 is over 64"),
        ("--depth 2 --width 3 --rank 4", "--rank=4 is above --width=3"),
        ("--depth 2 --width 3 --vocab 4 --patch 2", "--vocab and --patch are given"),
        ("--depth 2 --width 3 --vocab 1e9", "vocab=1000000000 is over 1,000,000"),
        ("--depth 2 --width 3 --heads 1e9 --head-dim 1", "use fewer"),
        ("--depth 4 --width 4", "--width 2 fits with one head, or raise --limit"),
        ("--depth 7 --width 64 --positions 200", "a million or more GB"),
        ("--depth 2 --width 3 --limit nan", "--limit nan is no number of minutes"),
        ("--depth 2 --width 3 --limit 0", "--limit 0.0 is no number of minutes"),
        ("--depth 2 --width 3 --device tpu", "--device 'tpu' is unknown"),
        ("--depth 2 --width 3 --chart x.svg", "draws --claim growth"),
        ("--claim nonsense", "use one of partition-symmetry, residuals"),
        ("--claim heads --depth 2", "has networks of its own"),
        ("--claim growth --chart x.txt", "ends in '.txt'"),
    ],
)
def test_bad_input_is_one_sentence_and_status_two(
    arguments: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["archfit", "measure", *arguments.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err


def test_what_is_said_to_fit_is_measured() -> None:
    refused = run("--depth", "3", "--width", "9", "--limit", "0.05", "--positions", "2")
    offered = re.search(r"--width (\d+) fits", refused.stderr)
    assert offered is not None
    sizes = ("--depth", "3", "--width", offered[1], "--limit", "0.05", "--positions", "2")
    assert run(*sizes).returncode == 0


def processor_seconds(process: int) -> float:
    user, system = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_interrupted_it_prints_nothing() -> None:
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "archfit",
            "measure",
            "--depth",
            "3",
            "--width",
            "4",
            "--positions",
            "4",
            "--limit",
            "1e5",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while processor_seconds(running.pid) < 3:  # all is imported, and pairs are evaluated
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert (running.returncode, out) == (130, "")
    assert "interrupted" in err


def test_a_claim_prints_its_cases_and_its_verdict() -> None:
    text = run("--claim", "small-vocabulary").stdout
    assert "L=2 d=3 H=1 N=12 V=2 r=2" in text
    assert text.startswith("small-vocabulary: holds in all 4 cases.")


def test_a_claim_as_a_document() -> None:
    document = answer("--claim causal-mask")
    assert (document["claim"], document["holds"]) == ("causal-mask", True)
    assert document["verdict"] == "holds in all 4 cases"
    first = document["rows"][0]
    wanted = {"case": 1, "depth": 2, "width": 2, "causal": True, "separation_rank": 18}
    assert wanted.items() <= first.items()
    assert first["upper"] == 18


def test_a_claim_that_fails_says_where() -> None:
    """Modulo 3 all is zero, so nothing is below anything."""
    document = answer("--claim small-vocabulary --prime 3")
    assert document["holds"] is False
    assert document["verdict"].startswith("fails in ")


def test_all_claims_are_listed() -> None:
    text = run("--claim", "list", "--why").stdout
    for name in ("partition-symmetry", "residuals", "heads", "saturation", "growth"):
        assert f"  {name} " in text


@pytest.mark.slow
def test_growth_is_measured_drawn_and_compared(tmp_path: Path) -> None:
    file = tmp_path / "growth.svg"
    document = answer(f"--claim growth --limit 0.003 --chart {file}")
    assert document["holds"] is True
    row = next(row for row in document["rows"] if (row["depth"], row["width"]) == (2, 3))
    wanted = {"separation_rank": 35, "ub_stat_N": 35, "ub_thm1": "256", "ub_thm2": "33275"}
    assert wanted.items() <= row.items()
    assert "<svg" in file.read_text()[:200]
    text = run("--claim", "growth", "--limit", "0.001").stdout
    assert re.search(r"growth: .*: holds in all \d+ cases\.", unwrapped(text))
