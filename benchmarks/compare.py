"""What comparing costs: time against iterating both sides, and memory beyond them.

A queue-runner pipeline over TFRecords of 100 bytes and its tf.data twin are iterated side by side, without and with
comparing; the two ways take turns, so that the machine is the same for both. Prints the median ratio, the memory that
comparing adds, and the digests' speed.

The usual pipeline parses record by record; the fast one, the hardest case for the ratio, parses whole batches.

    python benchmarks/compare.py [records] [rounds]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import tfqueue
from tfqueue.equivalence.digest import feature_digests
from tfqueue.equivalence.leaves import Dense

tf1 = tf.compat.v1
BATCH, FLOATS = 256, 23  # 23 floats and an integer: 100 bytes
SPEC = {"x": tf.io.FixedLenFeature([FLOATS], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}


def write(path: str, count: int) -> None:
    values = np.random.default_rng(0).normal(size=(1000, FLOATS)).astype(np.float32)
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(count):
            features = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=values[i % 1000])),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def legacy(path: str) -> Callable[[], Any]:
    def build() -> Any:
        queue = tf1.train.string_input_producer([path], num_epochs=1, shuffle=False)
        serialized = tf1.TFRecordReader().read_up_to(queue, BATCH)[1]
        records = tf1.train.batch([serialized], BATCH, enqueue_many=True, capacity=4 * BATCH)
        return tf.io.parse_example(records, SPEC)

    return build


def modern(path: str) -> Callable[[], tf.data.Dataset]:
    return lambda: (
        tf.data.TFRecordDataset(path)
        .batch(BATCH, drop_remainder=True)
        .map(lambda serialized: tf.io.parse_example(serialized, SPEC))
        .prefetch(2)
    )


def usual_legacy(path: str) -> Callable[[], Any]:
    def build() -> Any:
        queue = tf1.train.string_input_producer([path], num_epochs=1, shuffle=False)
        record = tf.io.parse_single_example(tf1.TFRecordReader().read(queue)[1], SPEC)
        return tf1.train.batch(record, BATCH)

    return build


def usual_modern(path: str) -> Callable[[], tf.data.Dataset]:
    return lambda: (
        tf.data.TFRecordDataset(path)
        .map(lambda serialized: tf.io.parse_single_example(serialized, SPEC))
        .batch(BATCH, drop_remainder=True)
        .prefetch(2)
    )


Pair = tuple[Callable[[], Any], Callable[[], tf.data.Dataset]]


def iterate(pair: Pair) -> None:
    """Both sides, side by side, as numpy, with nothing done to the batches."""
    dataset = pair[1]().as_numpy_iterator()
    with tfqueue.QueuePipeline(pair[0]) as pipeline:
        for _ in zip(pipeline, dataset, strict=False):
            pass


def compared(pair: Pair) -> None:
    report = tfqueue.compare(*pair)
    assert report.equivalent, str(report)


def measure(what: str, pair: Pair, count: int, rounds: int) -> None:
    iterate(pair)  # the first run of both ways pays for caches
    ratios, added = [], []
    for _ in range(rounds):
        plain, low = peak(lambda: iterate(pair))
        checked, high = peak(lambda: compared(pair))
        ratios.append(checked / plain)
        added.append(high - low)
        print(f"{what}, {count:,} records: iterated {plain:.2f} s, compared {checked:.2f} s, {checked / plain:.3f}")
    print(
        f"{what}: cost ratio, median of {rounds}: {statistics.median(ratios):.3f}; "
        f"memory added, largest: {max(added) / 1e6:.1f} MB"
    )


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak(function: Callable[[], None]) -> tuple[float, int]:
    """(seconds, the largest resident memory while it ran, in bytes)."""
    highest, done = resident(), threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.02):
            highest = max(highest, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    try:
        function()
    finally:
        seconds = time.perf_counter() - start
        done.set()
        watcher.join()
    return seconds, highest


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        path, short = (str(Path(folder) / f"{name}.tfrecord") for name in ("all", "short"))
        write(path, count)
        write(short, count // 20)
        measure("usual pipeline", (usual_legacy(short), usual_modern(short)), count // 20, rounds)
        measure("fast pipeline", (legacy(path), modern(path)), count, rounds)
    for shape, dtype in (((256, FLOATS), np.float32), ((32, 224, 224, 3), np.uint8), ((32, 224, 224, 3), np.float32)):
        leaf = Dense(np.ones(shape, dtype))
        start = time.perf_counter()
        for _ in range(5):
            feature_digests(leaf)
        seconds = (time.perf_counter() - start) / 5
        print(f"digests of {np.dtype(dtype).name}{list(shape)}: {leaf.nbytes / seconds / 1e9:.2f} GB/s")


if __name__ == "__main__":
    main()
