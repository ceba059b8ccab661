"""The command line: it parses, calls, prints, and gives the exit code."""

from __future__ import annotations

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
