"""The page in a real browser: what is seen, hovered, typed, sorted, copied, on a phone and in print."""

import base64
import json
import time
from pathlib import Path

import pytest

from fedexp import cli


@pytest.fixture
def page(make_run, tmp_path: Path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    timed = {"sim_s": [2.0, 4.0, 6.0, 8.0], "train_s": 0.3, "validation_accuracy": [0.1, 0.2, 0.3, 0.4]}
    for seed in (0, 1):
        make_run(f"a/{seed}", seed=seed, accuracy=(0.4, 0.6, 0.8, 0.9 - 0.1 * seed), metrics=timed)
    make_run(
        "a/2", accuracy=(0.1, 0.2, 0.3, 0.4), metrics=timed, choices={"selector": "a_rather_long_name_of_a_selector"}
    )
    assert cli.main(["report", "a"]) == 0
    return (tmp_path / "a" / "report.html").as_uri()


@pytest.fixture(autouse=True)
def _as_new(browser):
    """A desktop in daylight before, and no complaint of the browser and no word with the network after."""
    browser.get("about:blank")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    resize(browser, 1200)
    browser.get_log("performance")  # what came before is gone
    yield
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def resize(browser, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def find(browser, selector: str):
    return browser.find_element("css selector", selector)


def point(browser, selector: str, across: float, down: float) -> None:
    """Moves the pointer to a place in the view box of a drawing."""
    from selenium.webdriver.common.action_chains import ActionChains

    drawing = find(browser, f"{selector} .canvas > svg")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", drawing)
    box = browser.execute_script(
        "const b = arguments[0].getBoundingClientRect(), v = arguments[0].viewBox.baseVal;"
        "return [b.width, b.height, v.width, v.height]",
        drawing,
    )
    x, y = across / box[2] * box[0] - box[0] / 2, down / box[3] * box[1] - box[1] / 2
    ActionChains(browser).move_to_element_with_offset(drawing, round(x), round(y)).perform()


def told(browser, selector: str) -> list[str]:
    return find(browser, f"{selector} .tip").text.splitlines()


def test_hovering_tells_the_values_of_all_lines(browser, page):
    browser.get(page)
    assert len(browser.find_elements("css selector", "#learning figure.lines path.line[data-m]")) >= 4
    point(browser, "#learning figure", 464, 100)  # at the right end: round 4
    assert told(browser, "#learning figure") == [
        "Round 4", "random", "0.85 0.8 to 0.9", "a_rather_long_name_of_a_selector", "0.4",
    ]  # fmt: skip
    point(browser, "#learning figure", 66, 100)
    assert told(browser, "#learning figure")[:3] == ["Round 1", "random", "0.4 0.4 to 0.4"]


def test_the_arrow_keys_walk_along_the_rounds(browser, page):
    browser.get(page)
    drawing = find(browser, "#learning figure svg")
    drawing.send_keys("\ue014")  # right
    assert told(browser, "#learning figure")[0] == "Round 1"
    drawing.send_keys("\ue014")
    assert told(browser, "#learning figure")[0] == "Round 2"
    drawing.send_keys("\ue00c")  # escape
    assert not find(browser, "#learning figure .tip").is_displayed()


def test_a_cell_of_the_federation(browser, page):
    browser.get(page)
    box = json.loads(find(browser, "#federation script").get_attribute("textContent"))["box"]
    point(browser, "#federation figure", box[0] + 0.5 * box[2], box[1] + 1.5 * box[3])
    assert told(browser, "#federation figure") == ["examples 2", "Class dog, Client 0"]


def test_the_legend_hides_a_method_everywhere(browser, page):
    browser.get(page)
    key = find(browser, '#learning .legend [data-m="1"]')
    key.click()
    lines = browser.find_elements("css selector", 'path.line[data-m="1"]')
    assert len(lines) > 3
    assert not any(line.is_displayed() for line in lines)
    point(browser, "#learning figure", 464, 100)
    assert told(browser, "#learning figure") == ["Round 4", "random", "0.85 0.8 to 0.9"]
    key.click()
    assert browser.execute_script("return document.querySelectorAll('svg .gone').length") == 0


def test_a_heading_sorts_and_a_button_copies(browser, page):
    browser.get(page)
    column = "//section[@id='table-results']//th//button[text()='final accuracy']"
    first = "#table-results tbody tr:first-child th"
    browser.find_element("xpath", column).click()
    assert find(browser, first).text == "a_rather_long_name_of_a_selector"
    browser.find_element("xpath", column).click()
    assert find(browser, first).text == "random"
    assert find(browser, "#table-results textarea").get_attribute("value").startswith("| method ")
    copy = find(browser, "#table-results .copy")
    copy.click()
    deadline = time.monotonic() + 5
    while copy.text != "Copied" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert copy.text == "Copied"


def test_tabs_show_one_pane(browser, page):
    browser.get(page)
    tabs = browser.find_elements("css selector", "#learning [role=tab]")
    assert [tab.text for tab in tabs] == ["Test", "Validation"]
    tabs[1].click()
    panes = browser.find_elements("css selector", "#learning .pane")
    assert [pane.is_displayed() for pane in panes] == [False, True]


@pytest.mark.parametrize("width", [360, 768, 1200])
def test_nothing_is_wider_than_the_window(browser, page, width, tmp_path):
    resize(browser, width)
    browser.get(page)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    outside = "return [...document.querySelectorAll('figure, .scroll, .legend button')].filter("
    assert browser.execute_script(outside + "n => n.getBoundingClientRect().right > innerWidth + 1).length") == 0
    assert browser.save_screenshot(str(tmp_path / "seen.png"))


def test_dark_and_light(browser, page, tmp_path):
    browser.get(page)
    ground = "return getComputedStyle(document.body).backgroundColor"
    assert browser.execute_script(ground) == "rgb(255, 255, 255)"
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    assert browser.execute_script(ground) == "rgb(20, 23, 28)"
    assert browser.save_screenshot(str(tmp_path / "dark.png"))
    find(browser, "#theme").click()
    assert browser.execute_script(ground) == "rgb(255, 255, 255)"


def test_print_shows_everything_without_buttons(browser, page):
    browser.get(page)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert all(pane.is_displayed() for pane in browser.find_elements("css selector", ".pane"))
    assert not any(
        node.is_displayed() for node in browser.find_elements("css selector", ".copy, nav, #theme, [role=tab]")
    )
    resize(browser, 688)  # A4 less its margins
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 688
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert base64.b64decode(printed).startswith(b"%PDF")


def test_a_large_sweep_opens(browser, make_sweep, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = make_sweep(200, 100)
    assert cli.main(["report", str(folder)]) == 0
    begin = time.monotonic()
    browser.get((folder / "report.html").as_uri())
    assert time.monotonic() - begin < 15  # 3 s are meant; machines that test are busy
    point(browser, "#learning figure", 300, 100)
    said = told(browser, "#learning figure")
    assert said[0].startswith("Round ")
    assert said[-1] == "and 191 more"
    browser.execute_script("scrollTo(0, 0)")
    search = find(browser, ".chooser input")
    find(browser, ".chooser summary").click()
    search.send_keys("lr=0.2")
    find(browser, '[data-all="false"]').click()
    assert browser.execute_script("return document.querySelectorAll('[data-name=Test] path.gone').length") == 2
