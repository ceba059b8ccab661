"""T27 and relatives: several pipelines in one graph, queues chosen per step, several consumers of one queue."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import paths, write_lines, write_tfrecords
from .registry import BAD_FIELD, NO_FAULT, Fault, Program, entry
from .tfrecords import PARSING, READING, WRONG_LENGTH, parse_raw, raw_data, raw_twin

COUNT = 20
SIZE = 4


def whole(batch) -> list:
    """The whole fetch of a step as one record."""
    return [batch]


def chunks(records, size: int) -> list[tuple[np.ndarray, ...]]:
    """The full batches of records in order, one array a component."""
    full = range(0, len(records) - size + 1, size)
    return [tuple(np.stack(column) for column in zip(*records[i : i + size], strict=True)) for i in full]


def read_batch(files: list[str], epochs: int | None, size: int) -> list[tf.Tensor]:
    """The two-line pipeline that such programs build once for each data set."""
    queue = tf.train.string_input_producer(files, num_epochs=epochs, shuffle=False)
    return tf.train.batch(list(parse_raw(tf.TFRecordReader().read(queue)[1])), batch_size=size)


@entry(
    "T27-train-val-fetched",
    topology=("T27", "T1"),
    variants=("two pipelines in one graph", "the model built twice"),
    ordered=True,
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def train_val_fetched(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """Both batches are fetched in every step; the validation data goes round, the training data ends it all."""
    serialized, records = raw_data(COUNT, fault)
    held_out_serialized, held_out = raw_data(6, NO_FAULT)
    files = write_tfrecords(folder, serialized, fault=fault)
    others = write_tfrecords(folder, held_out_serialized, name="val", files=1)

    def build_fn():
        with tf.name_scope("train"):
            train = read_batch(paths(files), 1, SIZE)
        with tf.name_scope("val"):
            val = read_batch(paths(others), None, 3)
        return {"train": train, "val": val}

    def twin():
        train = raw_twin(paths(files), 1).batch(SIZE, drop_remainder=True)
        val = raw_twin(paths(others), None).batch(3)
        return tf2.data.Dataset.zip({"train": train, "val": val})

    steps = COUNT // SIZE
    expected = [
        {"train": train, "val": val}
        for train, val in zip(chunks(records, SIZE), chunks(held_out * steps, 3)[:steps], strict=True)
    ]
    return Program(
        build_fn=build_fn,
        records=tuple(expected),
        batch_size=1,
        files=files,
        sources=COUNT,
        unbatch=whole,
        hand_written_twin=twin,
    )


@entry(
    "T27-queue-from-list",
    topology="T27",
    variants=("queues chosen per step (QueueBase.from_list with a placeholder index)",),
    ordered=True,
    why_not="which queue a step reads is fed step by step",
    stages=(*READING, *PARSING),
)
def queue_from_list(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """Every third step reads the validation queue."""
    serialized, records = raw_data(COUNT, fault)
    held_out_serialized, held_out = raw_data(12, NO_FAULT)
    files = write_tfrecords(folder, serialized, fault=fault)
    others = write_tfrecords(folder, held_out_serialized, name="val")

    def build_fn():
        queues = []
        for name, source in (("train", files), ("val", others)):
            producer = tf.train.string_input_producer(paths(source), num_epochs=1, shuffle=False, name=name)
            image, label = parse_raw(tf.TFRecordReader().read(producer)[1])
            queue = tf.FIFOQueue(10, [image.dtype, label.dtype], [image.shape, label.shape], name=f"{name}_queue")
            tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([image, label])]))
            queues.append(queue)
        phase = tf.placeholder(tf.int32, [], name="phase")
        selected = tf.QueueBase.from_list(phase, queues)
        return selected.dequeue_many(SIZE)

    def phase(step):
        return int(step % 3 == 2)

    train, val = iter(chunks(records, SIZE)), iter(chunks(held_out, SIZE))
    expected = []
    for step in range(7):  # Training data for five batches, and two of validation between them.
        expected.append(next(val if phase(step) else train))
    return Program(
        build_fn=build_fn,
        records=tuple(expected),
        batch_size=1,
        files=files,
        sources=COUNT,
        unbatch=whole,
        feed=lambda step: {"phase:0": phase(step)},
    )


@entry(
    "T27-cond-phase",
    topology="T27",
    variants=("batches of two pipelines chosen per step by tf.cond", "tf.cond"),
    ordered=True,
    why_not="which batch a step sees is fed step by step, and every step dequeues both",
    stages=(*READING, *PARSING),
)
def cond_phase(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """The batch ops stand outside the cond, so each step takes a batch of both and throws one away."""
    serialized, records = raw_data(COUNT, fault)
    held_out_serialized, held_out = raw_data(24, NO_FAULT)
    files = write_tfrecords(folder, serialized, fault=fault)
    others = write_tfrecords(folder, held_out_serialized, name="val")

    def build_fn():
        train = read_batch(paths(files), 1, SIZE)
        val = read_batch(paths(others), 1, SIZE)
        is_training = tf.placeholder(tf.bool, [], name="is_training")
        return tf.cond(is_training, lambda: [tf.identity(t) for t in train], lambda: [tf.identity(t) for t in val])

    train, val = chunks(records, SIZE), chunks(held_out, SIZE)
    return Program(
        build_fn=build_fn,
        records=tuple((train if step % 2 == 0 else val)[step] for step in range(COUNT // SIZE)),
        batch_size=1,
        files=files,
        sources=COUNT,
        unbatch=whole,
        feed=lambda step: {"is_training:0": step % 2 == 0},
    )


@entry(
    "T11-towers-one-queue",
    topology=("T11", "T17"),
    variants=("several consumers of one queue (one dequeue per tower)",),
    order_note="two dequeues of one step race for the batches",
    stages=(*READING, *PARSING),
)
def towers(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Ready batches wait in one queue; each of two towers dequeues its own."""
    serialized, records = raw_data(24, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        batch = read_batch(paths(files), epochs, SIZE)
        queue = tf.FIFOQueue(4, [t.dtype for t in batch], [t.shape for t in batch], name="batch_queue")
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(batch)]))
        towers = []
        for i in range(2):
            with tf.name_scope(f"tower_{i}"):
                towers.append(queue.dequeue())
        return towers

    def unbatch(step):
        return [(images[i], labels[i]) for images, labels in step for i in range(SIZE)]

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=2 * SIZE,
        in_flight=64,
        files=files,
        unbatch=unbatch,
        hand_written_twin=lambda: (
            raw_twin(paths(files), epochs)
            .batch(SIZE, drop_remainder=True)
            .batch(2, drop_remainder=True)
            .map(lambda images, labels: [(images[0], labels[0]), (images[1], labels[1])])
        ),
    )


@entry(
    "T21-records-and-lines",
    topology=("T21", "T27"),
    variants=("implicit zip", "two readers of different kinds dequeued by one enqueue"),
    ordered=True,
    stages=(*READING, *PARSING, BAD_FIELD),
    style="vid2depth: images of one reader and numbers of another meet in one batch",
)
def records_and_lines(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)
    lines = [f"{i * 0.5},{i}" if not fault.at(BAD_FIELD, i) else f"half,{i}" for i in range(COUNT)]
    tables = write_lines(folder, lines, files=3)

    def decode(line):
        return tf.stack([tf.cast(v, tf.float32) for v in tf.decode_csv(line, [[0.0], [0]])])

    def build_fn():
        image_paths = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        table_paths = tf.train.string_input_producer(paths(tables), num_epochs=epochs, shuffle=False)
        image, label = parse_raw(tf.TFRecordReader().read(image_paths)[1])
        row = decode(tf.TextLineReader().read(table_paths)[1])
        return tf.train.batch([image, label, row], batch_size=3)

    def twin():
        rows = tf2.data.TextLineDataset(paths(tables)).repeat(epochs).map(decode)
        dataset = tf2.data.Dataset.zip((raw_twin(paths(files), epochs), rows))
        return dataset.map(lambda pair, row: (*pair, row)).batch(3, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple((*record, np.array([i * 0.5, i], np.float32)) for i, record in enumerate(records)),
        epochs=epochs,
        batch_size=3,
        files=files,
        hand_written_twin=twin,
    )


@entry(
    "T27-two-independent",
    topology=("T27", "T1"),
    variants=("two pipelines in one graph",),
    order_note="both are shuffled, each by itself",
    stages=(*READING, *PARSING),
    style="CycleGAN: two independent readers, X and Y, in one graph",
)
def two_independent(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)
    other_serialized, others = raw_data(COUNT, NO_FAULT)
    other_files = write_tfrecords(folder, other_serialized, name="other")

    def feed(source, name, seed):
        with tf.name_scope(name):
            queue = tf.train.string_input_producer(paths(source), num_epochs=1, shuffle=False)
            image, label = parse_raw(tf.TFRecordReader().read(queue)[1])
            return tf.train.shuffle_batch(
                [image, label], batch_size=2, num_threads=2, capacity=12, min_after_dequeue=6, seed=seed
            )

    def build_fn():
        return feed(files, "X", 1), feed(other_files, "Y", 2)

    def unbatch(step):
        (x, x_labels), (y, y_labels) = step
        return [(x[i], x_labels[i], y[i], y_labels[i]) for i in range(2)]

    def twin():
        def one(source, seed):
            return raw_twin(paths(source), 1).shuffle(6, seed=seed).batch(2, drop_remainder=True)

        return tf2.data.Dataset.zip((one(files, 1), one(other_files, 2)))

    return Program(
        build_fn=build_fn,
        records=tuple((*a, *b) for a, b in zip(records, others, strict=True)),
        batch_size=2,
        files=files,
        threads=2,
        independent_columns=True,
        unbatch=unbatch,
        hand_written_twin=twin,
    )
