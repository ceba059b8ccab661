"""The pytest plugin, run on small test files of its own."""

from __future__ import annotations

import json

import pytest
import tensorflow  # noqa: F401 - pytester forgets what the inner run imported, and numpy cannot be loaded twice

pytest_plugins = ["pytester"]

SAME = """
import numpy as np

def stream(label=0):
    return [{"x": np.arange(i, i + 4), "label": np.full(4, label)} for i in range(0, 20, 4)]

def test_equal(equivalence):
    assert equivalence(stream(), stream()).equivalent
"""
DIFFERENT = (
    SAME
    + """
def test_different(equivalence):
    equivalence(stream(), stream(1))
"""
)
GOLDEN = (
    SAME
    + """
def test_golden(golden):
    golden(stream(int(__import__("os").environ.get("LABEL", "0"))))
"""
)


def run(pytester: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_streams=source)
    return pytester.runpytest_inprocess("-p", "tfqueue.pytest_plugin", "-p", "no:cacheprovider", *options)


@pytest.fixture(autouse=True)
def _plugin_once(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    # Where the package is installed its entry point loads the plugin, too; loading it by name would be a second time.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_equal_streams_pass(pytester: pytest.Pytester) -> None:
    run(pytester, SAME).assert_outcomes(passed=1)


def test_different_streams_fail_with_the_first_lines_and_leave_the_report(pytester: pytest.Pytester) -> None:
    result = run(pytester, DIFFERENT, "--equivalence-dir=reports")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*different in records, values*", "*label is 0 in the reference, 1 in the candidate*"])
    (report,) = (pytester.path / "reports").glob("*.json")
    assert json.loads(report.read_text())["equivalent"] is False
    assert report.with_suffix(".html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_goldens(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(pytester, GOLDEN)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*no golden goldens/test_streams/test_golden.golden; run pytest --update-goldens*"])
    run(pytester, GOLDEN, "--update-goldens").assert_outcomes(passed=2)
    run(pytester, GOLDEN).assert_outcomes(passed=2)
    monkeypatch.setenv("LABEL", "3")
    result = run(pytester, GOLDEN)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*label*differ*golden*"])
