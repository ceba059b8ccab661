"""The schema says what is there, and its spec parses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import tensorflow as tf

from tfqueue import records
from tfqueue.errors import DamagedRecord, InvalidArgument, RecordError
from tfqueue.records.meaning import fitting_arrays

PHOTO = cv2.imencode(".jpg", np.full((8, 8, 3), 200, np.uint8))[1].tobytes()


def schema_of(folder: Path, rows: Any, **options: Any) -> Any:
    return records.describe(records.write_examples(folder / "a", rows, overwrite=True, **options))


def test_kinds_lengths_ranges_and_missing_features(tmp_path: Path) -> None:
    rows = [
        {"image": PHOTO, "label": number, "box": [0.5, number, 1.0], "words": ["a"] * number, "empty": []}
        | ({"score": 2.5} if number < 3 else {})
        for number in range(4)
    ]
    schema = schema_of(tmp_path, rows)
    assert schema.records == 4
    assert [feature.name for feature in schema.features] == ["box", "empty", "image", "label", "score", "words"]
    found = {
        feature.name: (feature.kind, feature.present, feature.min_length, feature.max_length, feature.low, feature.high)
        for feature in schema.features
    }
    assert found == {
        "box": ("float", 4, 3, 3, 0.0, 3.0),
        "empty": ("none", 4, 0, 0, None, None),
        "image": ("bytes", 4, 1, 1, len(PHOTO), len(PHOTO)),
        "label": ("int64", 4, 1, 1, 0, 3),
        "score": ("float", 3, 1, 1, 2.5, 2.5),
        "words": ("bytes", 4, 0, 3, 1, 1),
    }
    assert schema.feature("image").meaning == "JPEG image"
    assert schema.feature("words").meaning == "UTF-8 text"
    lines = str(schema).splitlines()
    assert lines[0] == "4 records"
    assert "25.0%" in next(line for line in lines if line.startswith("score"))
    json.dumps(schema.to_dict())
    with pytest.raises(KeyError):
        schema.feature("other")


def test_the_spec_parses_and_the_text_is_the_spec(tmp_path: Path) -> None:
    rows = [
        {"n": number, "three": [1.0, 2.0, 3.0], "some": ["x"] * number, "rows": [[1], [2] * number]}
        for number in range(3)
    ]
    paths = records.write_examples(tmp_path / "a", rows)
    schema = records.describe(paths)
    pasted: dict[str, Any] = {}
    exec(schema.spec_source(), {"tf": tf}, pasted)
    assert repr(pasted["spec"]) == repr(schema.parse_spec())
    for payload, row in zip(tf.data.TFRecordDataset(paths), rows, strict=True):
        features = tf.io.parse_single_example(payload, schema.parse_spec())
        assert int(features["n"]) == row["n"]
        assert features["three"].numpy().tolist() == row["three"]
        assert features["some"].values.numpy().tolist() == [b"x"] * row["n"]
        assert features["rows"].to_list() == row["rows"]


def test_arrays_are_known_by_what_stands_beside_them(tmp_path: Path) -> None:
    rows = [
        {"x": np.zeros((4, number + 1), np.float32), "y": np.int8(number), "t": np.array(["a" * number])}
        for number in range(3)
    ]
    schema = schema_of(tmp_path, rows)
    assert [feature.name for feature in schema.features] == ["t", "x", "y"]
    x = schema.feature("x")
    assert (x.dtype, x.shape, x.meaning) == ("float32", (4, None), "float32 array [4, ?]")
    assert (schema.feature("y").dtype, schema.feature("y").shape) == ("int8", ())
    assert schema.feature("t").dtype == "str"
    source = schema.spec_source()
    assert "'x/shape': tf.io.FixedLenFeature([2], tf.int64)" in source
    assert "tf.reshape(tf.io.decode_raw(features['x'], tf.float32), features['x/shape'])" in source


def test_what_is_not_finite_is_said_and_left_out_of_the_range(tmp_path: Path) -> None:
    feature = schema_of(tmp_path, [{"x": [1.0, float("nan"), float("-inf")]}, {"x": [2.0, 3.0, 4.0]}]).feature("x")
    assert (feature.low, feature.high, feature.meaning) == (1.0, 4.0, "not all finite")


def test_sequences(tmp_path: Path) -> None:
    with records.RecordWriter(tmp_path / "a") as writer:
        for number in range(1, 4):
            writer.write({"n": number}, sequences={"frames": [PHOTO] * number, "words": [["a"] * number] * number})
    schema = records.describe(tmp_path / "a")
    frames, words = schema.sequences
    assert (frames.max_steps, frames.meaning, frames.max_length) == (3, "JPEG image", 1)
    assert (words.min_length, words.max_length) == (1, 3)
    pasted: dict[str, Any] = {}
    exec(schema.spec_source(), {"tf": tf}, pasted)
    for number, payload in enumerate(tf.data.TFRecordDataset(str(tmp_path / "a")), 1):
        context, sequences = tf.io.parse_single_sequence_example(payload, pasted["spec"], pasted["sequence_spec"])
        assert int(context["n"]) == number
        assert sequences["frames"].shape == [number]


@pytest.mark.parametrize(
    ("values", "meaning"),
    [
        ([PHOTO], "JPEG image"),
        ([cv2.imencode(".png", np.zeros((3, 3), np.uint8))[1].tobytes()], "PNG image"),
        ([PHOTO, cv2.imencode(".png", np.zeros((3, 3), np.uint8))[1].tobytes()], "JPEG or PNG image"),
        ([b"RIFF\0\0\0\0WAVEfmt "], "WAV sound"),
        (["one", "zwei é"], "UTF-8 text"),
        ([tf.io.serialize_tensor(tf.ones([2, 3])).numpy()], "serialized float32 tensor"),
        ([tf.io.serialize_tensor(tf.constant(["a"])).numpy()], "serialized string tensor"),
        (
            [tf.train.Example(features=tf.train.Features(feature={"a": tf.train.Feature()})).SerializeToString()],
            "serialized tf.train.Example",
        ),
        ([PHOTO, b"\xff\xd8 not all of them"], "bytes"),
        ([np.random.default_rng(0).random((28, 28), np.float32).tobytes()], "raw array? float32 [28, 28, 1]"),
        ([np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8).tobytes()], "raw array? uint8 [32, 32, 3]"),
    ],
)
def test_the_meaning_of_bytes(tmp_path: Path, values: list[Any], meaning: str) -> None:
    assert schema_of(tmp_path, [{"x": value} for value in values]).feature("x").meaning.startswith(meaning)


def test_raw_pixels_are_known_by_their_height_and_width(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"image_raw": rng.bytes(height * 7 * 3), "image/height": height, "image/width": 7, "depth": 3}
        for height in range(2, 6)
    ]
    assert (
        schema_of(tmp_path, rows).feature("image_raw").meaning
        == "raw array of shape [image/height, image/width, depth]"
    )
    for row in rows:
        row["image_raw"] += b"1"
    assert schema_of(tmp_path, rows).feature("image_raw").meaning == "bytes"


def test_the_wrong_dtype_is_not_the_first_guess() -> None:
    rng = np.random.default_rng(0)
    for array in (
        rng.random((28, 28)),
        rng.random((28, 28), np.float32),
        rng.integers(0, 1000, 100, np.int64),
        rng.integers(0, 256, (16, 16, 3), np.uint8),
    ):
        assert fitting_arrays(array.tobytes())[0].split()[0] == array.dtype.name
    assert fitting_arrays(b"") == []


def test_only_some_records_are_looked_at(tmp_path: Path) -> None:
    rows = [{"n": number} for number in range(10)]
    path = tmp_path / "a"
    records.write_examples(path, rows)
    assert records.describe(path, records=3).feature("n").high == 2
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert records.describe(path, records=9).records == 9
    with pytest.raises(DamagedRecord, match="record 9"):
        records.describe(path)
    with pytest.raises(InvalidArgument, match="records is 0; expected a positive int"):
        records.describe(path, records=0)


def test_what_has_no_spec(tmp_path: Path) -> None:
    schema = schema_of(tmp_path, [{"x": 1}, {"x": "a"}])
    assert schema.feature("x").kind == "mixed"
    with pytest.raises(RecordError, match="'x' is stored in lists of different kinds"):
        schema.parse_spec()
    with pytest.raises(RecordError, match="'x' is not an array of one dtype in all records"):
        records.write_examples(tmp_path / "b", [{"x": np.zeros(2)}, {"x": np.zeros(2, np.int8)}])
        records.RecordReader(tmp_path / "b").dataset()
    with pytest.raises(RecordError, match=r"record 1, byte \d+: the record is no tf.train.Example"):
        schema_of(tmp_path, [{"x": 1}, b"\xff"])
    assert schema_of(tmp_path, []).parse_spec() == {}
