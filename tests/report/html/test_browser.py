"""The page in a real browser: what is seen, hidden, typed, sorted, copied, on a phone and in print."""

import base64
import json
import time

import pytest
from browsers import resize, wait_for
from run_folders import writer

from fedexp import cli


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("page")
    make_run = writer(place)
    timed = {"sim_s": [2.0, 4.0, 6.0, 8.0], "train_s": 0.3, "validation_accuracy": [0.1, 0.2, 0.3, 0.4]}
    for seed in (0, 1):
        make_run(f"a/{seed}", seed=seed, accuracy=(0.4, 0.6, 0.8, 0.9 - 0.1 * seed), metrics=timed)
    make_run(
        "a/2", accuracy=(0.1, 0.2, 0.3, 0.4), metrics=timed, choices={"selector": "a_rather_long_name_of_a_selector"}
    )
    assert cli.main(["report", str(place / "a")]) == 0
    return (place / "a" / "report.html").as_uri()


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


def find(browser, selector: str):
    return browser.find_element("css selector", selector)


def test_the_legend_hides_a_method_everywhere(browser, page):
    browser.get(page)
    key = find(browser, '#learning .legend [data-m="1"]')
    key.click()
    drawn = browser.find_elements("css selector", '.canvas [data-m="1"]')
    assert len(drawn) > 3
    assert not any(one.is_displayed() for one in drawn)
    assert find(browser, '#learning .canvas [data-m="0"]').is_displayed()
    assert find(browser, '#rounds .legend [data-m="1"]').get_attribute("aria-pressed") == "false"
    key.click()
    assert browser.execute_script("return document.querySelectorAll('.gone').length") == 0


def test_pointing_at_a_name_leaves_its_method_alone(browser, page):
    from selenium.webdriver.common.action_chains import ActionChains

    browser.get(page)
    ActionChains(browser).move_to_element(find(browser, '#learning .legend [data-m="1"]')).perform()
    told = "return [...document.querySelectorAll('#learning .canvas g[data-m]')].map("
    told += "(one) => [one.dataset.m, getComputedStyle(one).opacity])"
    assert {tuple(one) for one in browser.execute_script(told)} == {("0", "0.2"), ("1", "1")}


def test_a_heading_sorts_and_a_button_copies(browser, page):
    browser.get(page)
    column = "//section[@id='results']//th//button[text()='final accuracy']"
    first = "#results tbody tr:first-child th"
    browser.find_element("xpath", column).click()
    assert find(browser, first).text == "a_rather_long_name_of_a_selector"
    browser.find_element("xpath", column).click()
    assert find(browser, first).text == "random"
    assert find(browser, "#results textarea").get_attribute("value").startswith("| method ")
    copy = find(browser, "#results .copy")
    copy.click()
    assert wait_for(lambda: copy.text == "Copied", 5)


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


def test_the_table_at_the_clients_and_the_runs_fit_1280_pixels(browser, tmp_path):
    metric = "balanced_accuracy"
    names = (f"test_{metric}", f"personal_{metric}", "personal_worst_decile", "personal_best_decile")
    measured = {"test_accuracy": ...} | {name: [0.1, 0.2, 0.3, 0.4] for name in names}
    for seed in (0, 1):
        folder = writer(tmp_path)(f"a/{seed}", seed=seed, metrics=measured)
        table = f"client,metric,global,personal\n0,{metric},0.5,0.7\n1,{metric},0.8,0.9\n"
        (folder / "client_scores.csv").write_text(table)
    assert cli.main(["report", str(tmp_path / "a")]) == 0
    resize(browser, 1280)
    browser.get((tmp_path / "a" / "report.html").as_uri())
    assert len(browser.find_elements("css selector", "#at_clients th[scope=col]")) == 8
    for table in browser.find_elements("css selector", "section > .table > .scroll"):
        shown, whole = (table.get_property(name) for name in ("clientWidth", "scrollWidth"))
        assert whole <= shown, table.get_attribute("aria-label")


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
    test, validation = browser.find_elements("css selector", "#learning .pane")
    assert validation.size["width"] < test.size["width"] / 2, "one drawing takes no row of its own"
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 688
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert base64.b64decode(printed).startswith(b"%PDF")


@pytest.mark.parametrize("count", [16, 24])
def test_a_setting_of_each_of_many_methods_is_printed_whole(browser, tmp_path, count):
    make_run = writer(tmp_path)
    for number in range(count):
        keys = {f"local.a_rather_long_key_{key}": number * key for key in range(1, count + 2)}
        choices = {"selector": f"selector_{number}", "aggregator": f"aggregator_{number}"}
        make_run(f"a/{number}", choices=choices, keys=keys)
    assert cli.main(["report", str(tmp_path / "a")]) == 0
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    resize(browser, 688)
    browser.get((tmp_path / "a" / "report.html").as_uri())
    assert len(browser.find_elements("css selector", "#differences th[scope=col]")) == 1 + count
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 688


def test_the_parts_of_the_page_are_all_seen_on_a_desktop(browser, page):
    resize(browser, 768)
    browser.get(page)
    links = browser.find_elements("css selector", "nav a")
    assert max(link.rect["x"] + link.rect["width"] for link in links) <= 768
    assert len({link.rect["y"] for link in links}) == 2


def test_a_drawing_and_long_notes_are_scrolled_by_keys_where_they_do_not_fit(browser, tmp_path):
    for number in range(30):
        writer(tmp_path)(f"a/{number}", seed=number, finished=False)
    assert cli.main(["report", str(tmp_path / "a")]) == 0
    resize(browser, 390)
    browser.get((tmp_path / "a" / "report.html").as_uri())
    focused = "return [...document.querySelectorAll(arguments[0])].map((frame) => frame.tabIndex)"
    assert wait_for(lambda: browser.execute_script(focused, ".doubts ul") == [0])
    curves = browser.execute_script(focused, "#learning .canvas")
    assert curves
    assert set(curves) == {-1}, "a phone shows a curve whole"
    assert 0 in browser.execute_script(focused, "#rounds .canvas") + browser.execute_script(
        focused, "#selections .canvas"
    )


def test_a_large_sweep_opens(browser, make_sweep, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = make_sweep(60, 40)
    assert cli.main(["report", str(folder)]) == 0
    begin = time.monotonic()
    browser.get((folder / "report.html").as_uri())
    assert time.monotonic() - begin < 15  # 3 s are meant; machines that test are busy
    search = find(browser, ".chooser input")
    find(browser, ".chooser summary").click()
    search.send_keys("lr=0.03")
    find(browser, '[data-all="false"]').click()
    assert browser.execute_script("return document.querySelectorAll('[data-name=Test] .gone').length") == 20
