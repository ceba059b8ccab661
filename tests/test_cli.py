"""The command line: it parses, calls, prints, and gives the exit code."""

from __future__ import annotations

import json

import pytest

import tfqueue
from tfqueue.cli import main


def test_without_a_command_it_says_how(capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 2
    assert "usage: tfqueue" in capsys.readouterr().err


def test_version(capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"tfqueue {tfqueue.__version__}\n"


def test_help_names_every_command_and_the_exit_codes(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert "demo" in out
    assert "exit codes: 0 done or equivalent" in out


def test_demo(tmp_path, capsys) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    assert capsys.readouterr().out.endswith("verdict: equivalent\n")


def test_what_could_not_be_done_goes_to_stderr_without_a_traceback(tmp_path, capsys) -> None:
    assert main(["demo", "--out", str(tmp_path / "no" / "such")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tfqueue: the demo cannot write to ")
    assert "--out" in captured.err


def test_different_is_exit_code_1(tmp_path, monkeypatch) -> None:
    from tfqueue import demo

    whole = demo.modern
    monkeypatch.setattr(demo, "modern", lambda paths, shuffle: whole(paths[:1], shuffle=shuffle))
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 1


PIPELINES = """
import numpy as np
import tensorflow as tf
import tfqueue
tf1 = tf.compat.v1
paths = tfqueue.records.write_arrays(
    "numbers.tfrecord", {"y": np.arange(20)}, layout="list", overwrite=True, progress=False
)
spec = {"y": tf.io.FixedLenFeature([], tf.int64)}

def legacy():
    names = tf1.train.string_input_producer(paths, num_epochs=1, shuffle=False)
    return tf1.train.batch(tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], spec), 5)

def modern(batch_size=5):
    return tf.data.TFRecordDataset(paths).batch(batch_size).map(lambda batch: tf.io.parse_example(batch, spec))

def other():
    return modern(4)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines_of_the_user.py").write_text(PIPELINES)
    return "pipelines_of_the_user.py"


def test_check_gives_the_verdict_as_exit_code_and_as_json(module, tmp_path, capsys) -> None:
    assert main(["check", f"{module}:legacy", f"{module}:modern", "--json", "report.json"]) == 0
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "equivalent"
    assert main(["check", f"{module}:legacy", f"{module}:other"]) == 1
    assert "batches: different" in capsys.readouterr().out
    assert main(["check", f"{module}:legacy", f"{module}:nothing"]) == 2
    assert "has no function 'nothing'" in capsys.readouterr().err


def test_an_error_in_the_code_that_is_run_is_not_called_different(module, tmp_path, capsys) -> None:
    (tmp_path / "broken_pipeline.py").write_text("def build():\n    raise ValueError('not today')\n")
    for command in ("show", "explain"):
        assert main([command, "broken_pipeline.py:build"]) == 2
        assert "not today" in capsys.readouterr().err


def test_explain_shows_the_stages(module, capsys) -> None:
    assert main(["explain", f"{module}:legacy"]) == 0
    assert "FIFO queue batch/fifo_queue: capacity 32" in capsys.readouterr().out


def test_explain_says_what_makes_the_tf_data_twin_fast(module, capsys) -> None:
    assert main(["explain", "--tfdata", f"{module}:legacy"]) == 0
    assert "tf.data: can be lowered; speed passes that apply\n  - prefetch: the batches" in capsys.readouterr().out


def test_records_are_counted_described_and_verified(module, tmp_path, capsys) -> None:
    assert main(["check", f"{module}:legacy", f"{module}:modern"]) == 0
    capsys.readouterr()
    assert main(["records", "count", "numbers.tfrecord"]) == 0
    assert "20" in capsys.readouterr().out
    assert main(["records", "verify", "numbers.tfrecord"]) == 0
    data = bytearray((tmp_path / "numbers.tfrecord").read_bytes())
    data[40] ^= 1
    (tmp_path / "numbers.tfrecord").write_bytes(data)
    assert main(["records", "verify", "numbers.tfrecord"]) == 1


@pytest.mark.filterwarnings("default")
def test_a_warning_is_a_line_for_a_person(module, tmp_path, capsys) -> None:
    text = PIPELINES.replace("spec), 5)", "spec), 5, num_threads=2)")
    (tmp_path / "pipelines_with_threads.py").write_text(text)
    assert main(["check", "pipelines_with_threads.py:legacy", "pipelines_with_threads.py:modern"]) == 0
    assert "tfqueue: warning: nothing is shuffled, but 2 threads fill queue" in capsys.readouterr().err
