"""Arrays written record by record come back as they were."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tfqueue import records
from tfqueue.errors import InvalidArgument, RecordError


def test_layout_bytes_brings_back_dtype_and_shape(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.random((7, 3, 2)),
        "image": rng.integers(0, 256, (7, 4, 4, 3), dtype=np.uint8),
        "y": np.arange(7, dtype=np.int32),
        "name": np.array(["a", "bc", "", "d", "é", "f", "g"]),
        "empty": np.zeros((7, 0), np.float32),
        "strided": np.arange(14.0, dtype=np.float32).reshape(7, 2)[:, ::-1],
    }
    paths = records.write_arrays(tmp_path / "a.tfrecord", arrays)
    assert paths == [str(tmp_path / "a.tfrecord")]
    rows = list(records.read(paths))
    assert len(rows) == 7
    for name, array in arrays.items():
        for row, expected in zip(rows, array, strict=True):
            assert row[name].dtype == np.asarray(expected).dtype
            assert row[name].shape == np.asarray(expected).shape
            assert (row[name] == expected).all()
        assert rows[0].keys() == arrays.keys()


def test_layout_list_is_what_fixed_len_features_read(tmp_path: Path) -> None:
    import tensorflow as tf

    x = np.random.default_rng(0).random((5, 2, 3), np.float32)
    y = np.array([0, 1, -1, 300, 2**40])
    (path,) = records.write_arrays(tmp_path / "a", {"x": x, "y": y}, layout="list")
    spec = {"x": tf.io.FixedLenFeature([2, 3], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    parsed = [tf.io.parse_single_example(record, spec) for record in tf.data.TFRecordDataset(path)]
    assert np.array_equal([features["x"] for features in parsed], x)
    assert np.array_equal([features["y"] for features in parsed], y)


def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfqueue.records.arrays._BLOCK_BYTES", 100)
    x = np.arange(300).reshape(60, 5)
    rows = list(records.read(records.write_arrays(tmp_path / "a", {"x": x}, shards=7)))
    assert np.array_equal([row["x"] for row in rows], x)


def test_only_slices_are_taken_of_what_is_no_array(tmp_path: Path) -> None:
    class Lazy:
        shape = (50, 4)
        dtype = np.dtype(np.int64)

        def __getitem__(self, rows: slice) -> np.ndarray:
            return np.arange(200).reshape(50, 4)[rows]

        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            raise AssertionError("the whole array was asked for")

    rows = list(records.read(records.write_arrays(tmp_path / "a", {"x": Lazy()})))
    assert np.array_equal([row["x"] for row in rows], np.arange(200).reshape(50, 4))


def test_bad_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(InvalidArgument, match="differ in the length of their first axis: 'X' has 3, 'y' has 4"):
        records.write_arrays(path, {"X": np.zeros((3, 2)), "y": np.zeros(4)})
    with pytest.raises(InvalidArgument, match="arrays is empty"):
        records.write_arrays(path, {})
    with pytest.raises(InvalidArgument, match="'y' has no axis"):
        records.write_arrays(path, {"y": 3})
    with pytest.raises(InvalidArgument, match="'y' is not rectangular"):
        records.write_arrays(path, {"y": [[1], [2, 3]]})
    with pytest.raises(InvalidArgument, match="expected a dict"):
        records.write_arrays(path, np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="feature 'x' of record 0: a float64 array would lose digits"):
        records.write_arrays(path, {"x": np.zeros((2, 2))}, layout="list")
    with pytest.raises(RecordError, match="feature 'x' of record 1: an object array of int, str"):
        records.write_arrays(path, {"x": _mixed()})
    assert os.listdir(tmp_path) == []


def _mixed() -> np.ndarray:
    mixed = np.empty((2, 2), object)
    mixed[0] = ["a", "b"]
    mixed[1] = ["a", 1]
    return mixed


def test_narrowing_when_asked_for(tmp_path: Path) -> None:
    x = np.array([0.1, 16777217.0])
    rows = list(records.read(records.write_arrays(tmp_path / "a", {"x": x}, layout="list", narrow=True)))
    assert [row["x"][0] for row in rows] == [np.float32(0.1), np.float32(16777216)]
    with pytest.raises(RecordError, match="outside the range of float32"):
        records.write_arrays(tmp_path / "b", {"x": np.array([1e300])}, layout="list", narrow=True)
