"""Small data files and TF1 pipelines for tests of the life cycle."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

tf1 = tf.compat.v1


def example(**features) -> bytes:
    """A serialized Example: bytes, a list of floats, or a list of ints for each feature."""
    message = tf.train.Example()
    for name, value in features.items():
        feature = message.features.feature[name]
        if isinstance(value, bytes):
            feature.bytes_list.value.append(value)
        elif value and isinstance(value[0], float):
            feature.float_list.value.extend(value)
        else:
            feature.int64_list.value.extend(value)
    return message.SerializeToString()


def write_records(path: Path, payloads: Iterable[bytes]) -> str:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for payload in payloads:
            writer.write(payload)
    return str(path)


def numbers(path: Path, count: int = 20) -> str:
    """A file of records with label (its number), box (4 floats) and img (48 bytes)."""
    return write_records(path, (example(label=[n], box=[n + 0.5] * 4, img=bytes([n % 256]) * 48) for n in range(count)))


def read(paths, **options):
    """The serialized records of TFRecord files, in order."""
    options = {"num_epochs": 1, "shuffle": False} | options
    return tf1.TFRecordReader().read(tf1.train.string_input_producer(paths, **options))[1]


def parse(paths, spec, **options):
    return tf1.parse_single_example(read(paths, **options), spec)


LABEL = {"label": tf1.FixedLenFeature([], tf.int64)}


def labels(paths, batch_size=4, **options):
    """A build function that batches the labels of the records."""
    batch_options = {k: options.pop(k) for k in ("num_threads", "allow_smaller_final_batch") if k in options}
    return lambda: tf1.train.batch([parse(paths, LABEL, **options)["label"]], batch_size, **batch_options)


def graph_of(build_fn):
    """A graph of its own, and what the function built in it."""
    graph = tf.Graph()
    with graph.as_default():
        return graph, build_fn()
