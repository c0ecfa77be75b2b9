"""The documentation as a site: it builds, needs no network, is searched when read as files, and by keyboard."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browsers import browser, resize, wait_for
from pages import HOUSE

__all__ = ["browser"]

ELSEWHERE = re.compile(r"^(?:https?:)?//")
LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
_ANSWERS = "return [...document.querySelectorAll('.md-search-result__item > a:first-child')].map((a) => a.href)"
_CUT = "return [...document.querySelectorAll('article table')].map((table) => table.scrollWidth)"
_CUT += ".filter((width) => width > document.querySelector('article').clientWidth)"
_WIDER = "return [...document.querySelectorAll('pre > code')].filter((code) => code.scrollWidth > code.clientWidth)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(built, cwd=HOUSE, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_loads_nothing_from_elsewhere(site: Path):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text())
        assert [place for place in loads.places if ELSEWHERE.match(place)] == [], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", sheet.read_text()), sheet


@pytest.mark.parametrize("page", ["index.html", "options/selector.html"])
@pytest.mark.parametrize("word", ["shapley", "selection", "bulyan", "aggregator=krum"])
def test_a_search_in_files_finds_pages_before_studies(browser: Any, site: Path, page: str, word: str):
    resize(browser, 1280)
    browser.get("about:blank")
    browser.get((site / page).as_uri())
    browser.find_element("css selector", ".md-search__input").send_keys(word)
    answers = wait_for(lambda: browser.execute_script(_ANSWERS))
    names = [answer.removeprefix(site.as_uri()).lstrip("/") for answer in answers]
    studies = [name.startswith(("studies/", "replays/")) for name in names]
    assert names
    assert not studies[0]
    assert studies == sorted(studies), names


@pytest.mark.parametrize("width", [390, 1280])
def test_long_lines_of_code_are_scrolled_by_keys(browser: Any, site: Path, width: int):
    resize(browser, width)
    browser.get((site / "options" / "selector.html").as_uri())
    assert wait_for(lambda: browser.find_elements("css selector", "nav.md-code__nav[role=none]"))
    wider = browser.execute_script(_WIDER)
    assert wider or width > 600
    assert {code.get_property("tabIndex") for code in wider} <= {0}
    assert browser.find_elements("css selector", "nav.md-code__nav:not([role])") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_print_is_light_and_no_table_is_cut(browser: Any, site: Path, scheme: str):
    resize(browser, 700)  # an A4 sheet between its margins
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    try:
        browser.get((site / "replays" / "index.html").as_uri())
        assert browser.execute_script(_CUT) == []
        ground = "return getComputedStyle(document.querySelector('pre > code')).backgroundColor"
        assert browser.execute_script(ground) == "rgb(245, 245, 245)"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_a_study_links_to_the_documentation(site: Path):
    assert '<a href="../compare.html#published-tables">one rule</a>' in (site / "replays" / "index.html").read_text()


class Loads(HTMLParser):
    """Collects what a page loads without being asked."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.places += [value for name, value in attrs if value and name == LOADS.get(tag)]
