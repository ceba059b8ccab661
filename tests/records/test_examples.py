"""Records from iterables of dicts, messages and bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tfqueue import records
from tfqueue.errors import RecordError


def example(number: int) -> Any:
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
    return tf.train.Example(features=tf.train.Features(feature={"n": feature}))


def test_dicts_messages_and_bytes(tmp_path: Path) -> None:
    mixed = [{"n": 0}, example(1), example(2).SerializeToString()]
    for source in (mixed, iter(mixed)):
        paths = records.write_examples(tmp_path / "a", source, shards=2, overwrite=True)
        assert [int(row["n"][0]) for row in records.read(paths)] == [0, 1, 2]
        assert [records.count(path) for path in paths] == [2, 1]


def test_what_is_no_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="record 1 is int; expected bytes"):
        records.write_examples(tmp_path / "a", [{"n": 0}, 3])
    assert os.listdir(tmp_path) == []


def test_records_over_two_gigabytes_are_refused_before_they_are_made(tmp_path: Path) -> None:
    class Huge:
        def ByteSize(self) -> int:  # noqa: N802 (the name that protobuf gives it)
            return 2**31

        def SerializeToString(self) -> bytes:  # noqa: N802
            raise AssertionError("was serialized")

    with pytest.raises(RecordError, match="record 0 would have 2147483648 bytes"):
        records.write_examples(tmp_path / "a", [Huge()])
    # Pages of zeros that nobody touches take no memory.
    zeros = np.zeros(2**31, np.uint8)
    with pytest.raises(RecordError, match=r"record 0 would have 21474\d+ bytes; a protobuf message holds at most 2 GB"):
        records.write_examples(tmp_path / "a", [{"x": zeros}])
    assert os.listdir(tmp_path) == []


def test_the_legacy_reader_and_tf_data_read_what_was_written(tmp_path: Path) -> None:
    tf1 = tf.compat.v1
    paths = records.write_examples(tmp_path / "names with a,b*[1] é", ({"n": number} for number in range(10)), shards=3)
    spec = {"n": tf.io.FixedLenFeature([], tf.int64)}
    dataset = tf.data.TFRecordDataset(paths)
    assert [int(tf.io.parse_single_example(payload, spec)["n"]) for payload in dataset] == list(range(10))
    with tf.Graph().as_default():
        queue = tf1.train.string_input_producer(paths, num_epochs=1, shuffle=False)
        _, serialized = tf1.TFRecordReader().read(queue)
        number = tf1.parse_single_example(serialized, spec)["n"]
        init = [tf1.global_variables_initializer(), tf1.local_variables_initializer()]
        found = []
        with tf1.Session() as session:
            session.run(init)
            coord = tf1.train.Coordinator()
            threads = tf1.train.start_queue_runners(session, coord)
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    found.append(int(session.run(number)))
            coord.request_stop()
            coord.join(threads)
    assert found == list(range(10))


def test_the_package_tfrecord_reads_what_was_written(tmp_path: Path) -> None:
    """In a process of its own, because it registers the messages that TensorFlow registers too.

    TFQUEUE_TFRECORD_PYTHON may name an interpreter that has the package.
    """
    python = os.environ.get("TFQUEUE_TFRECORD_PYTHON", sys.executable)
    rows = [{"label": number, "x": [0.5, number / 2], "image": bytes([number]) * number} for number in range(1, 6)]
    (path,) = records.write_examples(tmp_path / "a.tfrecord", rows)
    program = (
        "import sys, json\n"
        "try:\n"
        "    from tfrecord.reader import tfrecord_loader\n"
        "except ImportError:\n"
        "    sys.exit(77)\n"
        "for row in tfrecord_loader(sys.argv[1], None):\n"
        "    row = {name: bytes(value).hex() if name == 'image' else list(map(float, value))\n"
        "           for name, value in row.items()}\n"
        "    print(json.dumps(row))\n"
    )
    done = subprocess.run([python, "-c", program, path], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("the package tfrecord is not installed")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == [
        {"label": [row["label"]], "x": row["x"], "image": bytes(row["image"]).hex()}  # type: ignore[arg-type]
        for row in rows
    ]
