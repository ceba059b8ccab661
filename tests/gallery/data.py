"""Small data for the gallery: files written by TensorFlow's own writers or by plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from .registry import (
    ASSERTION,
    CUT_FILE,
    DAMAGED_RECORD,
    MISSING_FEATURE,
    MISSING_FILE,
    NO_FAULT,
    NOT_A_NUMBER,
    NOT_AN_IMAGE,
    WRONG_LENGTH,
    WRONG_TYPE,
    DataFile,
    Fault,
)

_FRAME_HEAD = 12  # A TFRecord frame: length (8), its CRC (4), payload, CRC of the payload (4).
_FRAME_TAIL = 4


def pixels(index: int, height: int, width: int, channels: int) -> np.ndarray:
    """An image that no other index (below 37) has: uint8 [height, width, channels]."""
    count = height * width * channels
    return ((index * 7 + np.arange(count) * 3) % 256).astype(np.uint8).reshape(height, width, channels)


def png(image: np.ndarray) -> bytes:
    with tf.init_scope():
        return tf.io.encode_png(image).numpy()


def jpeg(image: np.ndarray) -> bytes:
    with tf.init_scope():
        return tf.io.encode_jpeg(image, quality=95).numpy()


def eager(function: Any, *args: Any, **options: Any) -> Any:
    """The numpy value of a TensorFlow function, computed outside any graph."""
    with tf.init_scope():
        return tf.nest.map_structure(lambda t: t.numpy(), function(*args, **options))


def feature(value: Any) -> tf.train.Feature:
    """Bytes, integers or floats (one, a list or an array) as a Feature; an empty list is a list of floats."""
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    array = np.asarray(value).ravel()
    if array.dtype.kind in "iu":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=array.tolist()))
    return tf.train.Feature(float_list=tf.train.FloatList(value=array.tolist()))


def features(**values: Any) -> tf.train.Features:
    return tf.train.Features(feature={key: feature(value) for key, value in values.items()})


def example(**values: Any) -> bytes:
    """A serialized tf.train.Example."""
    return tf.train.Example(features=features(**values)).SerializeToString()


def sequence_example(context: dict[str, Any], lists: dict[str, Sequence[Any]]) -> bytes:
    """A serialized tf.train.SequenceExample; each list holds the value of every frame."""
    feature_list = {
        key: tf.train.FeatureList(feature=[feature(value) for value in values]) for key, values in lists.items()
    }
    return tf.train.SequenceExample(
        context=features(**context), feature_lists=tf.train.FeatureLists(feature_list=feature_list)
    ).SerializeToString()


def broken(fault: Fault, index: int, values: dict[str, Any], *, key: str = "label") -> dict[str, Any]:
    """The features of record `index`; without `key`, or `key` of another type, where `fault` asks for it."""
    if fault.at(MISSING_FEATURE, index):
        return {name: value for name, value in values.items() if name != key}
    if fault.at(WRONG_TYPE, index):
        return {**values, key: b"seven" if not isinstance(values[key], bytes) else 7}
    return values


def image_bytes(fault: Fault, index: int, encoded: bytes) -> bytes:
    """The encoded image of record `index`, or bytes that are no image."""
    return b"\x00\x01no image" if fault.at(NOT_AN_IMAGE, index) else encoded


def raw_bytes(fault: Fault, index: int, array: np.ndarray) -> bytes:
    """The memory of an array, one value short where `fault` asks for it."""
    data = array.tobytes()
    return data[: -array.itemsize] if fault.at(WRONG_LENGTH, index) else data


def shares(count: int, files: int) -> list[range]:
    """The record numbers of each file, in order; the first files get one more where it is not even."""
    size, more = divmod(count, files)
    starts = [i * size + min(i, more) for i in range(files + 1)]
    return [range(a, b) for a, b in pairwise(starts)]


def _remove(fault: Fault, part: range, path: Path) -> None:
    if fault.stage == MISSING_FILE.name and fault.record in part:
        path.unlink()


def write_tfrecords(
    folder: Path,
    records: Sequence[bytes],
    *,
    files: int = 2,
    fault: Fault = NO_FAULT,
    compression: str = "",
    name: str = "data",
) -> tuple[DataFile, ...]:
    """Writes ``<name>-00000-of-00002.tfrecord`` ...; knows missing-file and (uncompressed) damaged-record."""
    written = []
    for number, part in enumerate(shares(len(records), files)):
        path = folder / f"{name}-{number:05d}-of-{files:05d}.tfrecord"
        with tf.io.TFRecordWriter(str(path), compression) as writer:
            for index in part:
                writer.write(records[index])
        if fault.stage == DAMAGED_RECORD.name and fault.record in part:
            start = sum(len(records[i]) + _FRAME_HEAD + _FRAME_TAIL for i in part if i < fault.record)
            content = bytearray(path.read_bytes())
            content[start + _FRAME_HEAD + len(records[fault.record]) // 2] ^= 0x10
            path.write_bytes(bytes(content))
        _remove(fault, part, path)
        written.append(DataFile(str(path), len(part)))
    return tuple(written)


def write_each(
    folder: Path, contents: Sequence[bytes], *, suffix: str, fault: Fault = NO_FAULT, name: str = "item"
) -> tuple[DataFile, ...]:
    """Writes one file a record; knows missing-file."""
    written = []
    for index, content in enumerate(contents):
        path = folder / f"{name}{index:03d}{suffix}"
        path.write_bytes(content)
        _remove(fault, range(index, index + 1), path)
        written.append(DataFile(str(path), 1))
    return tuple(written)


def write_lines(
    folder: Path,
    lines: Sequence[str],
    *,
    files: int = 1,
    fault: Fault = NO_FAULT,
    header: str | None = None,
    name: str = "table",
    suffix: str = ".csv",
) -> tuple[DataFile, ...]:
    """Writes text files, each with the header line where one is given; knows missing-file."""
    written = []
    for number, part in enumerate(shares(len(lines), files)):
        path = folder / f"{name}{number}{suffix}"
        head = [] if header is None else [header]
        path.write_text("".join(f"{line}\n" for line in [*head, *(lines[i] for i in part)]), encoding="utf-8")
        _remove(fault, part, path)
        written.append(DataFile(str(path), len(part)))
    return tuple(written)


def write_fixed(
    folder: Path,
    records: Sequence[bytes],
    *,
    files: int = 2,
    fault: Fault = NO_FAULT,
    header: bytes = b"",
    footer: bytes = b"",
    name: str = "data_batch",
) -> tuple[DataFile, ...]:
    """Writes records of one length back to back; knows missing-file and cut-file."""
    written = []
    for number, part in enumerate(shares(len(records), files)):
        path = folder / f"{name}_{number + 1}.bin"
        content = header + b"".join(records[i] for i in part) + footer
        if fault.stage == CUT_FILE.name and fault.record in part:
            content = content[:-1]
        path.write_bytes(content)
        _remove(fault, part, path)
        written.append(DataFile(str(path), len(part)))
    return tuple(written)


def paths(files: Sequence[DataFile]) -> list[str]:
    return [file.path for file in files]


def flip_free(image: np.ndarray) -> np.ndarray:
    """One and the same array for an image and its left-right mirror image."""
    return min(image, image[:, ::-1], key=lambda array: array.tobytes())


def crop_free(image: np.ndarray) -> np.ndarray:
    """One and the same array for all crops (of one size) of an image made by `pixels`, mirrored or not.

    The values of `pixels` grow by a fixed step along each axis, so the offset of a crop only adds a constant.
    """
    wide = image.astype(np.int64)
    both = [((side - side[0, 0, 0]) % 256).astype(np.uint8) for side in (wide, wide[:, ::-1])]
    return min(both, key=lambda array: array.tobytes())


def checked(number: tf.Tensor, fault: Fault) -> tf.Tensor:
    """The number, behind an assertion that fails for the record of `fault`."""
    bad = fault.record if fault.stage == ASSERTION.name else -1
    check = tf.compat.v1.assert_none_equal(number, tf.cast(bad, number.dtype), message="bad record")
    with tf.control_dependencies([check]):
        return tf.identity(number)


def spoiled(array: np.ndarray, fault: Fault) -> np.ndarray:
    """A copy of a float array [records, ...] in which the record of `fault` holds a NaN."""
    array = array.copy()
    if fault.stage == NOT_A_NUMBER.name:
        array[fault.record].flat[0] = np.nan
    return array
