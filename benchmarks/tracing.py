"""How long it takes to read a pipeline out of its graph, and to turn it into a tf.data.Dataset (goal: under 1 s).

    python benchmarks/tracing.py [--rounds 7]

Two pipelines: one stage of about 50 ops (parse, decode, crop, flip, colours), and the same in four branches that are
joined, as ImageNet trainers do it. Every figure is the median of its rounds; building the graph is not counted. The
exit code is 1 where the goal is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import tfqueue

tf1 = tf.compat.v1
GOAL_SECONDS = 1.0


def example(serialized: Any) -> list[Any]:
    """One stage: parse -> decode -> crop -> flip -> colours -> standardize."""
    spec = {"image": tf1.FixedLenFeature([], tf.string), "label": tf1.FixedLenFeature([], tf.int64)}
    parsed = tf1.parse_single_example(serialized, spec)
    image = tf1.image.convert_image_dtype(tf1.image.decode_jpeg(parsed["image"], channels=3), tf.float32)
    image = tf1.image.resize_images(image, [40, 40])
    image = tf1.random_crop(image, [32, 32, 3], seed=1)
    image = tf1.image.random_flip_left_right(image, seed=2)
    image = tf1.image.random_brightness(image, max_delta=0.2, seed=3)
    image = tf1.image.per_image_standardization(image)
    return [tf.reshape(image, [32, 32, 3]), tf.cast(parsed["label"], tf.int32)]


def serialized_examples() -> Any:
    files = [f"train-{shard:05}-of-00064" for shard in range(64)]
    names = tf1.train.string_input_producer(files, num_epochs=3, seed=4)
    return tf1.TFRecordReader().read(names)[1]


def one_stage() -> Any:
    return tf1.train.shuffle_batch(example(serialized_examples()), 32, 1100, min_after_dequeue=1000, seed=5)


def four_branches() -> Any:
    queue = tf1.RandomShuffleQueue(1100, 1000, [tf.string], [[]], seed=6)
    tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue([serialized_examples()])]))
    return tf1.train.batch_join([example(queue.dequeue()) for _ in range(4)], 32, capacity=128)


def measure(name: str, build: Callable[[], Any], rounds: int) -> bool:
    graph = tf.Graph()
    with graph.as_default():
        fetches = build()
    sizes = [len(stage.ops) for stage in tfqueue.trace(graph, fetches).transforms]
    ways: dict[str, Callable[[], Any]] = {
        "trace": lambda: tfqueue.trace(graph, fetches),
        "explain, as text": lambda: str(tfqueue.explain(graph, fetches)),
        "to_dataset": lambda: tfqueue.to_dataset(graph, fetches),
        "to_dataset, replayed": lambda: tfqueue.to_dataset(graph, fetches, shuffle="replay"),
    }
    print(f"{name}: {len(graph.get_operations())} ops in the graph, {max(sizes)} in the largest stage")
    good = True
    for way, run in ways.items():
        seconds = []
        for _ in range(rounds):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        median = statistics.median(seconds)
        good &= median < GOAL_SECONDS
        print(f"    {way:22} {median:6.3f} s   ({min(seconds):.3f} to {max(seconds):.3f})")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    tf1.logging.set_verbosity("ERROR")
    good = [measure(build.__name__, build, arguments.rounds) for build in (one_stage, four_branches)]
    print(f"goal: each under {GOAL_SECONDS:.0f} s: {'reached' if all(good) else 'MISSED'}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
