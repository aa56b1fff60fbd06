"""The wheel, installed by itself, plans, audits and back-tests without torch."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytest.importorskip("build", reason="no wheel: no build")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def output(*words: object, where: Path) -> str:
    done = subprocess.run(
        list(map(str, words)), cwd=where, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`archfit` of a new environment that has the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("clean")
    output(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, where=folder)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    pip = (programs / "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    output(*pip, where=folder)
    return programs / "archfit"


@pytest.mark.parametrize(
    "words", ["plan --params 10M --vocab 257", "audit albert-xxlarge-v1", "backtest"]
)
def test_wheel_answers_by_itself(program: Path, tmp_path: Path, words: str) -> None:
    here = output(sys.executable, "-m", "archfit", *words.split(), where=tmp_path)
    assert output(program, *words.split(), where=tmp_path) == here


def test_wheel_brings_no_torch(program: Path, tmp_path: Path) -> None:
    listed = output(program.parent / "pip", "list", where=tmp_path)
    assert "archfit" in listed
    assert not any(line.startswith("torch ") for line in listed.splitlines())
