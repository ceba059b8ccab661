"""Shards made side by side or again after a kill are the same as those made in one go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfqueue import records
from tfqueue.errors import DamagedRecord, InvalidArgument, RecordError, TFQueueWarning
from tfqueue.records.manifest import find_manifest, load_manifest
from tfqueue.records.planned import WriteOptions, write_planned

X = np.arange(60.0).reshape(20, 3)
Y = np.arange(20)


def contents(paths: list[str]) -> list[bytes]:
    return [Path(path).read_bytes() for path in paths]


def write(path: Path, **options: Any) -> list[str]:
    return records.write_arrays(path, {"x": X, "y": Y}, **options)


@pytest.mark.parametrize("options", [{"shards": 6}, {"records_per_shard": 3}, {"shards": 6, "compression": "ZLIB"}])
def test_threads_and_processes_give_the_same_files(tmp_path: Path, options: dict[str, Any]) -> None:
    one = write(tmp_path / "one", **options)
    threads = write(tmp_path / "threads", workers=4, **options)
    assert contents(one) == contents(threads)
    if "compression" not in options:  # a process takes a while to start
        assert contents(one) == contents(write(tmp_path / "processes", workers=2, processes=True, **options))
    assert [int(row["y"]) for row in records.read(threads)] == Y.tolist()


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("processes", [False, True])
def test_an_error_names_the_record_in_the_whole_and_leaves_nothing(
    tmp_path: Path, workers: int, processes: bool
) -> None:
    mixed = np.array(["a"] * 20, object)
    mixed[13] = {}
    with pytest.raises(RecordError, match="feature 'x' of record 13"):
        records.write_arrays(tmp_path / "a", {"x": mixed}, shards=4, workers=workers, processes=processes)
    assert os.listdir(tmp_path) == []


KILLED = """
    import os, signal, sys
    import numpy as np
    from tfqueue import records

    written = []
    write = records.RecordWriter.write
    def write_or_die(self, features):
        if len(written) == 9:  # one record of the third shard is written
            self.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        written.append(1)
        write(self, features)
    records.RecordWriter.write = write_or_die
    records.write_arrays(sys.argv[1], {"x": np.arange(60.0).reshape(20, 3), "y": np.arange(20)}, shards=5, resume=True)
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(path)], check=False)
    assert done.returncode == -9
    half, *left = sorted(os.listdir(tmp_path))
    assert half.startswith(".a-00002-of-00005.tfrecord.")
    assert left == [".a.tfrecord.plan.json", "a-00000-of-00005.tfrecord", "a-00001-of-00005.tfrecord"]
    return path


def test_a_killed_writer_goes_on(killed: Path, tmp_path: Path) -> None:
    first = tmp_path / "a-00000-of-00005.tfrecord"
    before = first.stat().st_mtime_ns, first.stat().st_ino
    with pytest.raises(RecordError, match=r"was begun and not finished: .* or resume=True to go on"):
        write(killed, shards=5)
    paths = write(killed, shards=5, resume=True)
    assert (first.stat().st_mtime_ns, first.stat().st_ino) == before  # not written again
    assert contents(paths) == contents(write(tmp_path / "whole.tfrecord", shards=5))
    assert sorted(name for name in os.listdir(tmp_path) if name[0] == ".") == []
    assert records.verify(paths).ok


def test_a_damaged_shard_is_not_taken_for_finished(killed: Path, tmp_path: Path) -> None:
    os.truncate(tmp_path / "a-00001-of-00005.tfrecord", 100)
    paths = write(killed, shards=5, resume=True)
    assert contents(paths) == contents(write(tmp_path / "whole.tfrecord", shards=5))


def test_other_work_is_not_resumed(killed: Path) -> None:
    for arrays, options in (
        ({"x": X, "y": Y}, {"shards": 4}),
        ({"x": X + 1, "y": Y}, {"shards": 5}),
        ({"x": X, "y": Y}, {"shards": 5, "compression": "GZIP"}),
        ({"x": X.astype(np.float32), "y": Y}, {"shards": 5}),
    ):
        with pytest.raises(RecordError, match="cannot be resumed: what was begun there is not what is to be written"):
            records.write_arrays(killed, arrays, resume=True, **options)
    assert len(write(killed, shards=5, overwrite=True)) == 5


def test_resume_without_anything_to_resume(tmp_path: Path) -> None:
    paths = write(tmp_path / "a", shards=2, resume=True)
    with pytest.raises(RecordError, match=r"cannot be resumed: files such as .* exist, but no plan"):
        write(tmp_path / "a", shards=2, resume=True)
    assert records.verify(paths).ok


def test_resume_keeps_what_is_finished_after_an_error(tmp_path: Path) -> None:
    @dataclass
    class Source:
        start: int
        stop: int

        def __len__(self) -> int:
            return self.stop - self.start

        def part(self, start: int, stop: int) -> Source:
            return Source(start, stop)

        def fingerprint(self) -> str:
            return "same"

        def rows(self) -> Iterator[Mapping[str, Any]]:
            for number in range(self.start, self.stop):
                yield {"n": number if number != bad else {}}

    bad = 5
    options = WriteOptions(shards=3, resume=True)
    with pytest.raises(RecordError, match="feature 'n' of record 5"):
        write_planned(tmp_path / "a", Source(0, 9), options, info={})
    assert sorted(os.listdir(tmp_path)) == [".a.plan.json", "a-00000-of-00003"]
    bad = -1
    paths = write_planned(tmp_path / "a", Source(0, 9), options, info={})
    assert [int(row["n"][0]) for row in records.read(paths)] == list(range(9))


def test_old_shards_go_before_the_first_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a", shards=4)
    write(tmp_path / "a", shards=4, overwrite=True)
    with pytest.raises(RecordError, match="exists already: there are 4 files"):
        write(tmp_path / "a", shards=4)

    def stop(*_: object) -> None:
        assert sorted(os.listdir(tmp_path)) == [".a.plan.json"]
        raise KeyboardInterrupt

    monkeypatch.setattr("tfqueue.records.planned._write_job", stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a", shards=4, overwrite=True)
    assert os.listdir(tmp_path) == []


def test_options_that_cannot_be(tmp_path: Path) -> None:
    for options, words in (
        ({"overwrite": True, "resume": True}, "overwrite and resume are given together"),
        ({"bytes_per_shard": 100, "resume": True}, "bytes_per_shard goes with neither resume nor workers"),
        ({"bytes_per_shard": 100, "workers": 2}, "bytes_per_shard goes with neither resume nor workers"),
        ({"workers": 0}, "workers is 0; expected a positive int"),
        ({"shards": 2, "records_per_shard": 2}, "shards and records_per_shard are given together"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            write(tmp_path / "a", **options)
    assert os.listdir(tmp_path) == []


def test_the_manifest_knows_the_set(tmp_path: Path) -> None:
    paths = write(tmp_path / "a.tfrecord", shards=3, compression="GZIP")
    manifest = load_manifest(tmp_path / "a.manifest.json")
    assert (manifest.records, manifest.compression) == (20, "GZIP")
    assert [entry.name for entry in manifest.files] == [os.path.basename(path) for path in paths]
    assert [entry.records for entry in manifest.files] == [7, 7, 6]
    assert [entry.size for entry in manifest.files] == [os.path.getsize(path) for path in paths]
    features = {feature["name"]: feature for feature in manifest.info["features"]}
    assert (features["x"]["dtype"], features["x"]["shape"]) == ("float64", [3])
    assert find_manifest(paths[2]) == manifest == records.RecordReader(paths).manifest
    assert find_manifest(tmp_path / "other.tfrecord") is None


def test_loss_at_a_record_edge_is_noticed_by_the_manifest(tmp_path: Path) -> None:
    paths = write(tmp_path / "a.tfrecord", shards=3)
    whole = contents(paths)
    for records_left in range(7):
        offset = records.RecordReader(paths[1], keep_index=False).locate(records_left)[2]
        Path(paths[1]).write_bytes(whole[1][:offset])
        (problem,) = records.verify(tmp_path / "a-*").problems
        assert (problem.file, problem.record, problem.offset) == (paths[1], records_left, offset)
        assert problem.kind == "missing-records"
        assert f"7 records, {records_left} are there" in problem.words
        # Nor does it go unnoticed where the records are read.
        found = []
        with pytest.raises(DamagedRecord, match=f"says 7 records, {records_left} are there") as caught:
            found.extend(records.read(paths))
        assert len(found) == 7 + records_left
        assert (caught.value.file, caught.value.record, caught.value.offset) == (paths[1], records_left, offset)
        for look in (records.count, lambda path: len(records.RecordReader(path, keep_index=False))):
            with pytest.raises(DamagedRecord, match=f"says 7 records, {records_left} are there"):
                look(paths[1])
        with pytest.warns(TFQueueWarning, match=f"says 7 records, {records_left} are there"):
            assert len(list(records.read(paths, damaged="skip"))) == 13 + records_left
        Path(paths[1]).write_bytes(whole[1])
    os.unlink(paths[2])
    (problem,) = records.verify(paths[:2]).problems
    assert (problem.file, problem.kind) == (paths[2], "missing-records")
    assert records.verify(paths[0]).ok  # alone it is not asked for the others


def test_other_bytes_are_noticed_by_the_manifest(tmp_path: Path) -> None:
    one = write(tmp_path / "a.tfrecord", manifest=True)
    assert records.verify(one).ok
    records.write_arrays(tmp_path / "b", {"x": X + 1, "y": Y})
    os.replace(tmp_path / "b", one[0])
    (problem,) = records.verify(one).problems
    assert problem.kind == "changed"
    # Written by tfqueue without a manifest, the old one goes.
    write(tmp_path / "a.tfrecord", overwrite=True, manifest=False)
    assert not (tmp_path / "a.manifest.json").exists()


def test_loss_at_a_record_edge_is_noticed_by_an_index_made_before(tmp_path: Path) -> None:
    (path,) = write(tmp_path / "a.tfrecord")
    reader = records.RecordReader(path)
    offset = reader.locate(11)[2]
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[:offset])
    (problem,) = records.verify(path).problems
    assert (problem.record, problem.offset, problem.kind) == (11, offset, "missing-records")
    # A new file in its place, written on purpose, is no loss.
    records.write_arrays(path, {"x": X[:5], "y": Y[:5]}, overwrite=True)
    assert records.verify(path).ok


def test_a_manifest_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.manifest.json"
    for content in ("{", "[]", "{}", json.dumps({"format": "x"}), json.dumps({"format": "tfqueue-manifest-1"})):
        path.write_text(content)
        with pytest.raises(RecordError, match=r"a.manifest.json'"):
            load_manifest(path)
    with pytest.raises(RecordError, match="cannot be read: No such file"):
        load_manifest(tmp_path / "b.manifest.json")
