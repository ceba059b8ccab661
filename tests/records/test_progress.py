"""The bar shows on a terminal, and nothing shows elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path
from threading import Thread

import pytest

from tfqueue import records
from tfqueue.records.progress import bar


def test_silent_where_standard_error_is_no_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    paths = records.write_arrays(tmp_path / "a", {"x": [1, 2, 3]})
    records.verify(paths)
    out, error = capfd.readouterr()
    assert (out, error) == ("", "")


def test_shown_when_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    records.write_arrays(tmp_path / "a", {"x": list(range(300))}, progress=True, shards=3, workers=3)
    out, error = capfd.readouterr()
    assert out == ""
    assert "writing a" in error
    assert "300/300" in error


def test_shown_on_a_terminal(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        from tfqueue import records
        records.write_arrays(sys.argv[1], {"x": list(range(50))})
    """)
    leader, follower = pty.openpty()
    shown: list[bytes] = []

    def collect() -> None:
        try:
            while data := os.read(leader, 4096):
                shown.append(data)
        except OSError:  # the other end is closed
            pass

    collector = Thread(target=collect)
    collector.start()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-c", program, str(tmp_path / "a")]
    subprocess.run(command, stderr=follower, env=environment, check=True)
    os.close(follower)
    collector.join()
    os.close(leader)
    text = b"".join(shown).decode()
    assert "writing a" in text
    assert "50/50" in text


def test_an_error_inside_closes_the_bar(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with bar("working", None, progress=True) as advance:
            advance(7)
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fail()
    with bar("working again", 2, progress=True) as advance:  # rich allows one bar at a time
        advance(2)
    assert "working again" in capfd.readouterr().err
