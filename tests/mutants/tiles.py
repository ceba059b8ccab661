"""A TF1 pipeline over photographs in TFRecords, and its tf.data twin, each part of which can be got wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import tensorflow as tf
from matplotlib import cbook

tf1 = tf.compat.v1

FILES, PER_FILE = 3, 32
COUNT = FILES * PER_FILE
BATCH = 10
HEIGHT, WIDTH = 20, 16
CLASSES = 7

Step = Callable[[Any], Any]


def write(folder: Path) -> list[str]:
    """Tiles of a photograph with a label, a file name, a number and tokens of various length, in three files."""
    photograph = cv2.imread(str(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)))
    paths = []
    for file in range(FILES):
        path = folder / f"tiles-{file}.tfrecord"
        with tf.io.TFRecordWriter(str(path)) as writer:
            for i in range(file * PER_FILE, (file + 1) * PER_FILE):
                y, x = 30 + (i // 10) * 40, 20 + (i % 10) * 40
                encoded = cv2.imencode(".jpg", photograph[y : y + 48, x : x + 40], [cv2.IMWRITE_JPEG_QUALITY, 92])[1]
                writer.write(_example(i, encoded.tobytes()))
        paths.append(str(path))
    return paths


def _example(i: int, encoded: bytes) -> bytes:
    rng = np.random.default_rng(i)
    features = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(rng.integers(CLASSES))])),
        "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"tile-%03d.jpg" % i])),
        "number": tf.train.Feature(float_list=tf.train.FloatList(value=rng.normal(size=5).astype(np.float32))),
        "big": tf.train.Feature(int64_list=tf.train.Int64List(value=[i * 1000 + 7])),
        "raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[rng.normal(size=6).astype("<f4").tobytes()])),
        "tokens": tf.train.Feature(int64_list=tf.train.Int64List(value=list(range(1, 2 + i * 7 % 9)))),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


SPEC = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
    "name": tf.io.FixedLenFeature([], tf.string),
    "number": tf.io.FixedLenFeature([5], tf.float32),
    "big": tf.io.FixedLenFeature([], tf.int64),
    "raw": tf.io.FixedLenFeature([], tf.string),
    "tokens": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
}


def decode(encoded: Any, **options: Any) -> Any:
    return tf.cast(tf.image.decode_jpeg(encoded, channels=3, **options), tf.float32)


def resize_v1(image: Any) -> Any:
    return tf1.image.resize_bilinear(image[tf.newaxis], [HEIGHT, WIDTH])[0]


def crop(image: Any) -> Any:
    return image[8 : 8 + HEIGHT, 6 : 6 + WIDTH]


def parts(serialized: Any, *, shape: Step = resize_v1, decoder: Step = decode) -> dict[str, Any]:
    """The features of one record as both sides make them."""
    record = tf.io.parse_single_example(serialized, SPEC)
    image = shape(decoder(record["image"])) / 256.0  # a power of two: exact, whatever the graph optimiser does
    image.set_shape([HEIGHT, WIDTH, 3])
    return {
        "image": image,
        "label": record["label"],
        "name": record["name"],
        "number": record["number"],
        "big": record["big"],
        "raw": tf.ensure_shape(tf.io.decode_raw(record["raw"], tf.float32), [6]),
    }


def legacy(
    paths: list[str],
    *,
    shuffle: bool = False,
    epochs: int = 1,
    threads: int = 1,
    keep_remainder: bool = False,
    keep: tuple[str, ...] = ("image", "label", "name"),
    shape: Step = resize_v1,
    change: Step = lambda record: record,
    pad: bool = False,
) -> Callable[[], Any]:
    """The build function."""

    def build() -> Any:
        queue = tf1.train.string_input_producer(paths, num_epochs=epochs, shuffle=False)
        serialized = tf1.TFRecordReader().read(queue)[1]
        record = parts(serialized, shape=shape)
        record = {name: record[name] for name in keep}
        if pad:
            record["tokens"] = tf.io.parse_single_example(serialized, SPEC)["tokens"]
        record = change(record)
        options: dict[str, Any] = {"allow_smaller_final_batch": keep_remainder, "num_threads": threads, "capacity": 60}
        if shuffle:
            return tf1.train.shuffle_batch(record, BATCH, min_after_dequeue=20, **options)
        return tf1.train.batch(record, BATCH, dynamic_pad=pad, **options)

    return build


def source(paths: list[str], epochs: int = 1) -> tf.data.Dataset:
    return tf.data.TFRecordDataset(paths).repeat(epochs)


def twin(
    paths: list[str],
    *,
    shuffle: bool = False,
    epochs: int = 1,
    keep: tuple[str, ...] = ("image", "label", "name"),
    shape: Step = resize_v1,
    decoder: Step = decode,
    change: Step = lambda record: record,
    read: Callable[[list[str], int], tf.data.Dataset] = source,
    batch: Callable[[tf.data.Dataset], tf.data.Dataset] = lambda d: d.batch(BATCH, drop_remainder=True),
    order: Callable[[tf.data.Dataset], tf.data.Dataset] = lambda d: d.shuffle(20),
) -> Callable[[], tf.data.Dataset]:
    """The function that returns the twin: right, unless a part is replaced by a wrong one."""

    def one(serialized: Any) -> Any:
        record = parts(serialized, shape=shape, decoder=decoder)
        return change({name: record[name] for name in keep})

    def build() -> tf.data.Dataset:
        dataset = read(paths, epochs).map(one)
        return batch(order(dataset) if shuffle else dataset)

    return build
