"""Files appear whole or not at all, in the shards asked for, with the records in order."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfqueue import records
from tfqueue.errors import InvalidArgument, RecordError


def numbers(paths: Any) -> list[int]:
    return [int(features["n"][0]) for features in records.read(paths)]


def write_numbers(path: Path, count: int, **options: Any) -> list[str]:
    with records.RecordWriter(path, **options) as writer:
        for number in range(count):
            writer.write({"n": number})
    return writer.paths


def test_nothing_appears_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with records.RecordWriter(path) as writer:
        writer.write({"n": 1})
        writer.flush()
        assert not path.exists()
        assert [name[0] for name in os.listdir(tmp_path)] == ["."]
    assert os.listdir(tmp_path) == ["a.tfrecord"]
    assert writer.paths == [str(path)]
    assert numbers(path) == [1]


@pytest.mark.parametrize("options", [{}, {"shards": 3}, {"records_per_shard": 1}, {"bytes_per_shard": 10}])
def test_an_exception_leaves_nothing(tmp_path: Path, options: dict[str, Any]) -> None:
    def interrupted() -> None:
        with records.RecordWriter(tmp_path / "a", **options) as writer:
            writer.write({"n": 1})
            writer.write({"n": 2})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("stage", ["open", "flushed", "committing"])
def test_a_killed_writer_leaves_nothing_that_looks_complete(tmp_path: Path, stage: str) -> None:
    program = """
        import os, signal, sys
        from tfqueue.records import RecordWriter, atomic
        def die(*_): os.kill(os.getpid(), signal.SIGKILL)
        writer = RecordWriter(sys.argv[1])
        for number in range(1000): writer.write({"n": number})
        if sys.argv[2] == "open": die()
        writer.flush()
        if sys.argv[2] == "flushed": die()
        atomic._rename_to_new = die
        writer.close()
    """
    path = tmp_path / "a.tfrecord"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(path), stage], check=False)
    assert done.returncode == -9
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".a.tfrecord.")
    assert left.endswith(".tmp")
    with pytest.raises(RecordError, match="no file matches"):
        records.read(tmp_path / "*")

    write_numbers(path, 3)  # the next writer clears up
    assert os.listdir(tmp_path) == ["a.tfrecord"]
    assert numbers(path) == [0, 1, 2]


def test_the_temporary_of_a_living_writer_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with records.RecordWriter(path, overwrite=True) as slow:
        slow.write({"n": 7})
        write_numbers(path, 2)
        assert numbers(path) == [0, 1]
    assert numbers(path) == [7]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    slow = records.RecordWriter(path)
    slow.write({"n": 7})
    write_numbers(path, 2)
    with pytest.raises(RecordError, match="exists already; pass overwrite=True"):
        slow.close()
    assert numbers(path) == [0, 1]
    assert os.listdir(tmp_path) == ["a.tfrecord"]


def test_a_faster_writer_keeps_its_file_and_its_manifest(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    slow = records.RecordWriter(path)
    write_numbers(path, 2, manifest=True)
    with pytest.raises(RecordError, match="exists already"):
        slow.close()
    assert (tmp_path / "a.manifest.json").exists()
    assert records.verify(path).ok


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"shards": 4}, [3, 3, 2, 2]),
        ({"shards": 4, "expected_records": 10}, [3, 3, 2, 2]),
        ({"shards": 12}, [1] * 10 + [0, 0]),
        ({"shards": 12, "expected_records": 10}, [1] * 10 + [0, 0]),
        ({"records_per_shard": 4}, [4, 4, 2]),
        ({"records_per_shard": 5}, [5, 5]),
        ({"bytes_per_shard": 60}, [2, 2, 2, 2, 2]),
        ({"bytes_per_shard": 1}, [1] * 10),
    ],
)
def test_shards_are_exact(tmp_path: Path, options: dict[str, Any], sizes: list[int], compression: str) -> None:
    paths = write_numbers(tmp_path / "train.tfrecord", 10, compression=compression, **options)
    count = len(sizes)
    assert [os.path.basename(path) for path in paths] == [
        f"train-{shard:05d}-of-{count:05d}.tfrecord" for shard in range(count)
    ]
    assert sorted(os.listdir(tmp_path)) == [*map(os.path.basename, paths), "train.manifest.json"]
    assert [len(numbers(path)) for path in paths] == sizes
    assert numbers(paths) == list(range(10))
    assert numbers(tmp_path / "train-*") == list(range(10))


def test_more_shards_than_stay_open(tmp_path: Path) -> None:
    paths = write_numbers(tmp_path / "a", 600, records_per_shard=2)
    assert len(paths) == 300
    assert numbers(paths) == list(range(600))


def test_old_shards_of_another_number_are_replaced(tmp_path: Path) -> None:
    write_numbers(tmp_path / "train.tfrecord", 10, shards=5)
    other = tmp_path / "train-other-00000-of-00001.tfrecord"
    other.write_bytes(b"")
    with pytest.raises(RecordError, match=r"5 shards .* exist already, such as .*train-00000-of-00005"):
        records.RecordWriter(tmp_path / "train.tfrecord", shards=2)
    write_numbers(tmp_path / "train.tfrecord", 4, shards=2, overwrite=True)
    assert numbers(tmp_path / "train-0*") == [0, 1, 2, 3]
    assert other.exists()


@pytest.mark.parametrize("options", [{"shards": 3}, {"records_per_shard": 2}, {"shards": 3, "expected_records": 6}])
def test_old_and_new_shards_are_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    write_numbers(tmp_path / "train", 6, **options)
    seen = []

    def stop(source: str, target: str) -> None:
        seen.append(sorted(name for name in os.listdir(tmp_path) if name[0] != "."))
        raise KeyboardInterrupt

    monkeypatch.setattr("tfqueue.records.atomic.os.replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_numbers(tmp_path / "train", 6, overwrite=True, **options)
    assert seen == [[]]  # all new ones are complete by now, and all old ones gone
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("given", [9, 11])
def test_a_wrong_number_of_records_is_refused(tmp_path: Path, given: int) -> None:
    for options in ({}, {"shards": 3}):
        with pytest.raises(RecordError, match="expected"):
            write_numbers(tmp_path / "a", given, expected_records=10, **options)
        assert os.listdir(tmp_path) == []


def test_bad_arguments(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(InvalidArgument, match="shards and records_per_shard are given together"):
        records.RecordWriter(path, shards=2, records_per_shard=3)
    with pytest.raises(InvalidArgument, match="shards is 0; expected a positive int"):
        records.RecordWriter(path, shards=0)
    with pytest.raises(InvalidArgument, match="compression is 'LZ4'; expected 'GZIP'"):
        records.RecordWriter(path, compression="LZ4")
    with pytest.raises(InvalidArgument, match="layout is 'raw'; expected 'bytes' or 'list'"):
        records.RecordWriter(path, layout="raw")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="a path is a str or a Path, not int"):
        records.RecordWriter(3)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_bad_targets(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"the folder '.*missing' does not exist; create it first"):
        records.RecordWriter(tmp_path / "missing" / "a")
    with pytest.raises(RecordError, match="is a folder"):
        records.RecordWriter(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RecordError, match=r"the folder '.*file' is no folder"):
        records.RecordWriter(tmp_path / "file" / "a")
    with pytest.raises(RecordError, match="exists already; pass overwrite=True"):
        records.RecordWriter(tmp_path / "file")
    with pytest.raises(RecordError, match="no regular file"):
        records.RecordWriter("/dev/null", overwrite=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(RecordError, match="no permission to write in"):
            records.RecordWriter(tmp_path / "a")
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tfqueue.records.atomic.os.write", full)
    with pytest.raises(
        RecordError,
        match=r"a.tfrecord' cannot be written: No space left on "
        "device",
    ) as caught:
        write_numbers(tmp_path / "a.tfrecord", 10)
    assert isinstance(caught.value.__cause__, OSError)
    assert os.listdir(tmp_path) == []


def test_a_symbolic_link_is_kept_and_its_file_replaced(tmp_path: Path) -> None:
    write_numbers(tmp_path / "a", 1)
    (tmp_path / "link").symlink_to("a")
    write_numbers(tmp_path / "link", 3, overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert numbers(tmp_path / "a") == [0, 1, 2]


def test_a_forgotten_close_warns_and_leaves_nothing(tmp_path: Path) -> None:
    writer = records.RecordWriter(tmp_path / "a")
    writer.write({"n": 1})
    with pytest.warns(ResourceWarning, match="was never closed: nothing was written"):
        writer.__del__()
    assert os.listdir(tmp_path) == []


def test_after_close_nothing_is_taken(tmp_path: Path) -> None:
    writer = records.RecordWriter(tmp_path / "a")
    writer.close()
    writer.close()
    with pytest.raises(RecordError, match="is closed"):
        writer.write({"n": 1})
    assert numbers(tmp_path / "a") == []


def test_a_value_that_cannot_be_stored_does_not_end_the_file(tmp_path: Path) -> None:
    with records.RecordWriter(tmp_path / "a") as writer:
        writer.write({"n": 0})
        with pytest.raises(RecordError, match="feature 'n' of record 1: a value of type dict") as caught:
            writer.write({"n": {}})
        assert (caught.value.feature, caught.value.record) == ("n", 1)
        writer.write({"n": 1})
    assert numbers(tmp_path / "a") == [0, 1]


def test_serialized_records_of_every_size(tmp_path: Path) -> None:
    import tensorflow as tf

    sizes = [0, 1, 7, 2**20 - 1, 2**20, 2**20 + 1, 3, 5 * 2**20]
    payloads = [np.random.default_rng(size).bytes(size) for size in sizes]
    for compression in ("", "GZIP", "ZLIB"):
        path = str(tmp_path / f"a{compression}")
        with records.RecordWriter(path, compression=compression) as writer:
            for payload in payloads:
                writer.write_serialized(bytearray(payload))  # type: ignore[arg-type]
        dataset = tf.data.TFRecordDataset(path, compression_type=compression)
        assert [record.numpy() for record in dataset] == payloads
    with (
        pytest.raises(RecordError, match="record 0 is str; expected bytes"),
        records.RecordWriter(tmp_path / "b") as writer,
    ):
        writer.write_serialized("text")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["имя.tfrecord", "数据 файл", "a,b*[1].tfrecord", "é" * 100, ".tfrecord"])
def test_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_numbers(path, 2)
    assert numbers(path) == [0, 1]
    assert numbers(write_numbers(path, 3, shards=2)) == [0, 1, 2]
    assert len(os.listdir(tmp_path)) == 4  # and a manifest
