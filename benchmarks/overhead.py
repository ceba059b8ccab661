"""What iterating a QueuePipeline costs against the hand-written TF1 loop over the same graph.

    python benchmarks/overhead.py [--pairs 9] [--quick]

Both sides build the same graph, start the same runners, and fetch the same batches to the end of the data; the clock
runs from the first step to the last. The two take turns in one process; the ratio is taken pair by pair, and the median
ratio is the figure. Goal: at most 1.02 for small and for image records.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import cv2
import numpy as np
import tensorflow as tf

import tfqueue
from tfqueue import records

tf1 = tf.compat.v1


def small(folder: Path, count: int) -> Callable[[], Any]:
    """Records of 32 floats and a label, batch 128."""
    generator = np.random.default_rng(0)
    table = {"x": generator.random((count, 32), np.float32), "y": np.arange(count)}
    paths = records.write_arrays(folder / "small.tfrecord", table, layout="list", progress=False)

    def build_fn() -> Any:
        names = tf1.train.string_input_producer(paths, num_epochs=1, shuffle=False)
        _, serialized = tf1.TFRecordReader().read(names)
        spec = {"x": tf1.FixedLenFeature([32], tf.float32), "y": tf1.FixedLenFeature([], tf.int64)}
        return tf1.train.batch(tf1.parse_single_example(serialized, spec), 128, capacity=1024)

    return build_fn


def images(folder: Path, count: int) -> Callable[[], Any]:
    """JPEG images of 320x240, decoded and resized to 224x224, batch 10."""
    generator = np.random.default_rng(0)
    path = folder / "images.tfrecord"
    with records.RecordWriter(path, progress=False) as writer:
        for label in range(count):
            coarse = generator.integers(0, 255, (15, 20, 3), np.uint8)
            _, encoded = cv2.imencode(".jpg", cv2.resize(coarse, (320, 240)))
            writer.write({"image": encoded.tobytes(), "label": label})

    def build_fn() -> Any:
        names = tf1.train.string_input_producer([str(path)], num_epochs=1, shuffle=False)
        _, serialized = tf1.TFRecordReader().read(names)
        spec = {"image": tf1.FixedLenFeature([], tf.string), "label": tf1.FixedLenFeature([], tf.int64)}
        features = tf1.parse_single_example(serialized, spec)
        image = tf1.image.resize_images(tf1.image.decode_jpeg(features["image"], channels=3), [224, 224])
        return tf1.train.batch([image, features["label"]], 10)

    return build_fn


def by_hand(build_fn: Callable[[], Any]) -> float:
    """Seconds that the loop of a TF1 program takes."""
    with tf.Graph().as_default(), tf1.Session() as session:
        fetches = build_fn()
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        coord = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coord)
        start = time.perf_counter()
        try:
            while not coord.should_stop():
                session.run(fetches)
        except tf.errors.OutOfRangeError:
            pass
        seconds = time.perf_counter() - start
        coord.request_stop()
        coord.join(threads)
    return seconds


def behind_tfqueue(build_fn: Callable[[], Any]) -> float:
    """Seconds that the same takes behind QueuePipeline."""
    with tfqueue.QueuePipeline(build_fn) as pipeline:
        start = time.perf_counter()
        for _ in pipeline:
            pass
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    arguments = parser.parse_args()
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    scale = 10 if arguments.quick else 1
    print(f"{'workload':<8} {'by hand':>9} {'tfqueue':>9} {'ratio':>7}   (medians of {arguments.pairs} pairs)")
    with tempfile.TemporaryDirectory() as name:
        for workload, count in ((small, 30_000), (images, 1_500)):
            build_fn = workload(Path(name), count // scale)
            by_hand(build_fn), behind_tfqueue(build_fn)  # warm caches of files and kernels
            pairs = []
            for number in range(arguments.pairs):
                gc.collect()
                sides = [by_hand, behind_tfqueue]
                if number % 2:  # who goes first changes, so that neither profits from it
                    sides.reverse()
                seconds = {side: side(build_fn) for side in sides}
                pairs.append((seconds[by_hand], seconds[behind_tfqueue]))
            hand, ours = (statistics.median(side) for side in zip(*pairs, strict=True))
            ratio = statistics.median(b / a for a, b in pairs)
            print(f"{workload.__name__:<8} {hand:>8.3f}s {ours:>8.3f}s {ratio:>7.3f}")


if __name__ == "__main__":
    main()
