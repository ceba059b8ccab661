"""T23: maybe_batch and its relatives, which keep an example only where a condition on it holds."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import paths, write_tfrecords
from .joins import JOIN, parse_vectors, vector_data
from .registry import NO_FAULT, Fault, Program, entry
from .tfrecords import PARSING, READING, parse_raw, raw_data, raw_twin

COUNT = 26


def keep(label):
    """Two of three, for numbers and tensors."""
    return label % 3 < 2


def _kept_program(folder: Path, epochs: int | None, fault: Fault, batch, shuffles: int = 1, **options) -> Program:
    """One reader; `batch` gets the image, the label and whether to keep them, and shuffles so many records."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        image, label = parse_raw(tf.TFRecordReader().read(queue)[1])
        return batch(image, label, keep(label))

    return Program(
        build_fn=build_fn,
        records=tuple(record for record in records if keep(record[1])),
        epochs=epochs,
        batch_size=4,
        in_flight=2 * COUNT,
        files=files,
        sources=COUNT,
        hand_written_twin=lambda: (
            raw_twin(paths(files), epochs)
            .filter(lambda _, label: keep(label))
            .shuffle(shuffles, seed=7)
            .batch(4, drop_remainder=True)
        ),
        **options,
    )


@entry("T23-maybe-batch", topology="T23", variants=("keep_input",), ordered=True, stages=(*READING, *PARSING))
def maybe_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    def batch(image, label, keep):
        return tf.train.maybe_batch([image, label], keep_input=keep, batch_size=4)

    return _kept_program(folder, epochs, fault, batch)


@entry(
    "T23-maybe-shuffle-batch",
    topology="T23",
    variants=("keep_input",),
    order_note="shuffled by maybe_shuffle_batch",
    stages=(*READING, *PARSING),
)
def maybe_shuffle_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    def batch(image, label, keep):
        return tf.train.maybe_shuffle_batch(
            [image, label],
            batch_size=4,
            capacity=16,
            min_after_dequeue=8,
            keep_input=keep,
            num_threads=2,
            seed=6,
        )

    return _kept_program(folder, epochs, fault, batch, shuffles=8, threads=2)


@entry(
    "T23-maybe-batch-join",
    topology="T23",
    variants=("keep_input",),
    order_note=JOIN,
    stages=(*READING, *PARSING),
)
def maybe_batch_join(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    def batch(image, label, keep):
        return tf.train.maybe_batch_join([[image, label]] * 3, keep_input=keep, batch_size=4)

    return _kept_program(folder, epochs, fault, batch, threads=3)


@entry(
    "T23-maybe-shuffle-batch-join",
    topology="T23",
    variants=("keep_input",),
    order_note=f"{JOIN}; shuffled",
    stages=(*READING, *PARSING),
)
def maybe_shuffle_batch_join(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    def batch(image, label, keep):
        return tf.train.maybe_shuffle_batch_join(
            [[image, label], [image, label]],
            batch_size=4,
            capacity=16,
            min_after_dequeue=8,
            keep_input=keep,
            seed=6,
        )

    return _kept_program(folder, epochs, fault, batch, shuffles=8, threads=2)


@entry(
    "T23-keep-vector",
    topology=("T23", "T8"),
    variants=("keep_input", "enqueue_many"),
    ordered=True,
    stages=(*READING, *PARSING),
)
def keep_vector(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """One decision for each example of a vector."""
    serialized, records = vector_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        ids, rgb = parse_vectors(tf.TFRecordReader().read_up_to(queue, 5)[1])
        return tf.train.maybe_batch([ids, rgb], keep_input=keep(ids), batch_size=3, enqueue_many=True)

    def twin():
        dataset = tf2.data.TFRecordDataset(paths(files)).repeat(epochs).batch(5).map(parse_vectors).unbatch()
        return dataset.filter(lambda number, _: keep(number)).batch(3, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple(record for record in records if keep(record[0])),
        epochs=epochs,
        batch_size=3,
        files=files,
        sources=COUNT,
        hand_written_twin=twin,
    )
