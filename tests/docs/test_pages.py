"""What README, CITATION.cff and the pages say is there, and is what the program prints."""

import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest
import sessions

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
BUILT = {"reference/commands.md"}  # by the site's hooks, with the pages of notebooks
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The ids that headings of a page have."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text()), re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", heading.lower()) for heading in headings)
    return {re.sub(r"\s+", "-", heading.strip()) for heading in words}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"https?:|mailto:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        if file.exists():
            assert not anchor or file.suffix != ".md" or anchor in anchors(file), target
            continue
        inside = str(file.relative_to(ROOT / "docs"))
        assert inside in BUILT or file.with_suffix(".ipynb").exists(), f"{target} is nowhere"


def test_readme_is_short_and_says_its_limits() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    for word in ("regret", "bottleneck", "separation rank"):
        assert f"**{word}**" in text, f"{word} is explained nowhere"


def test_badges_say_what_the_project_says() -> None:
    versions = [each.split()[-1] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    python = (ROOT / "docs" / "site" / "python.svg").read_text()
    licence = (ROOT / "docs" / "site" / "licence.svg").read_text()
    assert f">{' | '.join(versions)}</text>" in python
    assert f">{PROJECT['license']}</text>" in licence


def test_citation_and_changelog_name_one_version() -> None:
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    told = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited is not None
    assert told is not None
    assert cited[1] == told[1]
    assert f"date-released: {told[2]}" in (ROOT / "CITATION.cff").read_text()


def compare(page: Path, folder: Path) -> None:
    shown = page.read_text(encoding="utf-8")
    assert sessions.fresh(shown, folder) == shown, "make sessions"


def test_readme_shows_what_the_program_prints(tmp_path: Path) -> None:
    compare(ROOT / "README.md", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", sessions.pages()[1:], ids=named)
def test_pages_show_what_the_program_prints(page: Path, tmp_path: Path) -> None:
    compare(page, tmp_path)
