"""What opening and closing costs, and what stays behind.

    python benchmarks/lifecycle.py [--pipelines 1000]

1. Pipelines opened, read and closed one after the other in one process: threads, open files and memory left behind
   (goals: 0, 0, under 20 MB), and the milliseconds of each, against the same by hand. Memory that is free, but that the
   C library keeps for reuse, is given back before each look (malloc_trim): how much that is depends on when Python
   collects the graphs, which are cycles.
2. The checks before the start (goal: under 50 ms, without the first TensorFlow call), on small and on many files.
3. Ctrl-C while blocked: milliseconds from the signal until KeyboardInterrupt has left the with block (goal: 1,000).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import logging
import os
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import tfqueue
from tfqueue import records
from tfqueue.initialize import initialize_all
from tfqueue.startcheck import check_before_start

tf1 = tf.compat.v1


def pipeline_on(paths: list[str]) -> Callable[[], Any]:
    def build_fn() -> Any:
        names = tf1.train.string_input_producer(paths, num_epochs=1, shuffle=False)
        _, serialized = tf1.TFRecordReader().read(names)
        spec = {"x": tf1.FixedLenFeature([4], tf.float32), "y": tf1.FixedLenFeature([], tf.int64)}
        return tf1.train.batch(tf1.parse_single_example(serialized, spec), 10)

    return build_fn


def write(folder: Path, name: str, count: int, shards: int = 1) -> list[str]:
    table = {"x": np.zeros((count, 4), np.float32), "y": np.arange(count)}
    return records.write_arrays(folder / name, table, layout="list", shards=shards, progress=False)


def resident_megabytes() -> float:
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def open_and_read(build_fn: Callable[[], Any]) -> None:
    with tfqueue.QueuePipeline(build_fn) as pipeline:
        assert sum(len(batch["y"]) for batch in pipeline) == 30


def by_hand(build_fn: Callable[[], Any]) -> None:
    with tf.Graph().as_default(), tf1.Session() as session:
        fetches = build_fn()
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        coord = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coord)
        try:
            while not coord.should_stop():
                session.run(fetches)
        except tf.errors.OutOfRangeError:
            coord.request_stop()
        coord.join(threads)


def left_behind(folder: Path, pipelines: int) -> None:
    build_fn = pipeline_on(write(folder, "thirty.tfrecord", 30))
    for _ in range(20):  # what TensorFlow allocates once
        open_and_read(build_fn)
    threads, files, memory = threading.active_count(), open_files(), resident_megabytes()
    start = time.perf_counter()
    for _ in range(pipelines):
        open_and_read(build_fn)
    each = 1000 * (time.perf_counter() - start) / pipelines
    grown = resident_megabytes() - memory
    print(f"after {pipelines} pipelines: {threading.active_count() - threads} threads, {open_files() - files} files,")
    print(f"  {grown:.1f} MB left behind; {each:.1f} ms each")
    start = time.perf_counter()
    for _ in range(pipelines // 5):
        by_hand(build_fn)
    print(f"  the same by hand: {1000 * (time.perf_counter() - start) / (pipelines // 5):.1f} ms each")


def start_checks(folder: Path) -> None:
    for label, paths in (
        ("1 file of 30 records", write(folder, "small.tfrecord", 30)),
        ("1 file of 300,000 records", write(folder, "large.tfrecord", 300_000)),
        ("500 files of 20 records", write(folder, "many.tfrecord", 10_000, shards=500)),
    ):
        seconds = []
        for _ in range(7):
            with tf.Graph().as_default() as graph, tf1.Session() as session:
                fetches = pipeline_on(paths)()
                initialize_all(graph, session)
                topology = tfqueue.topology.trace.trace(graph, fetches)
                start = time.perf_counter()
                check_before_start(graph, session, fetches=fetches, topology=topology)
                seconds.append(time.perf_counter() - start)
        print(f"start checks, {label}: {1000 * statistics.median(seconds):.1f} ms (first {1000 * seconds[0]:.1f})")


def ctrl_c() -> None:
    def starved() -> Any:
        return tf1.FIFOQueue(3, tf.int32, [[]]).dequeue_many(2)

    delays = []
    for _ in range(5):
        pressed = 0.0

        def press() -> None:
            nonlocal pressed
            time.sleep(1.0)  # by then the main thread waits in the step
            pressed = time.perf_counter()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=press)
        try:
            with tfqueue.QueuePipeline(starved, check=False) as pipeline:
                thread.start()
                next(pipeline)
        except KeyboardInterrupt:
            delays.append(1000 * (time.perf_counter() - pressed))
        thread.join()
    print(
        f"Ctrl-C while blocked: out of the block after {statistics.median(delays):.0f} ms (at most {max(delays):.0f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipelines", type=int, default=1000)
    arguments = parser.parse_args()
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        # First, in a process that has done nothing else: memory that was once used is kept by the C library for reuse.
        left_behind(Path(name), arguments.pipelines)
        start_checks(Path(name))
    ctrl_c()


if __name__ == "__main__":
    main()
