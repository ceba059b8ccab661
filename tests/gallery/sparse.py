"""SparseTensors: through a queue as they are, serialized, or parsed from a batch of strings."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import broken, example, paths, write_tfrecords
from .registry import NO_FAULT, Fault, Program, entry
from .tfrecords import COUNT, PARSING, READING
from .variants import read


def _sparse_data(fault: Fault) -> tuple[list[bytes], list[dict]]:
    rows = [{"id": i, "tags": np.arange(i % 4) + 10 * i, "weight": i / 8} for i in range(COUNT)]
    return [example(**broken(fault, i, row, key="id")) for i, row in enumerate(rows)], rows


SPARSE_SPEC = {
    "id": tf.FixedLenFeature([], tf.int64),
    "tags": tf.VarLenFeature(tf.int64),
    "weight": tf.FixedLenFeature([], tf.float32),
}


def parse_sparse(value: tf.Tensor) -> dict[str, tf.Tensor]:
    return tf.parse_single_example(value, SPARSE_SPEC)


def _sparse_record(row: dict) -> dict:
    n = len(row["tags"])
    tags = {
        "indices": np.arange(n, dtype=np.int64).reshape(n, 1),
        "values": row["tags"],
    }
    return {"id": np.int64(row["id"]), "tags": tags, "weight": np.float32(row["weight"])}


@entry(
    "T1-sparse-batch",
    topology="T1",
    variants=("a SparseTensor carried through a queue (batch of SparseTensors)", "dictionary"),
    ordered=True,
    stages=(*READING, *PARSING),
)
def sparse_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, rows = _sparse_data(fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        return tf.train.batch(parse_sparse(read(files, epochs)), batch_size=4)

    return Program(
        build_fn=build_fn,
        records=tuple(_sparse_record(row) for row in rows),
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=lambda: (
            tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(parse_sparse).batch(4, drop_remainder=True)
        ),
    )


@entry(
    "T1-sparse-serialized",
    topology=("T1", "T10"),
    variants=("a SparseTensor carried through a queue (serialize_sparse, deserialize_many_sparse)",),
    order_note="two branches of a batch_join",
    stages=(*READING, *PARSING),
    style="street: the label of a picture, sparse, goes serialized through batch_join",
)
def sparse_serialized(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, rows = _sparse_data(fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        branches = []
        for _ in range(2):
            features = parse_sparse(tf.TFRecordReader().read(queue)[1])
            branches.append([features["id"], tf.serialize_sparse(features["tags"])])
        ids, tags = tf.train.batch_join(branches, batch_size=4, allow_smaller_final_batch=True)
        return {"id": ids, "tags": tf.deserialize_many_sparse(tags, tf.int64)}

    def twin():
        dataset = tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(parse_sparse)
        return dataset.map(lambda f: {"id": f["id"], "tags": f["tags"]}).batch(4)

    return Program(
        build_fn=build_fn,
        records=tuple({k: v for k, v in _sparse_record(row).items() if k != "weight"} for row in rows),
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        in_flight=3 * COUNT,
        files=files,
        threads=2,
        hand_written_twin=twin,
    )


@entry(
    "T1-sparse-after-batch",
    topology="T1",
    variants=("shuffling serialized strings before parsing", "parse after the batch op", "dictionary"),
    order_note="shuffled by shuffle_batch",
    stages=(*READING, *PARSING),
)
def sparse_after_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """parse_example makes one SparseTensor of a whole batch of strings."""
    serialized, rows = _sparse_data(fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        batch = tf.train.shuffle_batch(
            [read(files, epochs)], batch_size=4, capacity=14, min_after_dequeue=8, num_threads=2, seed=5
        )
        return tf.parse_example(batch, SPARSE_SPEC)

    def twin():
        dataset = tf2.data.TFRecordDataset(paths(files)).repeat(epochs).shuffle(8, seed=5)
        return dataset.batch(4, drop_remainder=True).map(lambda batch: tf2.io.parse_example(batch, SPARSE_SPEC))

    return Program(
        build_fn=build_fn,
        records=tuple(_sparse_record(row) for row in rows),
        epochs=epochs,
        batch_size=4,
        in_flight=24,
        files=files,
        threads=2,
        hand_written_twin=twin,
    )


def shuffled_program(folder: Path, epochs: int | None, fault: Fault, control_flow) -> Program:
    """Examples with a SparseTensor, of which those without any value are left out."""
    serialized, rows = _sparse_data(fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        features = parse_sparse(read(files, epochs))
        with control_flow():
            return tf.train.maybe_shuffle_batch(
                features,
                batch_size=3,
                capacity=12,
                min_after_dequeue=6,
                keep_input=tf.size(features["tags"].values) > 0,
                allow_smaller_final_batch=True,
                seed=6,
            )

    def twin():
        dataset = tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(parse_sparse)
        dataset = dataset.filter(lambda features: tf2.size(features["tags"].values) > 0)
        return dataset.shuffle(6, seed=6).batch(3)

    return Program(
        build_fn=build_fn,
        records=tuple(_sparse_record(row) for row in rows if len(row["tags"])),
        epochs=epochs,
        batch_size=3,
        keep_remainder=True,
        in_flight=24,
        files=files,
        sources=COUNT,
        hand_written_twin=twin,
    )


@entry(
    "T23-sparse-shuffled",
    topology=("T23", "T1"),
    variants=("a SparseTensor carried through a queue (batch of SparseTensors)", "keep_input"),
    order_note="shuffled by maybe_shuffle_batch",
    stages=(*READING, *PARSING),
    needs="maybe_* looks for the op behind a SparseTensor, which a cond of today's control flow hides",
)
def sparse_shuffled(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    return shuffled_program(folder, epochs, fault, contextlib.nullcontext)
