"""Reports as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tfqueue
from tests.equivalence.batches import changed, cut, records
from tfqueue.equivalence.jsonform import plain
from tfqueue.equivalence.text import WIDTH, show


@pytest.fixture(scope="module")
def report() -> tfqueue.Report:
    data = records()
    data["score"] = np.linspace(-1, 1, 40)
    other = changed(changed(data, "score", (4,), np.nan), "image", (9, 1, 2, 0), 255)
    return tfqueue.compare(cut(data), cut(other))


def test_json_has_the_whole_tree(report: tfqueue.Report, tmp_path: Path) -> None:
    text = report.to_json(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text() == text
    form = json.loads(text)
    assert (form["schema_version"], form["verdict"], form["equivalent"]) == (1, "different", False)
    assert {check["name"] for check in form["checks"]} >= {"structure", "dtype", "shape", "records", "order", "end"}
    assert form["options"]["order"] == "auto"
    first = form["differences"][0]
    assert first["reference"] == {"batch": 0, "row": 4, "record": 4}
    assert (first["feature"], first["candidate_value"]) == ("score", "NaN")
    assert first["candidate_record"]["image"]["shape"] == [5, 4, 3]
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]
    assert report.to_dict() == form


def test_text_puts_the_most_important_first_and_fits(report: tfqueue.Report) -> None:
    lines = str(report).splitlines()
    assert lines[0] == "different in records, values"
    assert lines[1].startswith("  record 4 (batch 0, row 4): score is ")
    assert max(len(line) for line in lines) <= WIDTH


def test_nothing_from_a_record_breaks_the_text() -> None:
    wild = b"\x1b[2J\n<script>\xff" + b"x" * 10_000
    one, two = ([np.array([value, b"b"], dtype=object)] for value in (b"a", wild))
    text = str(tfqueue.compare(one, two))
    assert "\x1b" not in text
    assert len(text) < 4000


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (float("inf"), "Infinity"),
        (np.float32("nan"), "NaN"),
        (b"\xff\x00", {"bytes": 2, "base64": "/wA="}),
        (b"plain", "plain"),
        (1 + 2j, [1.0, 2.0]),
        (np.arange(3), {"dtype": "int64", "shape": [3], "values": [0, 1, 2]}),
        (np.zeros((9, 9)), {"dtype": "float64", "shape": [9, 9], "min": 0.0, "max": 0.0, "mean": 0.0}),
        (np.array(7), 7),
    ],
)
def test_values_in_json(value: object, form: object) -> None:
    assert plain(value) == form


def test_values_in_text() -> None:
    assert show(np.arange(3)) == "[0, 1, 2]"
    assert show(np.zeros((9, 9))) == "float64[9, 9]"
    assert show(b"\xff" * 100).endswith("(100 bytes)")
    assert show(0.1234567891234) == "0.123456789"
