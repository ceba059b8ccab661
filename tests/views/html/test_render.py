"""The page as text: what it holds, and what it must never hold."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest

from tests.views import pictures
from tests.views.html import reports
from tfqueue import errors, views
from tfqueue.views.html import render_report, write_report

ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "header",
        "h1",
        "h2",
        "h3",
        "span",
        "p",
        "main",
        "section",
    ),
    *("div", "bdi", "dl", "dt", "dd", "code", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "br", "form"),
    *("label", "input", "select", "option", "fieldset", "legend", "kbd", "article", "figure", "img", "figcaption"),
    *("script", "section"),
}


class Elements(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def named(self, name):
        return [attributes for tag, attributes in self.found if tag == name]


def shown_pictures(page: str, role: str) -> list[np.ndarray]:
    """The pictures of one role, decoded."""
    uris = re.findall(rf'<figure class="{role}">\s*<img src="data:image/[a-z]+;base64,([^"]+)"', page)
    images = [cv2.imdecode(np.frombuffer(base64.b64decode(uri), np.uint8), cv2.IMREAD_COLOR) for uri in uris]
    return [cv2.cvtColor(image, cv2.COLOR_BGR2RGB) for image in images]


def test_pictures_are_those_of_the_records():
    page = render_report(reports.different())
    tiles = pictures.tiles(40)
    mine, other, between = (shown_pictures(page, role) for role in ("reference", "candidate", "difference"))
    assert len(mine) == len(other) == len(between) == 22
    np.testing.assert_array_equal(mine[0], tiles[3])
    np.testing.assert_array_equal(other[0], tiles[3][..., ::-1])
    np.testing.assert_array_equal(mine[1], tiles[10])
    expected = np.zeros((32, 32), bool)
    expected[5:9] = True
    # Values above 248 wrap around, so all of these rows differ by 7 or by 249.
    np.testing.assert_array_equal((between[1] != 255).any(axis=-1), expected)


def test_verdict_checks_differences_and_run_are_there():
    page = render_report(reports.different(), notes={"command": "tfqueue check a:b c:d"})
    assert '<h1><span class="icon" aria-hidden="true">✗</span> Different</h1>' in page
    assert "image[0, 0, 0] is 8 instead of 13." in page
    assert "tile 003.jpg" in page
    assert "tfqueue check a:b c:d" in page
    assert "waited 0.00 s" in page
    assert page.index("Different</h1>") < page.index("Checks</h2>") < page.index("Records that differ</h2>")


def test_equivalent_and_undecided():
    assert "Equivalent</h1>" in render_report(reports.equivalent())
    assert "all records agree" in render_report(reports.equivalent())


def test_figures_are_embedded_with_a_text_for_those_who_cannot_see_them():
    figure = views.plot_mixing(np.arange(30)[::-1].copy())
    page = render_report(reports.equivalent(), figures={"How it is mixed": figure})
    plot = next(image for image in Elements(page).named("img") if image.get("class") == "plot")
    assert plot["alt"].startswith("Stream mixed to 100% of a full shuffle. 30 deliveries of 30 records")
    assert "How it is mixed</h2>" in page


def test_every_text_of_a_hostile_report_stays_text():
    page = render_report(reports.hostile())
    elements = Elements(page)
    assert {tag for tag, _ in elements.found} <= ALLOWED
    assert len(elements.named("script")) == 1
    assert len(elements.named("h1")) == 1
    for tag, attributes in elements.found:
        assert not [name for name in attributes if name.startswith("on")], tag
        assert "style" not in attributes
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/")), tag
    page.encode("utf-8")
    for hidden in ("\u202e", "\x00", "\x1b", "\ud800"):
        assert hidden not in page
    assert r"\u202egnp.exe" in page
    assert "{{ 7 * 7 }}" in page
    assert "a" * 1001 not in page
    assert "(10,000 characters)" in page


def test_nothing_is_loaded_from_anywhere():
    page = render_report(reports.different())
    policy = next(m["content"] for m in Elements(page).named("meta") if m.get("http-equiv"))
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    assert "http:" not in page
    assert "https:" not in page
    assert not re.search(r"url\(|@import", page)


def test_every_picture_has_a_text_and_every_field_a_label():
    elements = Elements(render_report(reports.different()))
    assert all(image.get("alt") for image in elements.named("img"))
    labelled = {label.get("for") for label in elements.named("label")}
    fields = [f for f in elements.named("input") + elements.named("select") if f.get("type") != "radio"]
    assert {field["id"] for field in fields} <= labelled


def test_fifty_photographs_fit_in_five_megabytes():
    report = reports.photographs()
    assert len(report.differences) == 50
    page = render_report(report)
    assert len(page.encode("utf-8")) < 5_000_000
    mine = shown_pictures(page, "reference")
    assert len(mine) == 50
    assert np.abs(mine[7].astype(int) - report.differences[7].reference_record["image"]).mean() < 4


def test_only_so_many_are_shown_and_it_says_so():
    page = render_report(reports.different(), shown=5)
    assert page.count("<article") == 5
    assert "the report holds 17 more" in page


def test_images_of_other_shapes_missing_records_and_no_images():
    from tfqueue import compare

    tiles = pictures.tiles(4)
    page = render_report(compare([{"image": tiles}], [{"image": tiles[:3]}]))
    assert "Only the reference delivers this record." in page
    numbers = np.arange(4)
    plain = compare([{"x": np.arange(4.0), "id": numbers}], [{"x": np.array([0.0, 1.0, 9.0, 3.0]), "id": numbers}])
    page = render_report(plain)
    assert "<figure" not in page
    assert "x is 9 instead of 2." in page


def test_writes_whole_or_not_at_all(tmp_path):
    report = reports.equivalent()
    path = tmp_path / "report.html"
    write_report(report, path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(errors.InvalidArgument, match=r"ends in \.html"):
        write_report(report, tmp_path / "report.txt")
    with pytest.raises(errors.InvalidArgument, match="does not exist; create it first"):
        write_report(report, tmp_path / "no" / "report.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(errors.InvalidArgument, match="cannot be written"):
        write_report(report, tmp_path / "folder.html")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder.html", "report.html"]


def test_why_no_record_is_shown():
    from tfqueue import compare

    batches = [{"x": np.arange(8)}, {"x": np.arange(8, 12)}]
    sizes = compare(batches, [{"x": np.arange(12)}])
    assert sizes.verdict == "different"
    assert "None is shown: all records agree." in render_report(sizes)
    assert "None is shown: no records were compared." in render_report(compare([], []))
    assert "None is shown: none was asked for." in render_report(reports.different(), shown=0)
    record = tuple(replace(check, status="different") for check in sizes.checks if check.name == "records")
    assert "None is shown: the values of the records that differ" in render_report(replace(sizes, checks=record))


def test_what_is_no_report():
    with pytest.raises(errors.InvalidArgument, match="report is a dict; expected what"):
        render_report({})


def test_a_report_writes_draws_and_shows_itself(tmp_path):
    report = reports.different()
    report.to_html(tmp_path / "r.html", shown=3)
    assert (tmp_path / "r.html").read_text(encoding="utf-8").count("<article") == 3
    assert pictures.words(report.plot(tmp_path / "r.png"))[0] == "Different in records, values"
    assert (tmp_path / "r.png").exists()


def test_in_a_notebook_the_page_is_a_frame_of_its_own():
    shown = Elements(reports.hostile()._repr_html_()).found
    assert [tag for tag, _ in shown] == ["iframe"]
    attributes = shown[0][1]
    assert attributes["sandbox"] == "allow-scripts"
    page = attributes["srcdoc"]
    assert page is not None
    assert len(Elements(page).named("article")) == len(reports.HOSTILE)
