"""Variants inside a chain that change what a conversion means."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import broken, crop_free, example, paths, pixels, raw_bytes, sequence_example, write_tfrecords
from .registry import NO_FAULT, Fault, Program, entry
from .tfrecords import (
    COUNT,
    HEIGHT,
    PARSING,
    RAW_SPEC,
    READING,
    WIDTH,
    WRONG_LENGTH,
    parse_raw,
    raw_data,
    raw_twin,
)

RAW_STAGES = (*READING, *PARSING, WRONG_LENGTH)


def read(files, epochs: int | None) -> tf.Tensor:
    """One serialized example."""
    filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
    return tf.TFRecordReader().read(filename_queue)[1]


@entry(
    "T1-parse-after-batch",
    topology="T1",
    variants=("shuffling serialized strings before parsing", "parse after the batch op"),
    order_note="shuffled by shuffle_batch",
    stages=RAW_STAGES,
)
def parse_after_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def parse(batch):
        features = tf.parse_example(batch, RAW_SPEC)

        def decode(raw):
            return tf.reshape(tf.decode_raw(raw, tf.uint8), [HEIGHT, WIDTH, 3])

        return tf.map_fn(decode, features["image_raw"], dtype=tf.uint8), tf.to_int32(features["label"])

    def build_fn():
        batch = tf.train.shuffle_batch(
            [read(files, epochs)],
            batch_size=4,
            capacity=14,
            min_after_dequeue=8,
            allow_smaller_final_batch=True,
            seed=1,
        )
        return parse(batch)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        in_flight=24,
        files=files,
        hand_written_twin=lambda: (
            tf2.data.TFRecordDataset(paths(files)).repeat(epochs).shuffle(8, seed=1).batch(4).map(parse)
        ),
    )


@entry(
    "T1-augment-after-batch",
    topology="T1",
    variants=("crop or augment after the batch op", "random image ops with op seeds"),
    ordered=True,
    random_ops=True,
    stages=RAW_STAGES,
)
def augment_after_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """One crop for the whole batch, in the step itself and not in a runner."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def augment(images, labels):
        return tf.random_crop(images, [4, 3, 3, 3], seed=21), labels

    def build_fn():
        images, labels = tf.train.batch(list(parse_raw(read(files, epochs))), 4)
        return augment(images, labels)

    def normal(record):
        return crop_free(record[0]), record[1]

    return Program(
        build_fn=build_fn,
        records=tuple(normal((image[:3, :3], label)) for image, label in records),
        epochs=epochs,
        batch_size=4,
        files=files,
        invariant=normal,
        hand_written_twin=lambda: raw_twin(paths(files), epochs).batch(4, drop_remainder=True).map(augment),
        twin_note="another stream of random numbers",
    )


@entry("T1-dead-queue", topology="T1", variants=("dead queues in the graph",), ordered=True, stages=RAW_STAGES)
def dead_queue(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """A second batch is built and never fetched; its runner fills its queue once and waits."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)
    unused = write_tfrecords(folder, raw_data(30, NO_FAULT)[0], name="unused")

    def build_fn():
        image, label = parse_raw(read(unused, None))
        tf.train.batch([image, label], 4, capacity=8, name="never_fetched")
        tf.FIFOQueue(10, [tf.float32], name="without_enqueue")
        return tf.train.batch(list(parse_raw(read(files, epochs))), 4)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=lambda: raw_twin(paths(files), epochs).batch(4, drop_remainder=True),
    )


@entry(
    "T1-several-examples-a-record",
    topology="T1",
    variants=("one record gives several examples (enqueue_many)",),
    ordered=True,
    stages=RAW_STAGES,
)
def several_examples(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Each row of pixels of an image is an example."""
    serialized, records = raw_data(9, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def rows(value):
        image, label = parse_raw(value)
        return image, tf.fill([HEIGHT], label), tf.range(HEIGHT)

    def build_fn():
        return tf.train.batch(list(rows(read(files, epochs))), batch_size=5, enqueue_many=True, capacity=10)

    return Program(
        build_fn=build_fn,
        records=tuple((image[row], label, np.int32(row)) for image, label in records for row in range(HEIGHT)),
        epochs=epochs,
        batch_size=5,
        files=files,
        sources=9,
        hand_written_twin=lambda: (
            tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(rows).unbatch().batch(5, drop_remainder=True)
        ),
    )


@entry(
    "T1-single-example-enqueue-many",
    topology="T1",
    variants=("a [1, ...] example with enqueue_many",),
    order_note="shuffled by shuffle_batch",
    stages=RAW_STAGES,
)
def single_example_enqueue_many(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        image, label = parse_raw(read(files, epochs))
        return tf.train.shuffle_batch(
            [tf.expand_dims(image, 0), tf.expand_dims(label, 0)],
            batch_size=4,
            capacity=14,
            min_after_dequeue=8,
            enqueue_many=True,
            seed=3,
        )

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        in_flight=24,
        files=files,
        hand_written_twin=lambda: raw_twin(paths(files), epochs).shuffle(8, seed=3).batch(4, drop_remainder=True),
    )


@entry("T1-while-loop", topology="T1", variants=("while_loop",), ordered=True, stages=RAW_STAGES)
def while_loop(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """The image is turned as often as its label says."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def turn(value):
        image, label = parse_raw(value)
        _, image = tf.while_loop(
            lambda i, _: i < label % 4,
            lambda i, im: (i + 1, tf.reverse(im + 1, [1])),
            (tf.constant(0), image),
        )
        return image, label

    def build_fn():
        return tf.train.batch(list(turn(read(files, epochs))), 3, allow_smaller_final_batch=True)

    def expected(image, label):
        for _ in range(label % 4):
            image = (image + np.uint8(1))[:, ::-1]
        return image, label

    return Program(
        build_fn=build_fn,
        records=tuple(expected(*record) for record in records),
        epochs=epochs,
        batch_size=3,
        keep_remainder=True,
        files=files,
        hand_written_twin=lambda: tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(turn).batch(3),
    )


@entry(
    "T1-variable-in-a-stage",
    topology="T1",
    variants=("a stage reads a variable",),
    ordered=True,
    stages=RAW_STAGES,
)
def variable_in_a_stage(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """A mean image, kept in a variable as programs do that load it from a file, is subtracted."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)
    mean = np.arange(HEIGHT * WIDTH * 3, dtype=np.float32).reshape(HEIGHT, WIDTH, 3) / 2

    def build_fn():
        mean_image = tf.get_variable("mean_image", initializer=mean, trainable=False)
        image, label = parse_raw(read(files, epochs))
        return tf.train.batch([tf.to_float(image) - mean_image, label], 4)

    return Program(
        build_fn=build_fn,
        records=tuple((image.astype(np.float32) - mean, label) for image, label in records),
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=lambda: (
            raw_twin(paths(files), epochs)
            .map(lambda image, label: (tf2.cast(image, tf2.float32) - mean, label))
            .batch(4, drop_remainder=True)
        ),
    )


@entry(
    "T1-reads-global-step",
    topology="T1",
    variants=("a pipeline that reads a training variable (global_step)",),
    ordered=True,
    order_note="the value that a record sees is the step's at the time when its runner read it",
    stages=RAW_STAGES,
)
def reads_global_step(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Nothing trains here, so the step stays 0 and the noise that grows with it stays away."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        global_step = tf.train.get_or_create_global_step()
        image, label = parse_raw(read(files, epochs))
        noise = tf.random_normal([HEIGHT, WIDTH, 3], stddev=1.0, seed=4)
        image = tf.to_float(image) + noise * tf.to_float(global_step)
        return tf.train.batch([image, label], 4)

    return Program(
        build_fn=build_fn,
        records=tuple((image.astype(np.float32), label) for image, label in records),
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=lambda: (
            raw_twin(paths(files), epochs)
            .map(lambda image, label: (tf2.cast(image, tf2.float32), label))
            .batch(4, drop_remainder=True)
        ),
    )


@entry(
    "T1-state-between-steps",
    topology="T1",
    variants=("state carried between steps", "code that relies on order"),
    ordered=True,
    why_not="each step adds to a variable that it also delivers",
    stages=RAW_STAGES,
)
def state_between_steps(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """The running total of the labels is delivered with each batch."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        total = tf.Variable(0, trainable=False, name="total", use_resource=True)
        images, labels = tf.train.batch(list(parse_raw(read(files, 1))), 4)
        return {"images": images, "labels": labels, "total": total.assign_add(tf.reduce_sum(labels))}

    full = COUNT // 4
    totals = np.cumsum([sum(label for _, label in records[4 * i : 4 * i + 4]) for i in range(full)])
    return Program(
        build_fn=build_fn,
        records=tuple(
            {"images": image, "labels": label, "total": np.int32(totals[i // 4])}
            for i, (image, label) in enumerate(records[: 4 * full])
        ),
        batch_size=4,
        files=files,
        sources=COUNT,
        unbatch=lambda batch: [
            {"images": image, "labels": label, "total": batch["total"]}
            for image, label in zip(batch["images"], batch["labels"], strict=True)
        ],
    )


Frames = namedtuple("Frames", ["images", "poses"])


@entry(
    "T1-video-frames",
    topology="T1",
    variants=("one record is one video: parse_single_example once per frame", "namedtuple fetches"),
    ordered=True,
    stages=(*READING, *PARSING, WRONG_LENGTH),
    style="video prediction: the same record is parsed again for each frame",
)
def video_frames(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = [], []
    for i in range(10):
        frames = [pixels(3 * i + t, 3, 4, 1) for t in range(3)]
        values = {}
        for t, frame in enumerate(frames):
            raw = raw_bytes(fault, i, frame) if t == 1 else frame.tobytes()
            values |= {f"frame{t}/pixels": raw, f"frame{t}/pose": [i / 2, t]}
        serialized.append(example(**broken(fault, i, values, key="frame2/pose")))
        states = np.array([[i / 2, t] for t in range(3)], np.float32)
        records.append(Frames(np.stack(frames), states))
    files = write_tfrecords(folder, serialized, fault=fault)

    def parse(value):
        images, states = [], []
        for t in range(3):
            spec = {
                f"frame{t}/pixels": tf.FixedLenFeature([1], tf.string),
                f"frame{t}/pose": tf.FixedLenFeature([2], tf.float32),
            }
            features = tf.parse_single_example(value, features=spec)
            image = tf.decode_raw(features[f"frame{t}/pixels"], tf.uint8)
            images.append(tf.reshape(image, [1, 3, 4, 1]))
            states.append(tf.reshape(features[f"frame{t}/pose"], [1, 2]))
        return tf.concat(images, 0), tf.concat(states, 0)

    def build_fn():
        images, states = parse(read(files, epochs))
        return Frames(*tf.train.batch([images, states], 2, num_threads=1, capacity=20))

    return Program(
        build_fn=build_fn,
        records=tuple(records),
        epochs=epochs,
        batch_size=2,
        files=files,
        hand_written_twin=lambda: (
            tf2.data.TFRecordDataset(paths(files))
            .repeat(epochs)
            .map(lambda value: Frames(*parse(value)))
            .batch(2, drop_remainder=True)
        ),
    )


@entry("T1-fewer-records-than-a-batch", topology="T1", ordered=True, stages=RAW_STAGES)
def fewer_records_than_a_batch(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """Three records, batches of four: nothing is ever delivered."""
    serialized, records = raw_data(3, fault)
    files = write_tfrecords(folder, serialized, files=1, fault=fault)
    return Program(
        build_fn=lambda: tf.train.batch(list(parse_raw(read(files, 1))), 4),
        records=records,
        batch_size=4,
        files=files,
        hand_written_twin=lambda: raw_twin(paths(files), 1).batch(4, drop_remainder=True),
    )


@entry("T1-sequence-fixed", topology="T1", ordered=True, stages=READING)
def sequence_fixed(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """SequenceExamples that all have the same number of frames, which the graph is told."""
    rows = [np.arange(6, dtype=np.float32).reshape(3, 2) + i for i in range(COUNT)]
    serialized = [sequence_example({"id": i}, {"frames": list(row)}) for i, row in enumerate(rows)]
    files = write_tfrecords(folder, serialized, fault=fault)

    def parse(value):
        context, sequence = tf.parse_single_sequence_example(
            value,
            context_features={"id": tf.FixedLenFeature([], tf.int64)},
            sequence_features={"frames": tf.FixedLenSequenceFeature([2], tf.float32)},
        )
        frames = sequence["frames"]
        frames.set_shape([3, 2])
        return frames, context["id"]

    def build_fn():
        return tf.train.batch(list(parse(read(files, epochs))), batch_size=4, allow_smaller_final_batch=True)

    return Program(
        build_fn=build_fn,
        records=tuple((row, np.int64(i)) for i, row in enumerate(rows)),
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        files=files,
        hand_written_twin=lambda: tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(parse).batch(4),
    )
