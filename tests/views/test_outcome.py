"""plot_report: the verdict, every check, and the images of what differs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.views import pictures
from tests.views.html import reports
from tfqueue import compare, errors, views


def test_verdict_checks_and_pictures():
    report = reports.different()
    figure = views.plot_report(report, n=2)
    words = pictures.words(figure)
    assert words[0] == "Different in records, values"
    for result in report.checks:
        assert result.name in words
    assert words.count("✗ different") == 2
    assert "image of 2 records that differ" in words
    tile = pictures.tiles(40)[3]
    np.testing.assert_allclose(pictures.drawn_image(figure, 0, 32, 32), tile, atol=1)
    np.testing.assert_allclose(pictures.drawn_image(figure, 1, 32, 32), tile[..., ::-1], atol=1)


def test_equivalent_and_without_images():
    figure = views.plot_report(reports.equivalent())
    assert pictures.words(figure)[0] == "Equivalent"
    assert figure.axes == []
    figure = views.plot_report(compare([{"x": np.arange(3.0)}], [{"x": np.array([0.0, 1.0, 9.0])}]))
    assert pictures.words(figure)[0] == "Different in records, values"
    assert figure.axes == []


def test_a_record_that_only_one_side_has():
    tiles = pictures.tiles(4)
    figure = views.plot_report(compare([{"image": tiles}], [{"image": tiles[:3]}]))
    assert "only in the reference" in pictures.words(figure)


def test_writes_and_refuses(tmp_path):
    path = tmp_path / "report.png"
    views.plot_report(reports.equivalent(), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(errors.InvalidArgument, match="report is a dict"):
        views.plot_report({})


def test_a_notebook_shows_the_figures():
    figure = views.plot_report(reports.equivalent())
    assert figure._repr_png_().startswith(b"\x89PNG")
