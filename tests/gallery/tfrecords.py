"""T1: file names -> TFRecordReader -> parse -> decode -> batch or shuffle_batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import broken, eager, example, image_bytes, jpeg, paths, pixels, png, raw_bytes, write_tfrecords
from .registry import (
    DAMAGED_RECORD,
    MISSING_FEATURE,
    MISSING_FILE,
    NO_FAULT,
    NOT_AN_IMAGE,
    WRONG_LENGTH,
    WRONG_TYPE,
    Fault,
    Program,
    entry,
)

COUNT = 22
HEIGHT, WIDTH = 4, 5
READING = (MISSING_FILE, DAMAGED_RECORD)
PARSING = (MISSING_FEATURE, WRONG_TYPE)
RAW_SPEC = {
    "image_raw": tf.FixedLenFeature([], tf.string),
    "label": tf.FixedLenFeature([], tf.int64),
}
ENCODED_SPEC = {
    "image/encoded": tf.FixedLenFeature([], tf.string),
    "image/class/label": tf.FixedLenFeature([], tf.int64),
}


def raw_data(count: int, fault: Fault) -> tuple[list[bytes], tuple[tuple[np.ndarray, np.int32], ...]]:
    """Serialized examples with raw pixels, and the (image, label) pairs that are in them."""
    images = [pixels(i, HEIGHT, WIDTH, 3) for i in range(count)]
    serialized = [
        example(**broken(fault, i, {"image_raw": raw_bytes(fault, i, image), "label": i}))
        for i, image in enumerate(images)
    ]
    return serialized, tuple((image, np.int32(i)) for i, image in enumerate(images))


def parse_raw(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The usual parse function of a MNIST-like data set."""
    features = tf.parse_single_example(serialized, features=RAW_SPEC)
    image = tf.decode_raw(features["image_raw"], tf.uint8)
    image = tf.reshape(image, [HEIGHT, WIDTH, 3])
    return image, tf.cast(features["label"], tf.int32)


def raw_twin(files: list[str], epochs: int | None) -> tf2.data.Dataset:
    """The records of `raw_data` in file order, not batched."""
    return tf2.data.TFRecordDataset(files).repeat(epochs).map(parse_raw)


@entry(
    "T1-tfrecord-shuffle",
    topology="T1",
    order_note="shuffled by shuffle_batch",
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def tfrecord_shuffle(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        reader = tf.TFRecordReader()
        _, value = reader.read(filename_queue)
        image, label = parse_raw(value)
        return tf.train.shuffle_batch([image, label], batch_size=4, capacity=14, min_after_dequeue=8, seed=7)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        in_flight=24,
        files=files,
        hand_written_twin=lambda: (
            raw_twin(paths(files), epochs).shuffle(8, seed=7).batch(4, drop_remainder=True)
        ),
    )


@entry("T1-tfrecord-batch", topology="T1", ordered=True, stages=(*READING, *PARSING, WRONG_LENGTH))
def tfrecord_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, files=3, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        reader = tf.TFRecordReader()
        _, value = reader.read(filename_queue)
        image, label = parse_raw(value)
        images, labels = tf.train.batch([image, label], batch_size=4)
        return images, labels

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=lambda: raw_twin(paths(files), epochs).batch(4, drop_remainder=True),
    )
