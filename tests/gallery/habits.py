"""Habits of real programs that a reader of graphs meets everywhere: devices, scopes, labels in file names, batches
of batches, shared names, summaries beside the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import eager, image_bytes, paths, pixels, png, write_each, write_lines, write_tfrecords
from .registry import BAD_FIELD, MISSING_FILE, NO_FAULT, NOT_AN_IMAGE, Fault, Program, entry
from .tfrecords import COUNT, PARSING, READING, WRONG_LENGTH, parse_raw, raw_data, raw_twin
from .variants import read

HEIGHT, WIDTH = 4, 5


def _pictures(folder: Path, fault: Fault, count: int):
    images = [pixels(i, HEIGHT, WIDTH, 3) for i in range(count)]
    contents = [image_bytes(fault, i, png(image)) for i, image in enumerate(images)]
    files = write_each(folder, contents, suffix=".png", fault=fault)
    return images, files


@entry(
    "T3-label-from-key",
    topology="T3",
    variants=("the label is cut out of the file name", "tf.device, name scopes and summaries"),
    ordered=True,
    stages=(MISSING_FILE, NOT_AN_IMAGE),
)
def label_from_key(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images, files = _pictures(folder, fault, 14)

    def label_of(key):
        name = tf.string_split([key], "/").values[-1]
        return tf.string_to_number(tf.substr(name, 4, 3), tf.int32)  # "item007.png"

    def build_fn():
        with tf.device("/cpu:0"), tf.name_scope("input"):
            file_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
            key, content = tf.WholeFileReader(name="reader").read(file_queue)
            with tf.name_scope("decode", values=[content]):
                image = tf.image.decode_png(content, channels=3)
                image.set_shape([HEIGHT, WIDTH, 3])
                tf.summary.image("input", tf.expand_dims(image, 0))
            label = label_of(key)
            images_batch, labels_batch = tf.train.batch([image, label], 3, shared_name="input_batch")
        tf.summary.histogram("labels", labels_batch)
        return {"images": images_batch, "labels": labels_batch}

    def twin():
        def load(name):
            image = tf2.io.decode_png(tf2.io.read_file(name), channels=3)
            return {"images": image, "labels": label_of(name)}

        dataset = tf2.data.Dataset.from_tensor_slices(paths(files)).repeat(epochs)
        return dataset.map(load).batch(3, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple({"images": image, "labels": np.int32(i)} for i, image in enumerate(images)),
        epochs=epochs,
        batch_size=3,
        files=files,
        hand_written_twin=twin,
    )


@entry(
    "T4-join-of-reads",
    topology=("T4", "T10"),
    variants=("one dequeue per join branch", "shuffled by the producer only"),
    order_note="the producer shuffles, and four branches read files in threads of their own",
    stages=(MISSING_FILE, NOT_AN_IMAGE),
)
def join_of_reads(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """One slice of names and labels for all branches; each branch's thread dequeues again."""
    images, files = _pictures(folder, fault, 18)
    labels = list(range(18))

    def load(name, label):
        image = tf.image.decode_image(tf.read_file(name), channels=3)
        image.set_shape((HEIGHT, WIDTH, 3))
        return tf.subtract(tf.cast(image, tf.float32), 127.5) * 0.0078125, label

    def build_fn():
        with tf.device("/cpu:0"):
            queue = tf.train.slice_input_producer(
                [tf.convert_to_tensor(paths(files)), tf.convert_to_tensor(labels)], num_epochs=epochs, seed=6
            )
            branches = [list(load(queue[0], queue[1])) for _ in range(4)]
            return tf.train.batch_join(
                branches, batch_size=4, shapes=[(HEIGHT, WIDTH, 3), ()], allow_smaller_final_batch=True
            )

    def twin():
        dataset = tf2.data.Dataset.from_tensor_slices((paths(files), np.array(labels, np.int32)))
        return dataset.shuffle(18, seed=6).repeat(epochs).map(load).batch(4)

    return Program(
        build_fn=build_fn,
        records=tuple(
            ((image.astype(np.float32) - np.float32(127.5)) * np.float32(0.0078125), np.int32(i))
            for i, image in enumerate(images)
        ),
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        in_flight=2 * 18 + 50,
        files=files,
        threads=4,
        hand_written_twin=twin,
    )


@entry(
    "T1-batch-of-batches",
    topology=("T1", "T17"),
    variants=("a queue feeding the batch queue", "enqueue_many", "batches of one size made of batches of another"),
    ordered=True,
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def batch_of_batches(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Small batches, the last one smaller, are taken apart again into larger ones."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        with tf.name_scope("small"):
            small = tf.train.batch(list(parse_raw(read(files, epochs))), 3, capacity=6, allow_smaller_final_batch=True)
        with tf.name_scope("large"):
            return tf.train.batch(small, batch_size=5, enqueue_many=True, capacity=10)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=5,
        files=files,
        hand_written_twin=lambda: raw_twin(paths(files), epochs).batch(5, drop_remainder=True),
    )


@entry(
    "T1-batches-prefetched-as-one",
    topology=("T1", "T32"),
    variants=("a [batch, ...] element in a queue of ready batches", "several batches stacked for one step"),
    ordered=True,
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def batches_prefetched_as_one(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Each step takes two ready batches at once: [2, 3, height, width, 3]."""
    serialized, records = raw_data(24, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        ready = tf.train.batch(list(parse_raw(read(files, epochs))), 3)
        queue = tf.FIFOQueue(4, [t.dtype for t in ready], [t.get_shape() for t in ready])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(ready)]))
        return queue.dequeue_many(2)

    def unbatch(step):
        images, labels = step
        return [(images[a, b], labels[a, b]) for a in range(2) for b in range(3)]

    def twin():
        dataset = raw_twin(paths(files), epochs).batch(3, drop_remainder=True)
        return dataset.batch(2, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=6,
        files=files,
        unbatch=unbatch,
        hand_written_twin=twin,
    )


@entry(
    "T21-pictures-and-label-lines",
    topology=("T21", "T3", "T6"),
    variants=("implicit zip", "two readers of different kinds dequeued by one enqueue"),
    ordered=True,
    stages=(MISSING_FILE, NOT_AN_IMAGE, BAD_FIELD),
)
def pictures_and_label_lines(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Whole image files beside the lines of one label file."""
    images, files = _pictures(folder, fault, 12)
    lines = [f"{10 * i}" if not fault.at(BAD_FIELD, i) else "ten" for i in range(12)]
    (label_file,) = write_lines(folder, lines, name="labels", suffix=".txt")

    def build_fn():
        picture_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        line_queue = tf.train.string_input_producer([label_file.path], num_epochs=epochs, shuffle=False)
        image = tf.image.decode_png(tf.WholeFileReader().read(picture_queue)[1], channels=3)
        image.set_shape([HEIGHT, WIDTH, 3])
        (label,) = tf.decode_csv(tf.TextLineReader().read(line_queue)[1], [[0]])
        return tf.train.batch([image, label], batch_size=5, allow_smaller_final_batch=True)

    def twin():
        pictures = tf2.data.Dataset.from_tensor_slices(paths(files)).repeat(epochs)
        pictures = pictures.map(lambda name: tf2.io.decode_png(tf2.io.read_file(name), channels=3))
        labels = tf2.data.TextLineDataset([label_file.path]).repeat(epochs)
        labels = labels.map(lambda line: tf2.io.decode_csv(line, [[0]])[0])
        return tf2.data.Dataset.zip((pictures, labels)).batch(5)

    return Program(
        build_fn=build_fn,
        records=tuple((image, np.int32(10 * i)) for i, image in enumerate(images)),
        epochs=epochs,
        batch_size=5,
        keep_remainder=True,
        files=files,
        hand_written_twin=twin,
    )


@entry(
    "T6-big-endian",
    topology="T6",
    variants=("decode_raw, big endian", "a SparseTensor made and used up inside a stage"),
    ordered=True,
    stages=(MISSING_FILE,),
)
def big_endian(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Lines ``word word|base64``: the words are counted, the bytes are 16-bit numbers, high byte first."""
    numbers = [np.array([i, 256 + i, 513], ">i2") for i in range(11)]
    lines = []
    for i, row in enumerate(numbers):
        encoded = eager(tf2.io.encode_base64, row.tobytes()).decode()
        lines.append(" ".join(["w"] * (i % 3 + 1)) + "|" + encoded)
    files = write_lines(folder, lines, files=2, fault=fault, suffix=".txt")

    def parse(line):
        left, right = tf.unstack(tf.string_split([line], "|").values, num=2)
        words = tf.sparse_tensor_to_dense(tf.string_split([left]), default_value="")
        row = tf.decode_raw(tf.decode_base64(right), tf.int16, little_endian=False)
        row.set_shape([3])
        return {"words": tf.size(words), "row": row}

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        return tf.train.batch(parse(tf.TextLineReader().read(queue)[1]), batch_size=4)

    return Program(
        build_fn=build_fn,
        records=tuple({"words": np.int32(i % 3 + 1), "row": row.astype(np.int16)} for i, row in enumerate(numbers)),
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=lambda: (
            tf2.data.TextLineDataset(paths(files)).repeat(epochs).map(parse).batch(4, drop_remainder=True)
        ),
    )
