"""How fast records are written, checked and found, beside the ways that people use today.

Each pair is measured side by side in one run, in turns, and the best of each is taken: what a machine does besides only
ever adds time. Run it with

    python benchmarks/records.py [--quick]

It prints one line a claim, with its goal, and exits with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import collections
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from tfqueue import records
from tfqueue.records.encode import ExampleEncoder
from tfqueue.records.index import file_index


@dataclass(frozen=True)
class Result:
    """One line: what was measured, the goal, and whether it was reached."""

    claim: str
    measured: str
    goal: str
    reached: bool | None  # None where there is no goal


def best(*functions: Callable[[], Any], repeat: int, times: int = 1) -> list[float]:
    """Returns the seconds that one call of each function takes at best, measured in turns."""
    seconds = [float("inf")] * len(functions)
    for _ in range(repeat):
        for position, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(times):
                function()
            seconds[position] = min(seconds[position], (time.perf_counter() - start) / times)
    return seconds


def ratio(claim: str, theirs: float, ours: float, goal: float | None) -> Result:
    words = f"{theirs * 1e6:,.1f} us against {ours * 1e6:,.1f} us: {theirs / ours:,.1f} x"
    if goal is None:
        return Result(claim, words, "none", None)
    return Result(claim, words, f"at least {goal} x", theirs / ours >= goal)


def float_feature(values: Any) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def int64_feature(values: Any) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def bytes_feature(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def serialized(feature: dict[str, tf.train.Feature]) -> bytes:
    example: bytes = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    return example


def encoding(repeat: int) -> list[Result]:
    """A record in memory: the loop of the documents against ExampleEncoder."""
    rng = np.random.default_rng(0)
    encoder = ExampleEncoder(layout="list")
    results = []

    image = rng.random((224, 224, 3), np.float32)
    assert encoder.encode({"X": image}) == serialized({"X": float_feature(image.flatten())})
    theirs, ours = best(
        lambda: serialized({"X": float_feature(image.flatten())}), lambda: encoder.encode({"X": image}), repeat=repeat
    )
    results.append(ratio("float_list of 224x224x3, encoded", theirs, ours, 100))

    for words, values, goal in (
        ("labels below 100", rng.integers(0, 100, 10_000), 10),
        ("counts from 0", np.arange(10_000), 10),
        ("token ids below 50,000", rng.integers(0, 50_000, 10_000), 10),
        # Long varints are work for anybody.
        ("any up to 2**31", rng.integers(0, 2**31, 10_000), None),
        ("any at all", rng.integers(-(2**63), 2**63 - 1, 10_000), None),
    ):
        assert encoder.encode({"y": values}) == serialized({"y": int64_feature(values)})
        theirs, ours = best(
            lambda values=values: serialized({"y": int64_feature(values)}),
            lambda values=values: encoder.encode({"y": values}),
            repeat=3 * repeat,
        )
        results.append(ratio(f"int64_list of 10,000 values ({words})", theirs, ours, goal))

    matrix, floats = np.array([[1, 2], [3, 4]], np.int32), [1.1, 2.2, 3.3]

    def document() -> bytes:
        features = collections.OrderedDict()
        features["inputs_1"] = bytes_feature(matrix.tobytes())
        features["inputs_2"] = float_feature(list(floats))
        features["labels"] = int64_feature([1])
        return serialized(features)

    def same() -> bytes:
        return encoder.encode({"inputs_1": matrix.tobytes(), "inputs_2": floats, "labels": 1})

    assert tf.train.Example.FromString(same()) == tf.train.Example.FromString(document())
    theirs, ours = best(document, same, repeat=3 * repeat, times=1000)
    results.append(ratio("small mixed record, the same content", theirs, ours, 1.5))
    typed = ExampleEncoder()
    theirs, ours = best(
        document,
        lambda: typed.encode({"inputs_1": matrix, "inputs_2": floats, "labels": 1}),
        repeat=3 * repeat,
        times=1000,
    )
    results.append(ratio("small mixed record, with dtype and shape stored too", theirs, ours, 1.5))
    return results


def writing(folder: str, repeat: int) -> list[Result]:
    """Whole files: the loops of the documents, and tf.io.TFRecordWriter given bytes."""
    path = os.path.join(folder, "a.tfrecord")
    images = np.random.default_rng(0).random((8, 224, 224, 3), np.float32)
    labels = np.arange(8)

    def document() -> None:
        with tf.io.TFRecordWriter(path) as writer:
            for image, label in zip(images, labels, strict=True):
                writer.write(serialized({"X": float_feature(image.flatten()), "y": int64_feature([label])}))

    def tfqueue_arrays() -> None:
        with without_fsync():
            records.write_arrays(path, {"X": images, "y": labels}, layout="list", overwrite=True)

    theirs, ours = best(
        document,
        tfqueue_arrays,
        repeat=repeat,
    )
    results = [ratio("8 images of 224x224x3 floats, into a file", theirs, ours, 20)]

    for size, count in ((100, 100_000), (10_000, 10_000), (100_000, 1000), (2_000_000, 50)):
        payload = np.random.default_rng(0).bytes(size)

        def tensorflow(payload: bytes = payload, count: int = count) -> None:
            with tf.io.TFRecordWriter(path) as writer:
                for _ in range(count):
                    writer.write(payload)

        def tfqueue(payload: bytes = payload, count: int = count) -> None:
            with without_fsync(), records.RecordWriter(path, overwrite=True) as writer:
                for _ in range(count):
                    writer.write_serialized(payload)

        theirs, ours = best(tensorflow, tfqueue, repeat=repeat)
        words = f"{theirs:.3f} s against {ours:.3f} s: {ours / theirs:.2f} x the time"
        results.append(
            Result(f"{count:,} ready records of {size:,} bytes", words, "at most 1.2 x", ours <= 1.2 * theirs)
        )
    return results


class without_fsync:  # noqa: N801 (used like a function)
    """os.fsync does nothing inside: it makes a file durable, which TensorFlow's writer does not do."""

    def __enter__(self) -> None:
        self._fsync = os.fsync
        os.fsync = lambda descriptor: None  # type: ignore[assignment]

    def __exit__(self, *error: object) -> None:
        os.fsync = self._fsync


def reading(folder: str, repeat: int, gigabytes: float) -> list[Result]:
    """Checks, indexes and random access; and the memory that writing takes."""
    results = []
    path = os.path.join(folder, "large.tfrecord")
    payload = np.random.default_rng(0).bytes(100_000)
    count = int(gigabytes * 10_000)
    with records.RecordWriter(path) as writer:
        for _ in range(1000):
            writer.write_serialized(payload)
        before = peak()
        for _ in range(count - 1000):
            writer.write_serialized(payload)
    grown = peak() - before
    words = f"{grown / 1e6:.1f} MB more after {gigabytes:g} GB than after 0.1 GB"
    results.append(Result("memory while writing", words, "at most 5 MB", grown <= 5e6))

    (seconds,) = best(lambda: records.verify(path), repeat=repeat)
    speed = os.path.getsize(path) / seconds / 1e9
    results.append(Result("verify, records of 100 kB", f"{speed:.2f} GB/s", "at least 1 GB/s", speed >= 1))

    reader = records.RecordReader(path)
    numbers = np.random.default_rng(1).integers(0, len(reader), 200).tolist()
    (seconds,) = best(lambda: [reader.payload(number) for number in numbers], repeat=10 * repeat)
    each = seconds / len(numbers) * 1e6
    results.append(Result("a record of 100 kB by number", f"{each:.1f} us", "under 100 us", each < 100))
    os.unlink(path)

    path = os.path.join(folder, "small.tfrecord")
    count = 1_000_000
    with records.RecordWriter(path) as writer:
        for number in range(count):
            writer.write({"label": number % 10, "x": 0.5, "name": "some words"})
    (seconds,) = best(lambda: file_index(path, keep=False), repeat=repeat)
    results.append(Result("index of 1,000,000 small records", f"{seconds:.2f} s", "under 2 s", seconds < 2))
    reader = records.RecordReader(path)
    numbers = np.random.default_rng(1).integers(0, len(reader), 500).tolist()
    (seconds,) = best(lambda: [reader[number] for number in numbers], repeat=10 * repeat)
    each = seconds / len(numbers) * 1e6
    results.append(Result("a small record by number, parsed", f"{each:.1f} us", "under 100 us", each < 100))
    return results


def peak() -> int:
    """Returns the largest memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and a tenth of the data")
    quick = parser.parse_args().quick
    repeat = 3 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        # The memory first: later its peak would be that of something else.
        results = reading(folder, repeat, 0.2 if quick else 1.0)
        results += encoding(repeat)
        results += writing(folder, repeat)
    width = max(len(result.claim) for result in results)
    for result in results:
        verdict = {True: "ok    ", False: "MISSED", None: "      "}[result.reached]
        print(f"{verdict} {result.claim:{width}}  {result.measured} (goal: {result.goal})")
    return 1 if any(result.reached is False for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
