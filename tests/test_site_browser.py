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


def test_search_finds_hessian(browser: Any, address: str) -> None:
    open_page(browser, address, "search.html?q=hessian", DESK)
    results = browser.find_elements("css selector", "#search-results li a")
    assert any("ftrans.hessian" in result.get_attribute("href") for result in results)


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
