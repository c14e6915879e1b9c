"""The documentation site in a headless Chromium, where one is installed and `make docs` has built the site."""

from __future__ import annotations

import functools
import re
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SITE = Path(__file__).parent.parent / "docs" / "_build" / "html"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
PHONE, DESK = 390, 1280
PAGES = [
    "index", "start/first_gradient", "start/which_derivative", "start/coming_from", "tutorials/fitting", "coverage",
    "reference/generated/ftrans.hessian", "reference/nn_layers", "structure", "benchmarks",
]  # fmt: skip
# What people search for, and what is to be among the first three results.
SEARCHES = {
    "hessian": "reference/generated/ftrans.hessian",
    "nan": "tutorials/nan",
    "jacobian sparse": "reference/generated/ftrans.sparse_jacobian",
    "gpu": "how_to/gpu",
    "save a model": "how_to/save_model",
    "train": "training",
    "custom gradient": "custom_derivatives",
    "hessian vector": "how_to/large_hessian",
    "per sample gradient": "how_to/per_sample",
    "scipy optimize minimize gradient": "how_to/scipy_solver",
    "has no attribute backward": "define_by_run",
    "ode parameters": "tutorials/network",
    "save checkpoint": "how_to/save_model",
}
# Whether what is drawn in a picture stands out: the share of its points that have a contrast of 4.5 with the paper,
# which is its most frequent colour.
STANDS_OUT = """
    const [data, done] = arguments;
    const picture = new Image();
    picture.onload = () => {
      const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
      canvas.drawImage(picture, 0, 0);
      const points = canvas.getImageData(0, 0, picture.width, picture.height).data;
      const linear = (value) => (value / 255 <= 0.04 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
      const counts = new Map();
      for (let i = 0; i < points.length; i += 4) {
        const colour = (points[i] << 16) | (points[i + 1] << 8) | points[i + 2];
        counts.set(colour, (counts.get(colour) ?? 0) + 1);
      }
      const luminance = (colour) =>
        0.2126 * linear(colour >> 16) + 0.7152 * linear((colour >> 8) & 255) + 0.0722 * linear(colour & 255);
      const colours = [...counts].map(([colour, count]) => [luminance(colour), count]);
      const paper = colours.reduce((most, next) => (next[1] > most[1] ? next : most))[0];
      const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      const seen = colours.filter(([light]) => contrast(light, paper) >= 4.5);
      done(seen.reduce((sum, [, count]) => sum + count, 0) / (points.length / 4));
    };
    picture.src = "data:image/png;base64," + data;
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: make docs")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("Chromium and chromedriver are not installed (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.implicitly_wait(10)
    yield driver
    driver.quit()


def open_page(browser: Any, address: str, page: str, width: int) -> None:
    """Show a page at a width, as a phone or a desktop would."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(f"{address}/{page}")


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_and_report_no_error(browser: Any, address: str, page: str, width: int) -> None:
    open_page(browser, address, f"{page}.html", width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("page", PAGES)
def test_tables_can_be_read_on_a_phone(browser: Any, address: str, page: str) -> None:
    open_page(browser, address, f"{page}.html", PHONE)
    hidden = browser.execute_script("""
        const few = [...document.querySelectorAll("article table:not(:has(td img))")].filter(
          (table) => table.querySelectorAll("thead th").length <= 6);
        return few.filter((table) => table.scrollWidth > table.parentElement.clientWidth + 1)
          .map((table) => table.textContent.slice(0, 60));
    """)
    assert hidden == []


@pytest.mark.parametrize("page", PAGES)
def test_pictures_have_a_text(browser: Any, address: str, page: str) -> None:
    open_page(browser, address, f"{page}.html", DESK)
    texts = browser.execute_script("return [...document.querySelectorAll('article img')].map((image) => image.alt)")
    assert all(" " in text for text in texts), texts


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["start/which_derivative", "benchmarks", "structure", "tutorials/gpt"])
def test_pictures_can_be_seen_in_both_modes(browser: Any, address: str, page: str, theme: str) -> None:
    open_page(browser, address, f"{page}.html", DESK)
    # The switch of the site, and not the setting of the system, decides.
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    pictures = browser.find_elements("css selector", "article img, article .ftrans")
    assert pictures
    for picture in pictures:
        share = browser.execute_async_script(STANDS_OUT, picture.screenshot_as_base64)
        assert share > 0.005, picture.get_attribute("src")


@pytest.mark.parametrize("words", SEARCHES)
def test_search_finds_what_one_wants(browser: Any, address: str, words: str) -> None:
    open_page(browser, address, f"search.html?q={words.replace(' ', '+')}", DESK)
    browser.find_element("css selector", "#search-results li:nth-child(3) a")
    results = browser.find_elements("css selector", "#search-results li > a")[:3]
    assert any(SEARCHES[words] in result.get_attribute("href") for result in results), words


def test_navigation_opens_on_a_phone(browser: Any, address: str) -> None:
    open_page(browser, address, "start/index.html", PHONE)
    browser.find_element("css selector", "button.primary-toggle").click()
    links = browser.find_elements("css selector", "#pst-primary-sidebar-modal a, #pst-primary-sidebar a")
    shown = [link for link in links if link.is_displayed() and "Which derivative" in link.text]
    shown[0].click()
    assert "which_derivative" in browser.current_url


def test_a_link_of_the_header_opens_a_page(browser: Any, address: str) -> None:
    open_page(browser, address, "index.html", DESK)
    browser.find_element("link text", "Tutorials").click()
    assert browser.find_element("css selector", "h1").text.startswith("Tutorials")


def test_tables_are_filtered(browser: Any, address: str) -> None:
    open_page(browser, address, "coverage.html", DESK)
    browser.find_element("id", "table-filter").send_keys("cumsum")
    shown = browser.execute_script("return document.querySelectorAll('tbody tr:not([hidden])').length")
    assert 1 <= shown < 20


def test_names_in_lists_are_filtered_as_those_in_tables(browser: Any, address: str) -> None:
    open_page(browser, address, "torch.html", DESK)
    browser.find_element("id", "table-filter").send_keys("conv2d")
    assert "Conv2d" in [code.text for code in browser.find_elements("css selector", ".table-names code")]
    browser.find_element("id", "table-filter").send_keys("no such name")
    assert not [p for p in browser.find_elements("css selector", ".table-names") if p.is_displayed()]


def test_code_can_be_copied(browser: Any, address: str) -> None:
    open_page(browser, address, "start/first_gradient.html", DESK)
    assert browser.find_elements("css selector", "button.copybtn")


def test_nothing_is_loaded_from_elsewhere() -> None:
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: make docs")
    loads = re.compile(
        r"<(?:script|img|iframe)[^>]*\ssrc=\"(?:https?:)?//|<link[^>]*stylesheet[^>]*href=\"(?:https?:)?//"
    )
    for page in SITE.rglob("*.html"):
        assert not loads.search(page.read_text()), page
