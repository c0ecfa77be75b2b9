"""A browser without a window, for the tests of pages."""

import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Any]:
    """Chromium under Selenium, with a log of everything it asks the network for."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, which the extra dev brings")
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs a browser: the programs chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (*_ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = Service(executable_path=driver)
    opened = webdriver.Chrome(options=options, service=service)
    yield opened
    opened.quit()


def resize(browser: Any, width: int) -> None:
    """A window so many pixels wide; a narrow one is a phone's, without a mouse."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def wait_for(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """Returns what the condition says once it is true, or what it says at last."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return answer
