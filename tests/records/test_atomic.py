"""Files appear whole or not at all, also on file systems that can do less."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tfqueue.errors import RecordError
from tfqueue.records import atomic
from tfqueue.records.atomic import AtomicFile, remove_stale, write_whole


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(atomic.os, "link", refuse)
    target = AtomicFile(tmp_path / "a")
    target.write(b"one")
    target.commit()
    assert (tmp_path / "a").read_bytes() == b"one"
    slow = AtomicFile(tmp_path / "b")
    (tmp_path / "b").write_bytes(b"meanwhile")
    with pytest.raises(RecordError, match="exists already"):
        slow.commit()
    assert (tmp_path / "b").read_bytes() == b"meanwhile"
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_only_what_nobody_holds_is_stale(tmp_path: Path) -> None:
    living = AtomicFile(tmp_path / "a")
    dead = Path(f"{tmp_path}/.a.0123abcd.tmp")
    dead.write_bytes(b"half")
    other = tmp_path / ".ab.0123abcd.tmp"
    other.write_bytes(b"of another file")
    longer = tmp_path / ".a.tfrecord.0123abcd.tmp"
    longer.write_bytes(b"of a file whose name begins like this one")
    assert remove_stale(str(tmp_path / "a")) == [str(dead)]
    assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(living.temporary), other.name, longer.name])
    living.discard()
    living.discard()
    assert sorted(os.listdir(tmp_path)) == [longer.name, other.name]


def test_a_failing_disk_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(atomic.os, "fsync", fail)
    with pytest.raises(RecordError, match=r"a' cannot be written: Input/output error") as caught:
        write_whole(tmp_path / "a", b"content")
    assert isinstance(caught.value.__cause__, OSError)
    assert os.listdir(tmp_path) == []


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(atomic.os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    write_whole(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_the_mode_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", b"")
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
