"""A pipeline to draw. It has a file of its own, since its line numbers are in the picture."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1


def shuffled() -> Any:
    names = tf1.train.string_input_producer([f"/data/train-{n:05d}.tfrecord" for n in range(5)], num_epochs=3)
    _, serialized = tf1.TFRecordReader().read(names)
    spec = {"train/image": tf1.FixedLenFeature([], tf.string), "train/label": tf1.FixedLenFeature([], tf.int64)}
    features = tf1.parse_single_example(serialized, spec)
    image = tf1.image.resize_images(tf.image.decode_jpeg(features["train/image"], channels=3), [24, 24])
    return tf1.train.shuffle_batch([image, features["train/label"]], 10, 30, 10, num_threads=4)


def joined() -> Any:
    names = tf1.train.string_input_producer(["a.txt", "b.txt"], shuffle=False)
    rows = [tf1.decode_csv(tf1.TextLineReader().read(names)[1], [[0.0], [0.0]]) for _ in range(3)]
    return tf1.train.batch_join(rows, batch_size=8)


def rewritten() -> Any:
    """The Dataset that somebody wrote in place of `shuffled`."""
    spec = {"train/image": tf.io.FixedLenFeature([], tf.string), "train/label": tf.io.FixedLenFeature([], tf.int64)}

    def parse(serialized: Any) -> Any:
        features = tf.io.parse_single_example(serialized, spec)
        return tf.image.resize(tf.image.decode_jpeg(features["train/image"], channels=3), [24, 24])

    names = [f"/data/train-{n:05d}.tfrecord" for n in range(5)]
    records = tf.data.Dataset.from_tensor_slices(names).interleave(tf.data.TFRecordDataset, cycle_length=2)
    images = records.map(parse, num_parallel_calls=4).repeat(3).shuffle(30).batch(10, drop_remainder=True)
    return tf.data.Dataset.zip((images, tf.data.Dataset.range(100))).prefetch(2)
