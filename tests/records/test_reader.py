"""Records come back as dicts of numpy; what cannot be read is named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tfqueue import records
from tfqueue.errors import DamagedRecord, InvalidArgument, RecordError, TFQueueWarning


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with records.RecordWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(5):
            writer.write({"n": number})
    return tmp_path / "a.tfrecord"


def test_what_is_no_file_is_named(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        RecordError,
        match=r"b.tfrecord' does not exist \(nearest existing folder "
        ".*'a.tfrecord'",
    ):
        records.read(tmp_path / "b.tfrecord")
    with pytest.raises(RecordError, match=r"does not exist \(nearest existing folder .* has 1 entries"):
        records.read(tmp_path / "x" / "y" / "b.tfrecord")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        RecordError,
        match=r"no file matches 'b\*' \(working folder '.*', nearest existing "
        "folder '.'",
    ):
        records.read("b*")
    with pytest.raises(InvalidArgument, match="paths is an empty list"):
        records.read([])
    with pytest.raises(RecordError, match=r"is a folder with 1 files; name the files in it"):
        records.read(tmp_path)
    with pytest.raises(InvalidArgument, match="paths is 3; expected a path"):
        records.read(3)  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="cannot be read"):
        list(records.read([path, _dangling(tmp_path)]))


def _dangling(folder: Path) -> Path:
    (folder / "dangling").symlink_to("nowhere")
    return folder / "dangling"


def test_one_path_a_pattern_or_a_list(path: Path, tmp_path: Path) -> None:
    bracket = tmp_path / "b[1]*.tfrecord"
    os.link(path, bracket)
    assert len(list(records.read(path))) == 5
    assert len(list(records.read(str(bracket)))) == 5
    assert len(list(records.read(tmp_path / "*.tfrecord"))) == 10
    assert len(list(records.read([path, str(bracket), tmp_path / "?.tfrecord"]))) == 15


def test_missing_shards_are_warned_of(tmp_path: Path) -> None:
    paths = records.write_arrays(tmp_path / "a", {"x": np.zeros(6)}, shards=3)
    os.unlink(paths[1])
    with pytest.warns(TFQueueWarning, match="matches 2 of 3 shards of .*; missing: 1"):
        records.read(tmp_path / "a-*")
    assert len(list(records.read([paths[0], paths[2]]))) == 4


def test_damage_is_named_after_all_records_before_it(path: Path) -> None:
    data = bytearray(path.read_bytes())
    frame = len(data) // 5
    data[3 * frame + 14] ^= 1
    path.write_bytes(data)
    reader = records.read(path)
    assert [int(next(reader)["n"][0]) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(
        DamagedRecord, match=rf"a.tfrecord', record 3, byte {3 * frame}: the payload does not"
    ) as caught:
        next(reader)
    assert (caught.value.file, caught.value.record, caught.value.offset) == (str(path), 3, 3 * frame)
    assert caught.value.exit_code == 1


def test_a_record_that_is_no_example_is_named(tmp_path: Path) -> None:
    with records.RecordWriter(tmp_path / "a") as writer:
        writer.write({"n": 1})
        writer.write_serialized(b"just text")
    reader = records.read(tmp_path / "a")
    next(reader)
    with pytest.raises(RecordError, match=r"record 1, byte \d+: the record is no tf.train.Example"):
        next(reader)


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("<html>not found</html>")
    with pytest.raises(DamagedRecord, match="no TFRecord file; it is an HTML page"):
        next(records.read(tmp_path / "a"))
