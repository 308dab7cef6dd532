"""The report in a real browser: no errors, nothing asked of a network, and data that stays text."""

import os
import shutil
from pathlib import Path

import pytest
from report_material import BAD_ID, BAD_QUERY, BAD_TITLE, make_folder

from crumb_nb.report import write_report

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not CHROMIUM, reason="no chromium: install Debian's package, or set CHROMIUM to its path")]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    "The report of the birds, made once."
    home = tmp_path_factory.mktemp("report")
    before = os.environ.get("CRUMB_NB_CACHE")
    os.environ["CRUMB_NB_CACHE"] = str(home / "cache")
    try:
        yield write_report(make_folder(home))
    finally:
        os.environ.pop("CRUMB_NB_CACHE")
        if before is not None:
            os.environ["CRUMB_NB_CACHE"] = before


@pytest.fixture(scope="module")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture()
def opened(chromium, report):
    "A function that opens the report; afterwards: nothing was said on the console, nothing asked for, no injected code ran."
    pages = []

    def open_page(scheme: str = "light", width: int = 1280):
        page = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if not request.url.startswith(("file:", "data:")) else None)
        page.goto(report.resolve().as_uri())
        pages.append((page, said))
        return page

    yield open_page
    for page, said in pages:
        assert said == []
        assert page.evaluate("window.hit") is None
        page.context.close()


def column(page, n: int) -> list[str]:
    return page.locator("#a-birds_table table.data").first.locator(f"tbody tr:visible td:nth-child({n})").all_inner_texts()


def test_sorts_both_ways_and_back_with_gaps_last(opened):
    page = opened()
    button = page.locator("#a-birds_table table.data").first.locator("thead button", has_text="R@1")
    before = column(page, 4)
    button.click()
    falling = [float(v) for v in column(page, 4)]
    assert falling == sorted(falling, reverse=True) and button.locator("xpath=..").get_attribute("aria-sort") == "descending"
    button.focus()
    page.keyboard.press("Enter")  # the keyboard does what the mouse does
    assert [float(v) for v in column(page, 4)] == sorted(falling)
    button.click()
    assert column(page, 4) == before
    note = page.locator("#a-birds_table table.data").first.locator("thead button", has_text="note")
    note.click()
    assert column(page, 3)[-1] in ("", "–")


def test_filters_rows(opened):
    page = opened()
    page.locator("#a-birds_table input[type=search]").first.fill("ROW 3")
    assert column(page, 2) == ["row 3"]
    assert page.get_by_text("1 of 9 rows").is_visible()


def test_three_clicks_to_a_query(opened):
    page = opened()
    page.get_by_role("link", name="Why one system beats another").click()
    page.locator("#drill-order").select_option("1")
    first = page.locator("details.query").first
    first.locator("summary").first.click()
    assert first.locator(".side").count() == 2 and first.locator(".side mark").count() > 0
    assert "relevant" in first.locator(".gold").inner_text()
    assert page.locator("#board p.text").inner_text().startswith("R@1: A ")


def test_injected_texts_are_found_as_text(opened):
    page = opened()
    assert page.get_by_role("heading", name=BAD_TITLE).count() == 1
    page.locator("#drill-filter").fill("onerror")
    query = page.locator("details.query").first
    assert BAD_QUERY in query.inner_text()
    query.locator("summary").first.click()
    shown = query.inner_text()
    assert BAD_ID in shown and "<b onmouseover=window.hit='heading'>Birds</b> > Waders" in shown and "window.hit = 'text'" in shown
    assert page.locator("img").count() == 1 and page.locator("img").get_attribute("src").startswith("data:image/")


def test_both_themes_and_a_narrow_screen(opened, tmp_path):
    colours = set()
    for scheme in ("light", "dark"):
        page = opened(scheme)
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.screenshot(path=str(tmp_path / f"{scheme}.png"))
        page.locator("#theme").click()
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2  # the button leads from each theme to the other
    narrow = opened("dark", 360)
    narrow.locator("details.query").first.locator("summary").first.click()
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 360
    narrow.emulate_media(media="print")
    assert not narrow.locator("#drill").is_visible() and narrow.locator("#a-birds_table").is_visible()
