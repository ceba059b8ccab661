"""What iterating a QueuePipeline costs against the hand-written TF1 loop over the same graph.

    python benchmarks/overhead.py [--pairs 200] [--quick]

Both sides build the same endless graph and start the same runners in one process. They take turns: while one does some
steps against the clock, the other stands still, its queue full. The queue is full at the start of each turn, and a turn
takes several times what the queue holds. The figure is the median, over all pairs of turns, of the ratio of the two
times. Turns are short and many because the speed of a shared machine changes from second to second; the same loop by
hand, against itself in the same pairs, shows how far the figure can be trusted. Goal: at most 1.02 for small and for
image records.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import cv2
import numpy as np
import tensorflow as tf

import tfqueue
from tfqueue import records

tf1 = tf.compat.v1


def small(folder: Path, count: int = 5_000) -> Callable[[], Any]:
    """Records of 32 floats and a label, batch 128."""
    generator = np.random.default_rng(0)
    table = {"x": generator.random((count, 32), np.float32), "y": np.arange(count)}
    paths = records.write_arrays(folder / "small.tfrecord", table, layout="list", progress=False)

    def build_fn() -> Any:
        names = tf1.train.string_input_producer(paths, shuffle=False)
        _, serialized = tf1.TFRecordReader().read(names)
        spec = {"x": tf1.FixedLenFeature([32], tf.float32), "y": tf1.FixedLenFeature([], tf.int64)}
        return tf1.train.batch(tf1.parse_single_example(serialized, spec), 128, capacity=1024)

    return build_fn


def images(folder: Path, count: int = 200) -> Callable[[], Any]:
    """JPEG images of 320x240, decoded and resized to 224x224, batch 10."""
    generator = np.random.default_rng(0)
    path = folder / "images.tfrecord"
    with records.RecordWriter(path, progress=False) as writer:
        for label in range(count):
            coarse = generator.integers(0, 255, (15, 20, 3), np.uint8)
            _, encoded = cv2.imencode(".jpg", cv2.resize(coarse, (320, 240)))
            writer.write({"image": encoded.tobytes(), "label": label})

    def build_fn() -> Any:
        names = tf1.train.string_input_producer([str(path)], shuffle=False)
        _, serialized = tf1.TFRecordReader().read(names)
        spec = {"image": tf1.FixedLenFeature([], tf.string), "label": tf1.FixedLenFeature([], tf.int64)}
        features = tf1.parse_single_example(serialized, spec)
        image = tf1.image.resize_images(tf1.image.decode_jpeg(features["image"], channels=3), [224, 224])
        return tf1.train.batch([image, features["label"]], 10)

    return build_fn


class Side:
    """One open pipeline, and how its user runs some steps of it."""

    def __init__(self, session: Any, run_steps: Callable[[int], None]) -> None:
        graph = session.graph
        [queue] = [op for op in graph.get_operations() if op.type == "FIFOQueueV2" and op.name.startswith("batch")]
        self._capacity = queue.get_attr("capacity")
        with graph.as_default():
            self._size = session.make_callable(tf.raw_ops.QueueSizeV2(handle=queue.outputs[0]))
        self._run_steps = run_steps

    def turn(self, steps: int) -> float:
        """Seconds that some steps take, from a full queue on."""
        while self._size() < self._capacity:
            time.sleep(0.002)
        start = time.perf_counter()
        self._run_steps(steps)
        return time.perf_counter() - start


@contextmanager
def by_hand(build_fn: Callable[[], Any]) -> Iterator[Side]:
    """The loop of a TF1 program."""
    with tf.Graph().as_default(), tf1.Session() as session:
        fetches = build_fn()
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        coord = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coord)

        def run_steps(count: int) -> None:
            done = 0
            while not coord.should_stop() and done < count:
                session.run(fetches)
                done += 1

        yield Side(session, run_steps)
        coord.request_stop()
        coord.join(threads)


@contextmanager
def behind_tfqueue(build_fn: Callable[[], Any]) -> Iterator[Side]:
    """The same behind QueuePipeline."""
    with tfqueue.QueuePipeline(build_fn) as pipeline:

        def run_steps(count: int) -> None:
            for _ in islice(pipeline, count):
                pass

        yield Side(pipeline.session, run_steps)


def measure(build_fn: Callable[[], Any], steps: int, pairs: int) -> dict[str, list[float]]:
    """Seconds of each turn of each side; the turns with the same number belong together."""
    with ExitStack() as stack:
        sides = {
            "by hand": stack.enter_context(by_hand(build_fn)),
            "again": stack.enter_context(by_hand(build_fn)),
            "tfqueue": stack.enter_context(behind_tfqueue(build_fn)),
        }
        for side in sides.values():  # what is allocated once
            side.turn(steps)
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        order = list(sides)
        generator = random.Random(0)
        for _ in range(pairs):
            generator.shuffle(order)  # so that nobody profits from the place in the order
            for name in order:
                seconds[name].append(sides[name].turn(steps))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="a tenth of the pairs")
    arguments = parser.parse_args()
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    pairs = max(1, arguments.pairs // (10 if arguments.quick else 1))
    print(
        f"{'workload':<8} {'by hand':>9} {'tfqueue':>9} {'ratio':>7}   {'by hand against itself':>22}   ({pairs} pairs)"
    )
    with tempfile.TemporaryDirectory() as name:
        for workload, steps in ((small, 24), (images, 10)):
            seconds = measure(workload(Path(name)), steps, pairs)
            hand = seconds["by hand"]
            ratio, itself = (
                statistics.median(b / a for a, b in zip(hand, seconds[other], strict=True))
                for other in ("tfqueue", "again")
            )
            step, ours = (1000 * statistics.median(seconds[name]) / steps for name in ("by hand", "tfqueue"))
            print(f"{workload.__name__:<8} {step:>7.3f}ms {ours:>7.3f}ms {ratio:>7.3f}   {itself:>22.3f}")


if __name__ == "__main__":
    main()
