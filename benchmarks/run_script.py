"""What `tfqueue run` costs a program: at its start, and in each training step.

    python benchmarks/run_script.py [--pairs 60] [--starts 5]

Start-up: a program of one session.run, in plain python (with the two lines that it needs today) and under `tfqueue
run`, by turns, each in a process of its own; the figure is the median of the differences. Goal: under 1 s.

Steps: the same training program (records of 32 floats -> queue -> a small network, gradient descent) three times in one
process: by hand, by hand again, and managed as `tfqueue run` manages it. They take turns as in overhead.py, each from a
full queue; the figure is the median of the ratios of the pairs, and the loop by hand against itself shows how far it
can be trusted. Goal: at most 1.02.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ONE_RUN = """
with tf.Session() as session:
    session.run(tf.constant(1))
"""
PLAIN = f"import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n{ONE_RUN}"
LEGACY = f"import tensorflow as tf\n{ONE_RUN}"


def seconds_of(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def start_up(folder: Path, starts: int) -> tuple[float, float]:
    """(seconds of plain python, median of the seconds that tfqueue run takes more)."""
    (folder / "plain.py").write_text(PLAIN)
    (folder / "legacy.py").write_text(LEGACY)
    sides = {
        "plain": [sys.executable, str(folder / "plain.py")],
        "tfqueue": [sys.executable, "-m", "tfqueue.cli", "run", str(folder / "legacy.py")],
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(starts + 1):
        for name in sorted(sides, reverse=bool(turn % 2)):
            taken = seconds_of(sides[name])
            if turn:  # the first brings the files into memory
                seconds[name].append(taken)
    more = [ours - plain for ours, plain in zip(seconds["tfqueue"], seconds["plain"], strict=True)]
    return statistics.median(seconds["plain"]), statistics.median(more)


class Training:
    """The training program in a session of its own."""

    def __init__(self, paths: list[str]) -> None:
        import tensorflow as tf

        tf1 = tf.compat.v1
        with tf.Graph().as_default():
            names = tf1.train.string_input_producer(paths, shuffle=False)
            _, serialized = tf1.TFRecordReader().read(names)
            spec = {"x": tf1.FixedLenFeature([32], tf.float32), "y": tf1.FixedLenFeature([], tf.int64)}
            batch = tf1.train.batch(tf1.parse_single_example(serialized, spec), 32, capacity=1024)
            first = tf1.get_variable("first", [32, 128])
            last = tf1.get_variable("last", [128, 10])
            logits = tf.nn.relu(batch["x"] @ first) @ last
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch["y"] % 10, logits=logits))
            self.fetches = [tf1.train.GradientDescentOptimizer(0.01).minimize(loss), loss]
            self.session = tf1.Session()
            self.session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            [queue] = [op for op in self.session.graph.get_operations() if op.name == "batch/fifo_queue"]
            self._size = self.session.make_callable(tf.raw_ops.QueueSizeV2(handle=queue.outputs[0]))
        self.coord = tf1.train.Coordinator()
        self.threads = tf1.train.start_queue_runners(self.session, self.coord)

    def turn(self, run: Any, steps: int) -> float:
        """Seconds that some steps take, from a full queue on; ``run`` is the class's own ``session.run``."""
        while self._size() < 1024:
            time.sleep(0.002)
        began = time.perf_counter()
        for _ in range(steps):
            if self.coord.should_stop():
                raise RuntimeError("the pipeline has stopped")
            run(self.session, self.fetches)
        return time.perf_counter() - began

    def close(self) -> None:
        self.coord.request_stop()
        self.coord.join(self.threads)
        self.session.close()


def steps(folder: Path, pairs: int, count: int = 24) -> dict[str, list[float]]:
    """Seconds of each turn of each side."""
    import numpy as np
    import tensorflow as tf

    from tfqueue import records
    from tfqueue.compat.run_sessions import Sessions

    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    tf.compat.v1.disable_v2_behavior()
    generator = np.random.default_rng(0)
    table = {"x": generator.random((5000, 32), np.float32), "y": np.arange(5000)}
    paths = [str(p) for p in records.write_arrays(folder / "r.tfrecord", table, layout="list", progress=False)]
    by_hand = tf.compat.v1.Session.run
    sides = {"by hand": (Training(paths), by_hand), "again": (Training(paths), by_hand)}
    with ExitStack() as stack:
        stack.enter_context(Sessions("threads").installed())
        sides["tfqueue"] = (Training(paths), tf.compat.v1.Session.run)
        for training, run in sides.values():
            training.turn(run, count)
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        order = list(sides)
        for _ in range(pairs):
            random.Random(len(seconds["again"])).shuffle(order)
            for name in order:
                training, run = sides[name]
                seconds[name].append(training.turn(run, count) / count)
        for training, _ in sides.values():
            training.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--starts", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if arguments.starts:
            plain, more = start_up(Path(name), arguments.starts)
            print(f"start-up: plain {plain:.2f} s, tfqueue run {more:+.2f} s ({arguments.starts} pairs)")
        seconds = steps(Path(name), arguments.pairs)
        hand = seconds["by hand"]
        ratio, itself = (
            statistics.median(b / a for a, b in zip(hand, seconds[other], strict=True))
            for other in ("tfqueue", "again")
        )
        print(
            f"step: by hand {1000 * statistics.median(hand):.3f} ms, under tfqueue run x{ratio:.3f}; "
            f"by hand against itself x{itself:.3f} ({arguments.pairs} pairs)"
        )


if __name__ == "__main__":
    main()
