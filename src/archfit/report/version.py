"""Which archfit made a page: its version, and the commit of its code."""

import shutil
import subprocess
from pathlib import Path

from archfit import __version__

PACKAGE = Path(__file__).parents[1]


def version_line() -> str:
    """Version and commit, `archfit 0.1.0 (commit 1a2b3c4)`."""
    return f"archfit {__version__} (commit {commit()})"


def commit() -> str:
    """The commit this code is from: of the checkout it lies in, or written into its wheel."""
    checkout = PACKAGE.parents[1]
    if (checkout / "pyproject.toml").exists() and shutil.which("git"):
        is_clean, _ = _git(checkout, "diff", "--quiet", "HEAD", "--", "src")  # docs are no code
        is_known, name = _git(checkout, "rev-parse", "--short=12", "HEAD")
        return f"{name}{'' if is_clean else '-dirty'}" if is_known else "unknown"
    written = PACKAGE / "resources" / "commit.txt"
    return written.read_text().strip()[:12] if written.exists() else "unknown"


def _git(checkout: Path, *words: str) -> tuple[bool, str]:
    """Whether it went well, and what it said."""
    said = subprocess.run(
        ["git", *words], cwd=checkout, capture_output=True, text=True, check=False
    )
    return said.returncode == 0, said.stdout.strip()
