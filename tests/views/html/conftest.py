"""A headless Chromium, driven through selenium. It must be installed (Debian: chromium, chromium-driver)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service


def start(*, scripts: bool = True) -> Chrome:
    binary = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    assert binary, "no Chromium found: apt-get install chromium"
    assert driver, "no chromedriver found: apt-get install chromium-driver"
    options = ChromeOptions()
    options.binary_location = binary
    # The sandbox needs rights that containers and root do not have; only files of the tests are opened.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    return Chrome(options=options, service=Service(driver))


@pytest.fixture(scope="session")
def browser() -> Iterator[Chrome]:
    chrome = start()
    yield chrome
    chrome.quit()


@pytest.fixture
def browser_without_scripts() -> Iterator[Chrome]:
    chrome = start(scripts=False)
    yield chrome
    chrome.quit()
