"""The short form of `make soak`: a few trials of every kind, none of which may fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SHORT = ["--kills", "20", "--faults", "8", "--races", "4", "--mutations", "300", "--requests", "50"]


@pytest.mark.slow
def test_nothing_fails_in_a_short_soak() -> None:
    path = os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-m", "soak", "--seed", "1", *SHORT],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    for kind in ("kill: train", "disk fault", "race", "mutated input: audit", "hostile request"):
        assert f"| {kind} |" in ended.stdout
