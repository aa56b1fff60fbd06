"""Run the sessions that pages show, and write what was printed into them.

    python docs/site/sessions.py [PAGE…]    # without a page: all of them

A session is a block of code after a line `<!-- session -->`: of Python, which is run, or of a
terminal, whose lines `$ archfit …` are run and followed by their output. The blocks of one page
share a folder. After `<!-- session: once -->` nothing is run: what trains prints other seconds, so
that such a block was run by hand. `tests/docs` runs all others and compares.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SESSION = re.compile(r"(<!-- session -->\n+```(console|python)\n)(.*?)(\n```)", re.DOTALL)
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"COLUMNS": "80", "NO_COLOR": "1", "OPENBLAS_NUM_THREADS": "1"}


def pages() -> list[Path]:
    """The pages with sessions that can be run."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if SESSION.search(page.read_text(encoding="utf-8"))]


def fresh(page: str, folder: Path) -> str:
    """The page with what its sessions print now, run in this folder."""
    return SESSION.sub(lambda found: found[1] + _run(found[2], found[3], folder) + found[4], page)


def _run(language: str, source: str, folder: Path) -> str:
    if language == "python":
        _printed([sys.executable, "-c", source], folder)
        return source
    lines = source.splitlines()
    commands = [line for line in lines if line.startswith("$ ")]
    return "\n".join(f"{line}\n{_answer(line[2:], folder)}".rstrip() for line in commands)


def _answer(command: str, folder: Path) -> str:
    program, *words = shlex.split(command, comments=True)
    if program != "archfit":
        raise ValueError(f"a session runs archfit, not {program}: {command}")
    return _printed([sys.executable, "-m", "archfit", *words], folder)


def _printed(words: list[str], folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def main(named: list[Path]) -> None:
    """Bring these pages up to date."""
    for page in named or pages():
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(fresh(page.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
