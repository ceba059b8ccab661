"""The page in a real browser: controls, keyboard, hostile text, accessibility, phone, print, scripts off."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import axe_core_python
import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from tests.views.html import reports
from tfqueue import views
from tfqueue.views.html import write_report

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    figures = {"How the records are mixed": views.plot_mixing(np.arange(50)[::-1].copy())}
    write_report(reports.different(), folder / "different.html", figures=figures)
    write_report(reports.equivalent(), folder / "equivalent.html")
    write_report(reports.hostile(), folder / "hostile.html")
    return folder


def look_as(browser, width, height):
    """A window of this size, on a screen: whatever the test before has left."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )


@pytest.fixture
def page(browser, pages):
    """Open a page in a window of desktop size, with an empty console."""

    def open_page(name, width=1280, height=900):
        look_as(browser, width, height)
        browser.get_log("browser")
        browser.get((pages / f"{name}.html").as_uri())
        return browser

    return open_page


def shown(browser):
    """The numbers of the records that are to be seen, in their order."""
    titles = [a.find_element(By.TAG_NAME, "h3").text for a in browser.find_elements(By.CSS_SELECTOR, "article")]
    return [int(re.search(r"Record (\d+)", title)[1]) for title in titles if title]


def visible_pictures(browser):
    return [f.get_attribute("class") for f in browser.find_elements(By.TAG_NAME, "figure") if f.is_displayed()]


def press(browser, *keys):
    ActionChains(browser).send_keys(*keys).perform()


@pytest.mark.parametrize("name", ["different", "equivalent", "hostile"])
def test_opens_without_a_word_in_the_console(page, name):
    browser = page(name)
    assert browser.get_log("browser") == []


def test_all_pictures_are_loaded(page):
    browser = page("different")
    broken = browser.execute_script("return Array.from(document.images).filter(i => !i.naturalWidth).length")
    assert broken == 0
    assert len(visible_pictures(browser)) == 66


def test_filter(page):
    browser = page("different")
    assert len(shown(browser)) == 22
    field = browser.find_element(By.ID, "filter")
    field.send_keys("TILE 01")
    assert shown(browser) == list(range(10, 20))
    assert browser.find_element(By.ID, "count").text == "10 of 22 shown"
    field.clear()
    field.send_keys("nothing has this")
    assert shown(browser) == []


def test_kind_and_sort(page):
    browser = page("different")
    Select(browser.find_element(By.ID, "sort")).select_by_value("size")
    assert shown(browser)[0] == 3
    assert shown(browser)[-1] == 35
    Select(browser.find_element(By.ID, "sort")).select_by_value("number")
    assert shown(browser) == sorted(shown(browser))
    Select(browser.find_element(By.ID, "kind")).select_by_value("missing")
    assert shown(browser) == []


def test_views_by_button_by_key_and_by_click(page):
    browser = page("different")
    browser.find_element(By.CSS_SELECTOR, "input[value=candidate]").click()
    assert set(visible_pictures(browser)) == {"candidate"}
    browser.find_element(By.TAG_NAME, "h1").click()
    for key, seen in (("r", {"reference"}), ("d", {"difference"}), ("s", {"reference", "candidate", "difference"})):
        press(browser, key)
        assert set(visible_pictures(browser)) == seen
    browser.find_element(By.CSS_SELECTOR, "figure.reference img").click()
    assert set(visible_pictures(browser)) == {"reference"}
    for expected in ("candidate", "difference", "reference"):
        next(i for i in browser.find_elements(By.CSS_SELECTOR, "figure img") if i.is_displayed()).click()
        assert set(visible_pictures(browser)) == {expected}
        assert browser.find_element(By.CSS_SELECTOR, "input[name=view]:checked").get_attribute("value") == expected


def test_records_by_key(page):
    browser = page("different")

    def focused():
        return browser.execute_script("return document.activeElement.id")

    for key, expected in (("j", 1), ("j", 2), ("j", 3), ("k", 2)):
        press(browser, key)
        assert focused() == f"record-{expected}"
    press(browser, "/")
    assert focused() == "filter"
    press(browser, "j")
    assert browser.find_element(By.ID, "filter").get_attribute("value") == "j"
    assert focused() == "filter"


def test_everything_is_reached_with_the_tabulator(page):
    browser = page("different")
    reached = []
    for _ in range(8):
        press(browser, "\ue004")
        reached.append(browser.execute_script("return document.activeElement.id || document.activeElement.tagName"))
    assert reached[0] == "A"
    assert {"filter", "kind", "sort"} <= set(reached)


def test_hostile_text_is_text(page):
    browser = page("hostile")
    assert browser.execute_script("return window.taken") is None
    assert browser.title.startswith("Different: ")
    assert [h.text for h in browser.find_elements(By.TAG_NAME, "h1")] == ["✗ Different"]
    text = browser.find_element(By.TAG_NAME, "main").text
    for expected in (reports.HOSTILE[0], reports.HOSTILE[1], reports.HOSTILE[3], "&lt;b&gt;", r"\u202egnp.exe"):
        assert expected in text
    browser.find_element(By.ID, "filter").send_keys("<script>")
    assert len(shown(browser)) == len(reports.HOSTILE)


def test_no_script_but_its_own_runs(page):
    browser = page("equivalent")
    put = "const s = document.createElement('script'); s.textContent = 'window.taken = 1'; document.body.append(s)"
    browser.execute_script(put)
    assert browser.execute_script("return window.taken") is None
    assert any("Content Security Policy" in line["message"] for line in browser.get_log("browser"))


def test_nothing_is_asked_of_the_network(page):
    browser = page("different")
    names = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in names if not name.startswith("data:")] == []


@pytest.mark.parametrize("name", ["different", "equivalent", "hostile"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_accessible(page, name, scheme, width):
    browser = page(name, width)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.execute_script(AXE)
    result = browser.execute_async_script(
        "const done = arguments[0]; axe.run().then(done, e => done({error: String(e)}))"
    )
    assert "error" not in result
    assert len(result["passes"]) > 20
    faults = [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in result["violations"]]
    assert faults == []


def test_the_accessibility_check_can_fail(page):
    browser = page("equivalent")
    browser.execute_script("document.querySelector('h1').style.color = '#f4e0dc'")
    browser.execute_script(AXE)
    result = browser.execute_async_script("axe.run().then(arguments[0])")
    assert "color-contrast" in [violation["id"] for violation in result["violations"]]


def test_dark_is_dark(page):
    browser = page("equivalent")
    colours = {}
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        colours[scheme] = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert colours == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}


@pytest.mark.parametrize("name", ["different", "hostile"])
def test_fits_a_phone(page, name):
    browser = page(name, 360, 740)
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= 360
    size = browser.execute_script(
        "const r = document.querySelector('#filter').getBoundingClientRect(); return [r.width, r.height]"
    )
    assert size[0] > 100
    assert size[1] >= 32


@pytest.mark.parametrize("name", ["different", "hostile"])
def test_prints(page, name):
    browser = page(name, 720)
    press(browser, "r")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not browser.find_element(By.CSS_SELECTOR, ".controls").is_displayed()
    # All three pictures are printed, whichever was chosen on the screen.
    figures = browser.find_elements(By.TAG_NAME, "figure")
    assert all(figure.is_displayed() for figure in figures)
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= 720
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
    assert pdf.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 1 <= pages <= 40


def test_works_with_scripts_off(browser_without_scripts, pages):
    browser = browser_without_scripts
    browser.get((pages / "different.html").as_uri())
    assert not browser.find_element(By.CSS_SELECTOR, ".controls").is_displayed()
    assert len(shown(browser)) == 22
    assert len(visible_pictures(browser)) == 66


def test_the_frame_of_a_notebook_works(browser, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8>{reports.different()._repr_html_()}", encoding="utf-8")
    look_as(browser, 1280, 900)
    browser.get(path.as_uri())
    browser.switch_to.frame(0)
    assert browser.find_element(By.CSS_SELECTOR, ".controls").is_displayed()
    choice = browser.find_element(By.CSS_SELECTOR, "input[value=candidate]")

    def chosen(_):
        # A sandboxed frame has a process of its own, which takes the click when it has time, or moves under it.
        choice.click()
        return set(visible_pictures(browser)) == {"candidate"}

    assert WebDriverWait(browser, 60).until(chosen)
    browser.switch_to.default_content()
