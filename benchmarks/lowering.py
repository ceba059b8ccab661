"""How fast a lowered queue pipeline is, beside the queue itself and beside tf.data as people write it.

    python benchmarks/lowering.py [--workload a b c d memory] [--scale 1.0] [--rounds 5]

Every workload is run on the same generated files by: the hand-written queue loop with 1 and with 4 threads, the usual
tf.data rewrite (parse each record, shuffle, batch, AUTOTUNE), the expert's rewrite (shuffle the bytes, then parse or
decode), and `tfqueue.to_dataset` with native and with replayed shuffles. The rounds are interleaved, so that all meet
the same machine; a figure is the median of its rounds. "processors" is the processor time of all cores: where it is
near the seconds times the cores, nothing but less work could be faster.

"memory" is the peak memory of a process that runs workload (b) with min_after_dequeue=2000 and does nothing else, and
what of it is there before the pipeline is made (Python with TensorFlow loaded).
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import tfqueue

tf1 = tf.compat.v1
AUTOTUNE = tf.data.AUTOTUNE
Build = Callable[[int], Any]


class Workload:
    """One kind of records, read in the four ways that people write."""

    def __init__(self, words: str, records: int, build: Build, usual: Callable[[], Any], expert: Callable[[], Any]):
        self.words = words
        self.records = records
        self.build = build
        self.usual = usual
        self.expert = expert


def floats(folder: Path, scale: float) -> Workload:
    """(a) TFRecords of 32 floats and 1 int, batches of 128."""
    count, batch = int(40_000 * scale), 128
    path = str(folder / "floats.tfrecord")
    random = np.random.default_rng(1)
    tfqueue.records.write_arrays(
        path, {"x": random.random((count, 32), np.float32), "y": np.arange(count)}, layout="list"
    )
    spec = {"x": tf.io.FixedLenFeature([32], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}

    def build(threads: int) -> Any:
        names = tf1.train.string_input_producer([path], num_epochs=1, shuffle=False)
        parsed = tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], spec)
        return tf1.train.shuffle_batch(
            [parsed["x"], parsed["y"]], batch, 2000 + 3 * batch, 2000, num_threads=threads, seed=1
        )

    def usual() -> Any:
        parsed = tf.data.TFRecordDataset(path).map(
            lambda record: tf.io.parse_single_example(record, spec), num_parallel_calls=AUTOTUNE
        )
        return parsed.shuffle(2000).batch(batch, drop_remainder=True).prefetch(AUTOTUNE)

    def expert() -> Any:
        batches = tf.data.TFRecordDataset(path).shuffle(2000).batch(batch, drop_remainder=True)
        return batches.map(lambda records: tf.io.parse_example(records, spec), AUTOTUNE).prefetch(AUTOTUNE)

    return Workload("32 floats + 1 int, batch 128", count, build, usual, expert)


def write_jpegs(path: str, count: int) -> None:
    """Images of coloured squares with some noise, about 20 kB each."""
    random = np.random.default_rng(2)
    with tfqueue.records.RecordWriter(path) as writer:
        for number in range(count):
            coarse = random.integers(0, 230, (12, 16, 3), dtype=np.uint8)
            noise = random.integers(0, 25, (240, 320, 3), dtype=np.uint8)
            image = np.kron(coarse, np.ones((20, 20, 1), np.uint8)) + noise
            writer.write({"image": tf.io.encode_jpeg(image).numpy(), "label": number})


def jpegs(folder: Path, scale: float, *, minimum: int = 100, epochs: int = 1) -> Workload:
    """(b) JPEG images of 320x240, decoded and resized to 224x224, batches of 10."""
    count, batch = int(1200 * scale), 10
    path = str(folder / "jpegs.tfrecord")
    if not os.path.exists(path):
        write_jpegs(path, count)
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def decode(features: Any) -> Any:
        image = tf.cast(tf.image.decode_jpeg(features["image"], channels=3), tf.float32)
        image = tf1.image.resize_images(image, [224, 224])
        return tf.ensure_shape(image, [224, 224, 3]), features["label"]

    def build(threads: int) -> Any:
        names = tf1.train.string_input_producer([path], num_epochs=epochs, shuffle=False)
        parsed = tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], spec)
        capacity = minimum + 3 * batch
        return tf1.train.shuffle_batch(list(decode(parsed)), batch, capacity, minimum, num_threads=threads, seed=1)

    def usual() -> Any:
        images = tf.data.TFRecordDataset([path] * epochs).map(
            lambda record: decode(tf.io.parse_single_example(record, spec)), num_parallel_calls=AUTOTUNE
        )
        return images.shuffle(minimum).batch(batch, drop_remainder=True).prefetch(AUTOTUNE)

    def expert() -> Any:
        images = (
            tf.data.TFRecordDataset([path] * epochs)
            .shuffle(minimum)
            .map(lambda record: decode(tf.io.parse_single_example(record, spec)), num_parallel_calls=AUTOTUNE)
        )
        return images.batch(batch, drop_remainder=True).prefetch(AUTOTUNE)

    return Workload("JPEG 320x240 -> 224x224, batch 10", count, build, usual, expert)


def csv_lines(folder: Path, scale: float) -> Workload:
    """(c) CSV lines of 8 numbers and a label, batches of 64."""
    count, batch = int(30_000 * scale), 64
    path = folder / "lines.csv"
    random = np.random.default_rng(3)
    path.write_text("".join(",".join(f"{v:.4f}" for v in row) + ",1\n" for row in random.random((count, 8))))
    defaults = [[0.0]] * 8 + [[0]]

    def build(threads: int) -> Any:
        names = tf1.train.string_input_producer([str(path)], num_epochs=1, shuffle=False)
        *values, label = tf1.decode_csv(tf1.TextLineReader().read(names)[1], defaults)
        return tf1.train.shuffle_batch([tf.stack(values), label], batch, 1200, 1000, num_threads=threads, seed=1)

    def parse(line: Any, axis: int) -> Any:
        *values, label = tf.io.decode_csv(line, defaults)
        return tf.stack(values, axis=axis), label

    def usual() -> Any:
        rows = tf.data.TextLineDataset(str(path)).map(lambda line: parse(line, 0), num_parallel_calls=AUTOTUNE)
        return rows.shuffle(1000).batch(batch, drop_remainder=True).prefetch(AUTOTUNE)

    def expert() -> Any:
        lines = tf.data.TextLineDataset(str(path)).shuffle(1000).batch(batch, drop_remainder=True)
        return lines.map(lambda line: parse(line, 1), AUTOTUNE).prefetch(AUTOTUNE)

    return Workload("CSV lines of 9 columns, batch 64", count, build, usual, expert)


def fixed_length(folder: Path, scale: float) -> Workload:
    """(d) CIFAR-like records, cropped and flipped at random, batches of 128."""
    count, batch = int(12_000 * scale), 128
    path = folder / "cifar.bin"
    random = np.random.default_rng(4)
    path.write_bytes(random.integers(0, 256, (count, 3073), dtype=np.uint8).tobytes())

    def decode(record: Any) -> Any:
        values = tf.io.decode_raw(record, tf.uint8)
        image = tf.transpose(tf.reshape(values[1:3073], [3, 32, 32]), [1, 2, 0])
        image = tf1.random_crop(tf.cast(image, tf.float32), [24, 24, 3])
        image = tf1.image.random_flip_left_right(image)
        return image, tf.cast(values[0], tf.int32)

    def build(threads: int) -> Any:
        names = tf1.train.string_input_producer([str(path)], num_epochs=1, shuffle=False)
        record = tf1.FixedLengthRecordReader(3073).read(names)[1]
        return tf1.train.shuffle_batch(list(decode(record)), batch, 1400, 1000, num_threads=threads)

    def usual() -> Any:
        images = tf.data.FixedLengthRecordDataset(str(path), 3073).map(decode, num_parallel_calls=AUTOTUNE)
        return images.shuffle(1000).batch(batch, drop_remainder=True).prefetch(AUTOTUNE)

    def expert() -> Any:
        records = tf.data.FixedLengthRecordDataset(str(path), 3073).shuffle(1000)
        return records.map(decode, num_parallel_calls=AUTOTUNE).batch(batch, drop_remainder=True).prefetch(AUTOTUNE)

    return Workload("CIFAR-like, random crop and flip, batch 128", count, build, usual, expert)


WORKLOADS = {"a": floats, "b": jpegs, "c": csv_lines, "d": fixed_length}


def run_queue(build: Build, threads: int) -> float:
    """Seconds of the loop that TF1 programs have, without building the graph."""
    with tf.Graph().as_default():
        fetches = build(threads)
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            coord = tf1.train.Coordinator()
            start = time.perf_counter()
            runners = tf1.train.start_queue_runners(session, coord)
            try:
                while True:
                    session.run(fetches)
            except tf.errors.OutOfRangeError:
                pass
            seconds = time.perf_counter() - start
            coord.request_stop()
            coord.join(runners)
    return seconds


def run_dataset(dataset: Any) -> float:
    """Seconds of one pass, numpy in hand."""
    start = time.perf_counter()
    for _ in dataset.as_numpy_iterator():
        pass
    return time.perf_counter() - start


@contextmanager
def quiet() -> Iterator[None]:
    level = tf1.logging.get_verbosity()
    tf1.logging.set_verbosity("ERROR")
    try:
        yield
    finally:
        tf1.logging.set_verbosity(level)


def measure(name: str, folder: Path, scale: float, rounds: int) -> None:
    work = WORKLOADS[name](folder, scale)
    # Every dataset is made once, so that no round pays for tracing.
    native, usual, expert = tfqueue.to_dataset(lambda: work.build(1)), work.usual(), work.expert()
    ways: dict[str, Callable[[], float]] = {
        "queue, 1 thread": lambda: run_queue(work.build, 1),
        "queue, 4 threads": lambda: run_queue(work.build, 4),
        "usual tf.data": lambda: run_dataset(usual),
        "expert tf.data": lambda: run_dataset(expert),
        "tfqueue, native": lambda: run_dataset(native),
    }
    if name != "d":  # its shuffle has no seed
        replay = tfqueue.to_dataset(lambda: work.build(1), shuffle="replay")
        ways["tfqueue, replay"] = lambda: run_dataset(replay)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    processor: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        for way, run in list(ways.items())[:: -1 if number % 2 else 1]:
            used = time.process_time()
            seconds[way].append(run())
            processor[way].append(time.process_time() - used)
    medians = {way: statistics.median(values) for way, values in seconds.items()}
    print(f"({name}) {work.words}: {work.records} records")
    ours = medians["tfqueue, native"]
    for way, value in medians.items():
        spread = f"{min(seconds[way]):.2f} to {max(seconds[way]):.2f}"
        speed = f"{work.records / value:10.0f} records/s {value / ours:7.2f} x tfqueue"
        used = statistics.median(processor[way])
        print(f"    {way:18} {value:7.2f} s ({spread}), processors {used:5.2f} s {speed}", flush=True)


def peak() -> int:
    """The most memory that this process has used, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says begins with what the parent process had used
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) // 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000


PEAKS = ("queue, 1 thread", "queue, 4 threads", "usual tf.data", "expert tf.data", "tfqueue, native", "tfqueue, replay")


def peak_of(way: str, folder: Path, scale: float) -> None:
    """Run one way, and print the megabytes that were in use at the most, before it and in all."""
    # Enough epochs to fill the buffer.
    epochs = -(-2400 // int(1200 * scale))
    work = jpegs(folder, scale, minimum=2000, epochs=epochs)
    before = peak()
    if way.startswith("queue"):
        run_queue(work.build, 4 if "4" in way else 1)
    elif way.startswith("tfqueue"):
        run_dataset(tfqueue.to_dataset(lambda: work.build(1), shuffle=way.partition(", ")[2]))
    else:
        run_dataset(work.usual() if way.startswith("usual") else work.expert())
    print(before, peak())


def memory(folder: Path, scale: float) -> None:
    jpegs(folder, scale)
    print("peak memory of (b) with min_after_dequeue=2000")
    for way in PEAKS:
        command = [sys.executable, __file__, "--peak", way, "--folder", str(folder), "--scale", str(scale)]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        before, peak = map(int, found.split()[-2:])
        print(f"    {way:18} {peak:6} MB, of which {before} MB before it begins", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = [*sorted(WORKLOADS), "memory"]
    parser.add_argument("--workload", nargs="+", choices=choices, default=choices)
    parser.add_argument("--scale", type=float, default=1.0, help="1.0: the full number of records")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak", choices=PEAKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak is not None:
        with quiet():
            peak_of(arguments.peak, arguments.folder, arguments.scale)
        return 0
    print(
        f"tensorflow {tf.__version__}, {os.cpu_count()} cores, {platform.machine()}, python {platform.python_version()}"
    )
    with tempfile.TemporaryDirectory() as folder, quiet():
        for name in arguments.workload:
            if name == "memory":
                memory(Path(folder), arguments.scale)
            else:
                measure(name, Path(folder), arguments.scale, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
