"""The explorer's pages in a real browser, Debian's Chromium, driven by Playwright."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from archfit.advise.advice import decided
from archfit.advise.ladder import LadderRun
from archfit.advise.measure import Measured
from archfit.advise.plan_request import PlanOptions
from archfit.advise.planner import make_plan
from archfit.advise.source import Source, prepared_source
from archfit.audit.auditor import audit_model
from archfit.audit.zoo import zoo_models
from archfit.report.advice_document import advice_document
from archfit.report.audit_document import gallery_document
from archfit.report.page import save_page
from tests_explorer import running_explorer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="no browser test: no playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser test: no chromium is installed"
)

AXE = (Path(__file__).parent / "axe.min.js").read_text()
ALBERT = (Path(__file__).parents[1] / "audit" / "configs" / "albert-xxlarge-v1.json").read_text()
BYTES = "/?budget=100M&of=block_params&vocab=257"
WINDOWS = {"desk": (1280, 900), "phone": (390, 844)}
QUICK = (("phone", "dark"),)
LOOKS = [
    pytest.param((window, scheme), marks=() if (window, scheme) in QUICK else pytest.mark.slow)
    for window in WINDOWS
    for scheme in ("light", "dark")
]


@dataclass
class Visit:
    """A page, and what it did that a visitor does not see."""

    page: "Page"
    home: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Note every message of the console, error and request."""
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def go(self, path: str) -> "Page":
        """The page."""
        self.page.goto(self.home + path)
        return self.page

    def go_and_draw(self, path: str) -> "Page":
        """The page, its charts drawn."""
        self.go(path)
        for figure in self.page.locator("figure[data-chart]").all():
            if figure.is_visible():  # theory is folded away
                figure.locator("svg").first.wait_for(timeout=30_000)
        return self.page

    def shape(self) -> str:
        """The answer in large letters."""
        return self.page.locator("#shape").inner_text()


@pytest.fixture(scope="module")
def home() -> Iterator[str]:
    with running_explorer() as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with sync_api.sync_playwright() as playwright:
        # As root, which CI often is, Chromium starts without its sandbox only; the pages are ours.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(home: str, browser: "Browser", request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A visit that must leave no complaint and ask nobody else."""
    look: Any = getattr(request, "param", ("desk", "light"))
    window, scheme = look
    width, height = WINDOWS[window]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    visit = Visit(page, home)
    visit.listen()
    yield visit
    page.close()
    # Where a chart's line is full the page asks again; Chromium notes the status by itself.
    assert [words for words in visit.complaints if "429 (Too Many Requests)" not in words] == []
    assert [url for url in visit.requests if not url.startswith((home, "data:"))] == []


def expect_shape(visit: Visit, shape: str) -> None:
    sync_api.expect(visit.page.locator("#shape")).to_have_text(re.compile(shape), timeout=15_000)


def test_the_controls_change_the_shape_and_the_charts(visit: Visit) -> None:
    page = visit.go_and_draw("/")
    before = visit.shape()
    page.get_by_label("Vocabulary", exact=True).fill("257")
    expect_shape(visit, r"^\d+ layers")
    sync_api.expect(page.locator("#shape")).not_to_have_text(before)
    page.get_by_label("counts").select_option("block_params")
    page.get_by_label("Size", exact=True).fill("100M")
    shape = make_plan(PlanOptions(block_params=10**8, vocab=257).request()).shape
    expect_shape(visit, f"^{shape.depth} layers \N{MULTIPLICATION SIGN} {shape.width}$")
    sync_api.expect(page.locator("#why")).to_contain_text("A vocabulary of 257 is below the width")
    sync_api.expect(page.locator("figure[data-chart=depths] [role=img]")).to_have_attribute(
        "aria-label", re.compile(f"recommended {shape.depth} layers"), timeout=15_000
    )


def test_the_sliders_move_what_they_stand_beside(visit: Visit) -> None:
    page = visit.go(BYTES)
    page.get_by_label("Deepest network, slider").fill("0.2")
    sync_api.expect(page.locator("#max_depth")).to_have_value("4")
    expect_shape(visit, "^4 layers")
    page.get_by_label("Size, slider").fill("1")
    sync_api.expect(page.locator("#budget")).to_have_value("1T")
    sync_api.expect(page.locator(".under")).to_contain_text(
        re.compile(r"\b\d{1,3}(,\d{3}){3,4} parameters")
    )


def test_an_address_that_is_shared_restores_the_state(visit: Visit) -> None:
    page = visit.go("/")
    page.get_by_label("Embedding rank", exact=True).fill("64")
    page.get_by_label("Size", exact=True).fill("30M")
    sync_api.expect(page.locator("#why")).to_contain_text("A rank of 64 is below")
    sync_api.expect(page).to_have_url(re.compile("budget=30M.*rank=64"))
    sync_api.expect(page.locator("#answer")).not_to_have_attribute("aria-busy", "true")
    shape, address = visit.shape(), page.url
    page.goto("about:blank")
    page.goto(address)
    assert visit.shape() == shape
    assert page.get_by_label("Embedding rank", exact=True).input_value() == "64"
    assert page.get_by_label("Size", exact=True).input_value() == "30M"


def test_a_value_that_is_none_is_said_beside_the_controls(visit: Visit) -> None:
    page = visit.go("/")
    page.get_by_label("Size", exact=True).fill("many")
    sync_api.expect(page.get_by_role("alert")).to_contain_text("'many' is not a size")
    page.get_by_label("Size", exact=True).fill("1M")
    expect_shape(visit, "layers")
    visit.complaints[:] = [  # Chromium notes the status 400 by itself
        words for words in visit.complaints if "400 (Bad Request)" not in words
    ]


def test_a_pasted_config_shows_its_findings_and_has_a_link(visit: Visit) -> None:
    page = visit.go("/audit")
    page.get_by_label("Paste a config.json").fill(ALBERT)
    finding = page.locator(".finding.high")
    sync_api.expect(finding).to_contain_text("low-rank-embedding")
    sync_api.expect(page).to_have_url(re.compile("config="))
    page.reload()
    assert "low-rank-embedding" in page.locator(".finding.high").inner_text()
    page.get_by_label("Name").fill("T5-11B")
    sync_api.expect(page.locator("#answer")).to_contain_text("attention-bottleneck")


def test_a_config_too_long_for_a_link_is_audited_too(visit: Visit) -> None:
    page = visit.go("/audit")
    labels = ",".join(f'"{number}": "label {number}"' for number in range(3000))
    page.get_by_label("Paste a config.json").fill(
        ALBERT.replace("{", f'{{"id2label": {{{labels}}},', 1)
    )
    sync_api.expect(page.locator(".finding.high")).to_contain_text("low-rank-embedding")
    assert page.url == f"{visit.home}/audit"


def test_the_gallery_finds_and_sorts(visit: Visit) -> None:
    page = visit.go("/gallery")
    page.get_by_label("Show only rows with").fill("protein")
    sync_api.expect(page.get_by_role("status")).not_to_contain_text("169 of 169")
    page.get_by_role("link", name="width").click()
    sync_api.expect(page.locator("th[aria-sort=ascending]")).to_have_text("width")
    sync_api.expect(page).to_have_url(re.compile("find=protein.*sort=width"))
    widths = page.locator(".models tbody tr td:nth-child(4)").all_inner_texts()
    numbers = [int(width.replace(",", "")) for width in widths]
    assert numbers == sorted(numbers)
    assert len(numbers) > 3


def test_the_page_works_by_keyboard_alone(visit: Visit) -> None:
    page = visit.go(BYTES)
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the answer"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.locator(":focus").get_attribute("aria-label") == "Size, slider":
            break
    outline = page.locator(":focus").evaluate("element => getComputedStyle(element).outlineStyle")
    assert outline == "solid"
    before = visit.shape()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    sync_api.expect(page.locator("#shape")).not_to_have_text(before)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # the select: operations of the training
    sync_api.expect(page.locator("#of")).to_have_value("flops")


def test_the_pages_work_without_scripts(home: str, browser: "Browser") -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{home}/")
    page.get_by_label("Vocabulary", exact=True).fill("257")
    page.get_by_role("button", name="Plan").click()
    assert "A vocabulary of 257 is below the width" in page.locator("#why").inner_text()
    page.goto(f"{home}/audit")
    page.get_by_label("Paste a config.json").fill(ALBERT)
    page.get_by_role("button", name="Audit this config").click()
    assert "low-rank-embedding" in page.locator("#answer").inner_text()
    context.close()


def test_theory_is_drawn_when_it_is_asked_for(visit: Visit) -> None:
    page = visit.go_and_draw(BYTES)
    theory = page.locator("figure[data-chart=bounds]")
    assert theory.locator("svg").count() == 0
    assert not [url for url in visit.requests if "/bounds" in url]
    page.get_by_text("Theory: what depth can add").click()
    theory.locator("svg").first.wait_for(timeout=30_000)


@pytest.mark.parametrize("visit", [("desk", "dark"), ("phone", "dark")], indirect=True)
def test_in_the_dark_paper_is_dark_and_charts_are_light_on_it(visit: Visit) -> None:
    page = visit.go_and_draw(BYTES)
    look = "element => getComputedStyle(element)"
    paper = page.locator("body").evaluate(f"{look}.backgroundColor")
    assert max(map(int, re.findall(r"\d+", paper))) < 60
    drawing = page.locator(".chart svg").first
    assert "invert" in drawing.evaluate(f"{look}.filter")


@pytest.mark.parametrize("visit", LOOKS, indirect=True)
@pytest.mark.parametrize(
    "path",
    [
        BYTES,
        "/audit?name=ALBERT-xxlarge-v1",
        pytest.param("/gallery?find=albert", marks=pytest.mark.slow),
        pytest.param("/atlas?kind=proteins", marks=pytest.mark.slow),
    ],
)
def test_no_page_has_a_serious_fault_of_accessibility_or_is_wider_than_its_window(
    visit: Visit, path: str
) -> None:
    check_page(visit.go_and_draw(path))


@pytest.mark.parametrize("visit", LOOKS, indirect=True)
def test_the_page_of_an_advice_has_no_such_fault_and_keeps_its_labels(
    visit: Visit, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    runs = [
        LadderRun(size=size, depth=depth, seed=0, params=size, bits=2 + abs(depth - 4) / 50)
        for size in (250_000, 500_000)
        for depth in (2, 4, 8)
    ]
    words = str(tmp_path / "small.txt")
    Path(words).write_text("which shape fits? " * 2000)
    source = Source(words=words, kind="", vocab=None, heldout=None, field=None)
    data = prepared_source(source, tmp_path / "data", lambda *_: None)
    advice = decided(source, PlanOptions(params=10**6), data, "text", Measured(runs=tuple(runs)))
    save_page(advice_document(advice, command="archfit advise"), file)
    page = visit.page
    page.goto(file.as_uri())
    page.locator(".chart svg").nth(2).wait_for()
    check_page(page)
    sizes = page.locator(".chart svg text").evaluate_all(
        "texts => texts.map(text => text.getBoundingClientRect().height)"
    )
    assert min(size for size in sizes if size) > 8  # pixels: drawings are not shrunk
    visit.requests.clear()  # of the file itself


def test_the_gallery_of_a_report_shows_its_last_column(visit: Visit, tmp_path: Path) -> None:
    file = tmp_path / "gallery.html"
    models = [audit_model(model) for model in zoo_models()]
    save_page(gallery_document(models, "archfit"), file)
    visit.page.goto(file.as_uri())
    box = visit.page.locator("table.sortable th", has_text="findings").bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= WINDOWS["desk"][0]
    visit.requests.clear()


def check_page(page: "Page") -> None:
    """That axe finds nothing serious, and that nothing is wider than the window."""
    page.evaluate(AXE)  # by the debugger, which no policy of the page binds
    found = page.evaluate("() => axe.run()")
    faults = [
        f"{fault['id']}: {fault['nodes'][0]['html'][:200]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert faults == []
    assert len(found["passes"]) > 20
    wide, window = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window
