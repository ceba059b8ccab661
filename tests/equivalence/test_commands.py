"""``tfqueue check`` and ``tfqueue golden``: what they print and return."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from tfqueue.equivalence.commands import add_parser
from tfqueue.errors import InvalidArgument, InvalidStream

SIDES = """
import numpy as np

def modern(shift=0):
    return [{"x": np.arange(i, i + 4) + shift * (i == 8)} for i in range(0, 40, 4)]

def wrong():
    return modern(1)

def random():
    return []
"""


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sides.py").write_text(SIDES)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "sides.py"


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    arguments = parser.parse_args(words)
    return arguments.run(arguments)


def test_record_and_check(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("golden", f"{sides}:modern", "old.golden", "--dataset") == 0
    assert capsys.readouterr().out == "old.golden: 40 records in 10 batches (x)\n"
    assert run("check", "old.golden", f"{sides}:modern") == 0
    assert capsys.readouterr().out.startswith("equivalent: 40 records in 10 batches")
    assert run("check", "old.golden", f"{sides}:wrong", "--json", "report.json") == 1
    assert "record 8 (batch 2, row 0)" in capsys.readouterr().out
    report = json.loads(Path("report.json").read_text())
    assert (report["verdict"], report["schema_version"]) == ("different", 1)
    assert run("check", "old.golden", f"{sides}:wrong", "--max-records", "8") == 0


def test_a_build_function_is_the_reference(
    sides: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides.with_name("legacy_side.py").write_text(
        "import numpy as np, tensorflow as tf\n"
        "def legacy():\n"
        "    numbers = tf.range(40, dtype=tf.int64)\n"
        "    queue = tf.compat.v1.train.input_producer(numbers, num_epochs=1, shuffle=False)\n"
        "    return {'x': tf.compat.v1.train.batch([queue.dequeue()], 4)}\n"
    )
    pytest.importorskip("tensorflow")
    assert run("check", "legacy_side:legacy", f"{sides}:modern") == 0
    assert run("check", "legacy_side:legacy", "legacy_side:legacy", "--queue") == 0
    with pytest.raises(InvalidStream, match="TF1 graph code"):
        run("check", "legacy_side:legacy", "legacy_side:legacy")


def test_what_cannot_be_done(sides: Path) -> None:
    with pytest.raises(InvalidArgument, match="no function 'none'"):
        run("check", f"{sides}:none", f"{sides}:modern")
    with pytest.raises(InvalidStream, match="cannot read the golden"):
        run("check", "missing.golden", f"{sides}:modern")
    with pytest.raises(InvalidStream, match="no batch"):
        run("golden", f"{sides}:random", "x.golden", "--dataset")


def test_html(sides: Path) -> None:
    assert run("golden", f"{sides}:modern", "old.golden", "--dataset") == 0
    assert run("check", "old.golden", f"{sides}:wrong", "--html", "report.html") == 1
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Different</h1>" in page
    assert f"tfqueue check old.golden {sides}:wrong" in page
    with pytest.raises(InvalidArgument, match="does not exist; create it first"):
        run("check", "missing.golden", f"{sides}:modern", "--html", "no/report.html")
