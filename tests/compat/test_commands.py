"""The command ``tfqueue run``: what it refuses before anything is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfqueue.cli import main


def test_it_needs_a_program(capsys) -> None:
    for arguments in ([], ["--"], ["-m"]):
        assert main(["run", *arguments]) == 2
        assert "tfqueue run needs a program" in capsys.readouterr().err


def test_an_engine_must_be_known(capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "--engine", "magic", "x.py"])
    assert end.value.code == 2
    assert "invalid choice: 'magic'" in capsys.readouterr().err


def test_what_cannot_be_run_is_refused_before_tensorflow_is_switched(tmp_path: Path, capsys) -> None:
    import tensorflow as tf

    (tmp_path / "fine.py").write_text("raise SystemExit('executed')\n")
    (tmp_path / "modern.py").write_text("import tensorflow as tf\nwith tf.GradientTape() as tape:\n    pass\n")
    (tmp_path / "file").write_text("")
    for arguments, words in (
        ([str(tmp_path / "none.py")], "there is no script"),
        ([str(tmp_path)], "is a folder without a __main__.py"),
        (["-m", "no.such.module"], "no module 'no.such.module' can be run"),
        (["--steps", "0", str(tmp_path / "fine.py")], "steps is a number of session.run calls from 1; got 0"),
        (["--report", str(tmp_path / "file" / "x"), str(tmp_path / "fine.py")], "no report can be written to"),
        ([str(tmp_path / "modern.py")], "is written for TensorFlow 2 (line 2: tf.GradientTape)"),
    ):
        assert main(["run", *arguments]) == 2
        captured = capsys.readouterr()
        assert words in captured.err
        assert "executed" not in captured.err
    assert tf.executing_eagerly()
