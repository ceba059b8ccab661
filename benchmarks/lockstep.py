"""How fast lockstep runs, beside one queue runner thread on the same graph.

    python benchmarks/lockstep.py [--records 20000] [--rounds 5]

Rounds of both are interleaved, so that both meet the same machine; the figure is the median of the ratios of pairs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import tfqueue
from tfqueue.engines.lockstep import Lockstep

tf1 = tf.compat.v1


def build(path: str) -> Any:
    """TFRecords of 8 floats and 1 int -> parse -> shuffle_batch."""
    names = tf1.train.string_input_producer([path], num_epochs=1, shuffle=False)
    spec = {"x": tf1.FixedLenFeature([8], tf.float32), "y": tf1.FixedLenFeature([], tf.int64)}
    parsed = tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], spec)
    return tf1.train.shuffle_batch([parsed["x"], parsed["y"]], 32, 1100, min_after_dequeue=1000, seed=1)


def run(path: str, *, lockstep: bool) -> float:
    """Records a second of one pass."""
    records = 0
    graph = tf.Graph()
    with graph.as_default():
        fetches = build(path)
    engine = Lockstep(graph) if lockstep else None
    with graph.as_default(), tf1.Session() as session:
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        coord = tf1.train.Coordinator()
        start = time.perf_counter()
        if engine is not None:
            engine.start(session, coord)
            step = engine.make_step(fetches)
        else:
            runners = tf1.train.start_queue_runners(session, coord)
            step = session.make_callable(fetches)
        try:
            while True:
                records += len(step()[1])
        except tf.errors.OutOfRangeError:
            seconds = time.perf_counter() - start
        coord.request_stop()
        if engine is not None:
            engine.stop()
        else:
            coord.join(runners)
    return records / seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    tf1.logging.set_verbosity("ERROR")
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "records.tfrecord")
        arrays = {"x": random.random((arguments.records, 8), np.float32), "y": np.arange(arguments.records)}
        tfqueue.records.write_arrays(path, arrays, layout="list")
        pairs = [(run(path, lockstep=False), run(path, lockstep=True)) for _ in range(arguments.rounds)]
    for threads, lockstep in pairs:
        print(f"1 thread {threads:9.0f} records/s    lockstep {lockstep:9.0f} records/s    {lockstep / threads:.2f} x")
    ratio = statistics.median(lockstep / threads for threads, lockstep in pairs)
    print(f"median: lockstep reads {ratio:.2f} times as many records a second as the 1-thread queue")
    return 0


if __name__ == "__main__":
    sys.exit(main())
