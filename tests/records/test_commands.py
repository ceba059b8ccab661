"""The commands say what the functions say, and their exit codes are 0 done, 1 damaged, 2 could not be done."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.records.test_images import make_image
from tfqueue import records
from tfqueue.errors import DamagedRecord, RecordError, TFQueueError, TFQueueWarning
from tfqueue.records.commands import add_parser


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    options = parser.parse_args(["records", *map(str, arguments)])
    code = options.run(options)
    assert isinstance(code, int)
    return code


@pytest.fixture
def path(tmp_path: Path) -> Path:
    records.write_examples(tmp_path / "a.tfrecord", ({"n": number, "s": "é\x1b[0m"} for number in range(10)))
    return tmp_path / "a.tfrecord"


def test_the_definitions_need_nothing_heavy() -> None:
    program = (
        "import sys, argparse; from tfqueue.records.commands import add_parser; "
        "add_parser(argparse.ArgumentParser().add_subparsers()); "
        "print([name for name in ('numpy', 'cv2', 'tensorflow', 'rich') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"[]\n"


def test_write_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cat/1.jpg", "cat/2.jpg", "dog/1.jpg", "dog/2.jpg"):
        make_image(tmp_path / "in" / name)
    out = tmp_path / "out.tfrecord"
    assert run("write", out, tmp_path / "in", "--split", "train=0.5,test=0.5", "--stratified", "--size", "4x5") == 0
    train, test = (str(tmp_path / f"out-{part}.tfrecord") for part in ("train", "test"))
    assert capsys.readouterr().out == f"train: {train}\ntest: {test}\n"
    rows = list(records.read([train, test]))
    assert sorted(int(row["label"][0]) for row in rows) == [0, 0, 1, 1]
    assert {row["image"].shape for row in rows} == {(4, 5, 3)}
    assert run("write", out, tmp_path / "in", "--shards", 2, "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        str(tmp_path / f"out-0000{shard}-of-00002.tfrecord") for shard in (0, 1)
    ]
    (tmp_path / "in/cat/3.jpg").write_bytes(b"")
    with pytest.raises(TFQueueError, match=r"3.jpg' is empty"):
        run("write", tmp_path / "b", tmp_path / "in", "--unreadable", "raise")
    with pytest.warns(TFQueueWarning, match="3.jpg' is empty"):
        assert run("write", tmp_path / "b", tmp_path / "in") == 0


def test_write_arrays(tmp_path: Path) -> None:
    x = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "a.npz", x=x)
    assert (
        run("write", tmp_path / "a", tmp_path / "a.npz", "--layout", "list", "--narrow", "--compression", "gzip") == 0
    )
    assert [row["x"].tolist() for row in records.read(tmp_path / "a")] == x.tolist()
    with pytest.raises(RecordError, match="exists already"):
        run("write", tmp_path / "a", tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=np.array([{}], object))
    (tmp_path / "c.npz").write_text("no zip")
    for name in ("b.npz", "c.npz", "d.npz"):
        with pytest.raises(RecordError, match=f"{name}' is no .npz file that can be read"):
            run("write", tmp_path / "b", tmp_path / name)


def test_describe(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("describe", path) == 0
    out = capsys.readouterr().out
    assert out == f"{records.describe(path)}\n\n{records.describe(path).spec_source()}\n"
    assert run("describe", path, "--records", 2, "--json") == 0
    assert json.loads(capsys.readouterr().out)["records"] == 2
    records.write_examples(path, [{"x": 1}, {"x": "a"}], overwrite=True)
    assert run("describe", path) == 0
    assert "No spec parses these records" in capsys.readouterr().out


def test_head(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("head", path, "-n", 2) == 0
    out = capsys.readouterr().out
    assert out.count("record") == 4  # two lines, and the name of the file in each
    assert "int64 [1]: 1" in out
    assert "\x1b" not in out  # nothing that a terminal obeys
    assert run("head", path, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["features"]["n"]["values"] for row in rows] == [[0], [1], [2], [3], [4]]


def test_head_of_every_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row: dict[str, Any] = {
        "array": np.zeros((3, 4), np.float32),
        "scalar": np.int8(3),
        "date": np.array(["2020-01-01"], "M8[D]"),
        "texts": np.array(["a"], object),
        "binary": b"\x00\x01" * 20,
        "long": "x" * 1000,
        "ragged": [[1], [2, 3]],
        "odd": [float("nan"), float("inf")],
        "bad\nname": 1.5,
    }
    records.write_examples(tmp_path / "a", [row])
    assert run("head", tmp_path / "a") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(row)
    assert max(map(len, lines[1:])) < 120
    assert any("float32 [3, 4]: 0, 0, 0, 0, 0, 0, 0, 0, ..." in line for line in lines)
    assert any("2 rows: int64 [1]: 1, int64 [2]: 2, 3" in line for line in lines)
    assert any("40 bytes 00 01" in line for line in lines)
    assert run("head", tmp_path / "a", "--json") == 0
    features = json.loads(capsys.readouterr().out)[0]["features"]
    assert features["binary"]["values"] == [{"bytes": 40, "begins": "0001" * 8}]
    assert features["odd"]["values"] == ["nan", "inf"]
    assert features["date"]["values"] == ["2020-01-01"]


def test_count_and_index(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("count", path) == 0
    assert capsys.readouterr().out == "10\n"
    other = path.with_name("b.tfrecord")
    os.link(path, other)
    assert run("count", path.parent / "*.tfrecord") == 0
    assert capsys.readouterr().out == f"10 {path}\n10 {other}\n20 total\n"
    assert run("count", path, other, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"records": 20, "files": {str(path): 10, str(other): 10}}
    assert run("index", path) == 0
    assert path.with_name(".a.tfrecord.tfqindex").exists()
    assert "10 records of" in capsys.readouterr().out
    assert run("index", path, "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["records"] == 10


def test_an_index_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RecordError("no permission")

    monkeypatch.setattr("tfqueue.records.index.write_whole", refuse)
    with pytest.raises(RecordError, match=r"the index .*a.tfrecord.tfqindex' cannot be written"):
        run("index", path)


def test_verify_and_salvage(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", path, "--examples") == 0
    assert capsys.readouterr().out == "1 files, 10 whole records, 0 problems\n"
    data = bytearray(path.read_bytes())
    data[15] ^= 1
    path.write_bytes(data)
    assert run("verify", path) == 1
    assert f"{path}, record 0, byte 0: the payload does not match its checksum" in capsys.readouterr().out
    assert run("verify", path, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["problems"][0]["kind"]) == (False, "payload")
    target = path.with_name("b")
    assert run("salvage", path, target) == 1  # one is lost
    assert "9 whole and 0 repaired records" in capsys.readouterr().out
    assert run("salvage", target, path, "--overwrite", "--json") == 0
    assert json.loads(capsys.readouterr().out)["whole"] == 9
    with records.RecordWriter(path, overwrite=True) as writer:
        writer.write_serialized(b"no example")
    assert run("verify", path) == 0
    assert run("verify", path, "--examples") == 1
    assert "no tf.train.Example" in capsys.readouterr().out


def test_what_cannot_be_done(tmp_path: Path, path: Path) -> None:
    with pytest.raises(RecordError, match="does not exist") as caught:
        run("count", tmp_path / "missing")
    assert caught.value.exit_code == 2
    path.write_text("text")
    with pytest.raises(DamagedRecord, match="it is a text file") as damaged:
        run("head", path)
    assert damaged.value.exit_code == 1
    for arguments in (
        ("head", path, "-n", 0),
        ("write", "a", "b", "--size", "3"),
        ("write", "a", "b", "--split", "train=most"),
        ("write", "a", "b", "--shards", "x"),
    ):
        with pytest.raises(SystemExit, match="2"):
            run(*arguments)
