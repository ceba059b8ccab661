"""A pytest plugin: fixtures that compare streams of batches, with each other and with goldens."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_LINES = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    group = parser.getgroup("tfqueue", "equivalence of input pipelines")
    group.addoption(
        "--equivalence-dir",
        metavar="DIR",
        help="folder in which a failed comparison leaves its report, as JSON and as an HTML page with pictures",
    )
    group.addoption(
        "--update-goldens",
        action="store_true",
        help="record the goldens anew instead of comparing with them",
    )


@pytest.fixture
def equivalence(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """``equivalence(reference, candidate, **options)``: fails the test unless both deliver the same.

    The options are those of `tfqueue.compare`, whose report is returned.
    """

    def check(reference: Any, candidate: Any, **options: Any) -> Any:
        from tfqueue.equivalence import compare

        report = compare(reference, candidate, **options)
        if not report.equivalent:
            _fail(request, report)
        return report

    return check


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """``golden(stream, name=None, **options)``: fails the test unless the stream is what was recorded.

    The golden is ``goldens/<module>/<test>.golden`` beside the test's file, or
    ``goldens/<module>/<name>.golden``; ``pytest --update-goldens`` records it. A function is taken for a
    build function.
    """

    def check(stream: Any, name: str | None = None, **options: Any) -> Any:
        from tfqueue.equivalence import compare, record_golden
        from tfqueue.equivalence.streams import Returned

        test = request.node.path
        path = test.parent / "goldens" / test.stem / f"{_file_name(name or request.node.name)}.golden"
        if request.config.getoption("--update-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            return record_golden(stream, path, max_records=options.get("max_records"))
        if not path.exists():
            shown = os.path.relpath(path)
            pytest.fail(f"there is no golden {shown}; run pytest --update-goldens to record it", pytrace=False)
        candidate = stream if not callable(stream) or isinstance(stream, Returned) else _as_pipeline(stream)
        report = compare(path, candidate, **options)
        if not report.equivalent:
            _fail(request, report)
        return report

    return check


def _as_pipeline(stream: Any) -> Any:
    from tfqueue.pipeline import QueuePipeline

    return stream if isinstance(stream, QueuePipeline) or hasattr(stream, "__iter__") else QueuePipeline(stream)


def _fail(request: pytest.FixtureRequest, report: Any) -> None:
    lines = str(report).splitlines()
    words = lines[:_LINES] + (["  ..."] if len(lines) > _LINES else [])
    folder = request.config.getoption("--equivalence-dir")
    if folder:
        target = Path(folder) / f"{_file_name(request.node.nodeid)}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        report.to_json(target)
        report.to_html(target.with_suffix(".html"))
        words.append(f"  the whole report: {target} and .html")
    pytest.fail("\n".join(words), pytrace=False)


def _file_name(text: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^A-Za-z0-9_.=-]+", "-", text).strip("-.")[:150] or "test"
