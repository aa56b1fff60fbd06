"""The site builds without a warning, asks nobody for anything, and can be searched offline."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("material", reason="no site: no mkdocs-material")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
AXE = (ROOT / "tests" / "browser" / "axe.min.js").read_text()
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
SHOWN = [
    "index",
    "quick-start",
    "tutorials/text",
    "atlas",
    "backtest",
    "reference/commands",
    "reference/python",
    "notebooks/choose-a-shape",
]
WINDOWS = {"desk": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright")
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    with sync_api.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


def test_every_command_is_described(site: Path) -> None:
    from archfit.cli.app import COMMANDS

    page = (site / "reference" / "commands.html").read_text()
    for command in COMMANDS:
        assert f"archfit {command}<" in page


def test_nothing_of_a_page_comes_from_elsewhere(site: Path) -> None:
    loaded = re.compile(
        r"<(?:script|img|iframe|link)[^>]+(?:src|href)=\"?(?:https?:)?//", re.IGNORECASE
    )
    pages = [page for page in site.rglob("*.html") if "examples" not in page.parts]
    assert len(pages) > 40
    for page in pages:
        assert not loaded.search(page.read_text()), page


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("window", WINDOWS)
def test_pages_ask_nobody_and_have_no_serious_fault(
    site: Path, browser: "Browser", window: str, colours: str
) -> None:
    wide, high = WINDOWS[window]
    context = browser.new_context(
        viewport={"width": wide, "height": high},
        color_scheme="dark" if colours == "dark" else "light",
    )
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    for name in SHOWN:
        page.goto((site / f"{name}.html").as_uri())
        page.evaluate(AXE)
        found = page.evaluate("axe.run({resultTypes: ['violations']})")
        serious = [
            (each["id"], each["nodes"][0]["html"][:200])
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert not serious, (name, serious)
        assert page.evaluate("document.documentElement.scrollWidth") <= wide + 1, name
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


def test_search_works_from_a_folder(site: Path, browser: "Browser") -> None:
    page = browser.new_page()
    page.goto((site / "index.html").as_uri())
    page.locator(".md-search__input").press_sequentially("bottleneck", delay=30)  # as a person
    page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
