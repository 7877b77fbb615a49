"""The page in a real browser: quiet, and alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from reports import hostile_references, session, tell_all

from gp_eval.report.build import build_report
from gp_eval.report.write import write_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """Headless Chromium, driven by playwright."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pip install 'gp-eval[browser]'"
    )
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    with playwright.sync_playwright() as driver:
        own = Path(driver.chromium.executable_path)
        if found is None and not own.exists():
            pytest.skip("no Chromium: apt install chromium, or playwright install")
        made = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    with session(folder / "run", n=0, references=hostile_references()) as made:
        tell_all(made, 12)
        made.ask(2)
        return write_report(build_report(made), folder / "report.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_no_complaint_no_request_no_script_and_no_sideways_scrolling(
    browser, page_file: Path, scheme: str, width: int
) -> None:
    said, asked = [], []
    page = browser.new_page(
        viewport={"width": width, "height": 800}, color_scheme=scheme
    )
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    page.wait_for_load_state("networkidle")
    # The favicon is data in the page: the only thing it may ask for.
    outside = [url for url in asked if url not in (page_file.as_uri(), "data:,")]
    assert (said, outside) == ([], [])
    assert page.evaluate("document.scripts.length") == 0
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(int(part) for part in colour[4:-1].split(",")) > 3 * 128
    assert light == (scheme == "light")
    page.close()


def test_the_curve_and_the_bars_have_a_size(browser, page_file: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(page_file.as_uri())
    for selector in (".curve", ".band", ".bar", ".range"):
        box = page.locator(selector).first.bounding_box()
        assert box is not None, selector
        assert box["width"] > 5, selector
    page.close()
