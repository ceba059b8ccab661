"""A headless Chromium, driven through selenium.

Where there is none (Debian: chromium, chromium-driver) its tests are skipped; with TFQUEUE_BROWSER=required, as in
continuous integration, they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service


def start(*, scripts: bool = True) -> Chrome:
    binary = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not binary or not driver:
        missing = f"no {'chromedriver' if binary else 'Chromium'} found; apt-get install chromium chromium-driver"
        if os.environ.get("TFQUEUE_BROWSER") == "required":
            pytest.fail(missing)
        pytest.skip(missing)
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
