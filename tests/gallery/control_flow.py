"""Programs whose graphs hold TF1's own control flow: Switch, Merge, Enter, Exit instead of functions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import paths, write_tfrecords
from .filters import COUNT as FILTER_COUNT
from .filters import keep
from .registry import NO_FAULT, Fault, Program, entry
from .sparse import shuffled_program
from .tfrecords import COUNT, PARSING, READING, WRONG_LENGTH, parse_raw, raw_data, raw_twin
from .variants import read

STAGES = (*READING, *PARSING, WRONG_LENGTH)


@contextlib.contextmanager
def switch_and_merge() -> Iterator[None]:
    """Makes tf.cond and tf.while_loop build what they built in TF1, as after disable_v2_behavior."""
    enabled = tf.control_flow_v2_enabled()
    tf.disable_control_flow_v2()
    try:
        yield
    finally:
        if enabled:
            tf.enable_control_flow_v2()


@entry("T1-cond-switch-merge", topology="T1", variants=("tf.cond", "Switch and Merge"), ordered=True, stages=STAGES)
def cond_switch_merge(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Every third image is mirrored, another one brightened, by cond inside cond."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def change(value):
        image, label = parse_raw(value)
        image = tf.cond(
            tf.equal(label % 3, 0),
            lambda: tf.reverse(image, [1]),
            lambda: tf.cond(tf.equal(label % 3, 1), lambda: image + 1, lambda: image),
        )
        image.set_shape(records[0][0].shape)
        return image, label

    def build_fn():
        with switch_and_merge():
            return tf.train.batch(list(change(read(files, epochs))), batch_size=4)

    def expected(image, label):
        changed = (image[:, ::-1], image + np.uint8(1), image)[label % 3]
        return changed, label

    return Program(
        build_fn=build_fn,
        records=tuple(expected(*record) for record in records),
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=lambda: (
            tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(change).batch(4, drop_remainder=True)
        ),
    )


@entry("T1-while-enter-exit", topology="T1", variants=("while_loop", "Enter and Exit"), ordered=True, stages=STAGES)
def while_enter_exit(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """The image is added to itself as often as its label says."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def add(value):
        image, label = parse_raw(value)
        wide = tf.cast(image, tf.int32)
        _, total = tf.while_loop(
            lambda i, _: i < label % 5, lambda i, total: (i + 1, total + wide), (tf.constant(0), wide)
        )
        return total, label

    def build_fn():
        with switch_and_merge():
            return tf.train.batch(list(add(read(files, epochs))), batch_size=3, allow_smaller_final_batch=True)

    return Program(
        build_fn=build_fn,
        records=tuple((image.astype(np.int32) * np.int32(1 + label % 5), label) for image, label in records),
        epochs=epochs,
        batch_size=3,
        keep_remainder=True,
        files=files,
        hand_written_twin=lambda: tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(add).batch(3),
    )


@entry(
    "T23-maybe-batch-switch-merge",
    topology="T23",
    variants=("keep_input", "Switch and Merge"),
    ordered=True,
    stages=STAGES,
)
def maybe_batch_switch_merge(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """The enqueue itself stands in a branch."""
    serialized, records = raw_data(FILTER_COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        image, label = parse_raw(read(files, epochs))
        with switch_and_merge():
            return tf.train.maybe_batch([image, label], keep_input=keep(label), batch_size=4)

    return Program(
        build_fn=build_fn,
        records=tuple(record for record in records if keep(record[1])),
        epochs=epochs,
        batch_size=4,
        files=files,
        sources=FILTER_COUNT,
        hand_written_twin=lambda: (
            raw_twin(paths(files), epochs).filter(lambda _, label: keep(label)).batch(4, drop_remainder=True)
        ),
    )


@entry(
    "T23-sparse-switch-merge",
    topology=("T23", "T1"),
    variants=(
        "a SparseTensor carried through a queue (batch of SparseTensors)",
        "keep_input",
        "Switch and Merge",
    ),
    order_note="shuffled by maybe_shuffle_batch",
    stages=(*READING, *PARSING),
)
def sparse_switch_merge(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    return shuffled_program(folder, epochs, fault, switch_and_merge)
