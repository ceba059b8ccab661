"""T4, T5, T18: slice_input_producer and range_input_producer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import checked, image_bytes, paths, pixels, png, spoiled, write_each
from .registry import ASSERTION, MISSING_FILE, NO_FAULT, NOT_A_NUMBER, NOT_AN_IMAGE, Fault, Program, entry

COUNT = 18
HEIGHT, WIDTH = 4, 5


@entry("T4-slices-read-file", topology="T4", ordered=True, stages=(MISSING_FILE, NOT_AN_IMAGE))
def slices_read_file(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images = [pixels(i, HEIGHT, WIDTH, 3) for i in range(COUNT)]
    contents = [image_bytes(fault, i, png(image)) for i, image in enumerate(images)]
    files = write_each(folder, contents, suffix=".png", fault=fault)
    labels = np.arange(COUNT, dtype=np.int32) % 5

    def build_fn():
        image_list = tf.convert_to_tensor(paths(files), dtype=tf.string)
        label_list = tf.convert_to_tensor(labels, dtype=tf.int32)
        queue = tf.train.slice_input_producer([image_list, label_list], num_epochs=epochs, shuffle=False)
        image = tf.image.decode_png(tf.read_file(queue[0]), channels=3)
        image.set_shape([HEIGHT, WIDTH, 3])
        return tf.train.batch([image, queue[1]], batch_size=5, capacity=20)

    def twin():
        dataset = tf2.data.Dataset.from_tensor_slices((paths(files), labels)).repeat(epochs)
        dataset = dataset.map(lambda p, y: (tf2.io.decode_png(tf2.io.read_file(p), channels=3), y))
        return dataset.batch(5, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple(zip(images, labels, strict=True)),
        epochs=epochs,
        batch_size=5,
        files=files,
        hand_written_twin=twin,
    )


@entry(
    "T4-slices-shuffle",
    topology="T4",
    variants=("random image ops with op seeds", "the same random op on both images"),
    order_note="shuffled by the producer and by shuffle_batch",
    random_ops=True,
    stages=(MISSING_FILE, NOT_AN_IMAGE),
    style="semantic segmentation: image and mask paths, the same random crop and flip on both",
)
def slices_shuffle(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images = [pixels(i, 8, 8, 3) for i in range(COUNT)]
    masks = [pixels(i, 8, 8, 1) for i in range(COUNT)]
    files = write_each(
        folder, [image_bytes(fault, i, png(v)) for i, v in enumerate(images)], suffix=".png", fault=fault
    )
    mask_files = write_each(folder, [png(v) for v in masks], suffix=".png", name="mask")

    def build_fn():
        image_list, mask_list = tf.train.slice_input_producer(
            [paths(files), paths(mask_files)], num_epochs=epochs, shuffle=True, seed=9
        )
        image = tf.image.decode_png(tf.read_file(image_list), channels=3)
        mask = tf.image.decode_png(tf.read_file(mask_list), channels=1)
        both = tf.concat([image, mask], axis=2)
        both = tf.random_crop(both, [5, 5, 4], seed=9)
        both = tf.image.random_flip_left_right(both, seed=9)
        both.set_shape([5, 5, 4])
        return tf.train.shuffle_batch(
            [both[:, :, :3], both[:, :, 3:]], 4, capacity=12, min_after_dequeue=4, num_threads=2, seed=9
        )

    def identity(record):
        # By the steps of `pixels`, channel 0 of the image minus 3 times the mask is one number in the whole
        # picture, another one for each index: it stays so only if both were cut and mirrored alike.
        image, mask = (value.astype(np.int64) for value in record)
        return np.unique((image[:, :, 0] - 3 * mask[:, :, 0]) % 256), image.shape, mask.shape

    return Program(
        build_fn=build_fn,
        records=tuple(identity((a[:5, :5], b[:5, :5])) for a, b in zip(images, masks, strict=True)),
        epochs=epochs,
        batch_size=4,
        in_flight=2 * COUNT + 12,
        files=files,
        threads=2,
        invariant=identity,
    )


def _in_memory(count: int) -> tuple[np.ndarray, np.ndarray, tuple]:
    images = np.stack([pixels(i, 3, 3, 1) for i in range(count)]).astype(np.float32) * np.float32(0.5)
    labels = np.arange(count, dtype=np.int64) % 10
    return images, labels, tuple(zip(images, labels, strict=True))


@entry("T5-array-constants", topology="T5", ordered=True, stages=(NOT_A_NUMBER,))
def array_constants(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images, labels, records = _in_memory(COUNT)

    def build_fn():
        arrays = [spoiled(images, fault), labels]
        image, label = tf.train.slice_input_producer(arrays, num_epochs=epochs, shuffle=False)
        image = tf.check_numerics(image, "image")
        return tf.train.batch([image, label], batch_size=4, allow_smaller_final_batch=True)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        hand_written_twin=lambda: tf2.data.Dataset.from_tensor_slices((images, labels)).repeat(epochs).batch(4),
    )


@entry(
    "T5-array-constants-shuffle",
    topology="T5",
    order_note="shuffled by the producer and by shuffle_batch",
    stages=(NOT_A_NUMBER,),
)
def array_constants_shuffle(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images, labels, records = _in_memory(25)

    def build_fn():
        arrays = [spoiled(images, fault), labels]
        image, label = tf.train.slice_input_producer(arrays, num_epochs=epochs, shuffle=True, seed=1)
        return tf.train.shuffle_batch(
            [tf.check_numerics(image, "image"), label],
            num_threads=8,
            batch_size=6,
            capacity=24,
            min_after_dequeue=12,
            allow_smaller_final_batch=False,
            seed=1,
        )

    def twin():
        dataset = tf2.data.Dataset.from_tensor_slices((images, labels)).shuffle(25, seed=1).repeat(epochs)
        return dataset.shuffle(12, seed=1).batch(6, drop_remainder=True)

    # The producer's queue holds an index, dequeued once by each run of the enqueue: an image and its label
    # stay together whatever the number of threads.
    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=6,
        in_flight=2 * 25 + 40,
        threads=8,
        hand_written_twin=twin,
    )


@entry(
    "T5-array-variable",
    topology="T5",
    variants=("source data in a Variable initialised later",),
    ordered=True,
    stages=(NOT_A_NUMBER,),
)
def array_variable(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images, labels, records = _in_memory(COUNT)

    def build_fn():
        # The values are far too many for the graph in a real program, so they are given to the initialiser.
        given = tf.placeholder_with_default(spoiled(images, fault), shape=images.shape)
        kept = [
            tf.Variable(initial, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
            for initial in (given, labels)
        ]
        image, label = tf.train.slice_input_producer(kept, num_epochs=epochs, shuffle=False)
        return tf.train.batch([tf.check_numerics(image, "image"), label], batch_size=5)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=5,
        hand_written_twin=lambda: (
            tf2.data.Dataset.from_tensor_slices((images, labels)).repeat(epochs).batch(5, drop_remainder=True)
        ),
    )


@entry("T18-ptb-producer", topology="T18", ordered=True, style="ptb_producer: index -> slices of a token matrix")
def ptb_producer(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """A text of numbers, folded into rows; each step gets a window of every row, and the same one word later."""
    rows, width = 3, 4
    text = ((np.arange(64) * 5) % 41).astype(np.int32)
    length = len(text) // rows
    folded = text[: rows * length].reshape(rows, length)
    windows = (length - 1) // width

    def cut(matrix, position):
        start = position * width
        return tf.slice(matrix, [0, start], [rows, width]), tf.slice(matrix, [0, start + 1], [rows, width])

    def build_fn():
        words = tf.constant(text)
        matrix = tf.reshape(words[: rows * length], [rows, length])
        # The number of windows is worked out in the graph, so the producer's limit is a tensor.
        limit = (tf.shape(matrix)[1] - 1) // width
        with tf.control_dependencies([tf.assert_greater(limit, 0, message="the text is too short")]):
            limit = tf.identity(limit)
        position = tf.train.range_input_producer(limit, num_epochs=epochs, shuffle=False).dequeue()
        return cut(matrix, position)

    def twin():
        dataset = tf2.data.Dataset.range(windows, output_type=tf2.int32).repeat(epochs)
        return dataset.map(lambda position: cut(tf2.constant(folded), position))

    return Program(
        build_fn=build_fn,
        records=tuple(
            (folded[:, a : a + width], folded[:, a + 1 : a + 1 + width]) for a in range(0, windows * width, width)
        ),
        epochs=epochs,
        hand_written_twin=twin,
    )


@entry(
    "T18-range-batch",
    topology="T18",
    order_note="the range is shuffled, with a seed",
    stages=(ASSERTION,),
)
def range_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images, _, _ = _in_memory(COUNT)

    def build_fn():
        index = tf.train.range_input_producer(COUNT, num_epochs=epochs, shuffle=True, seed=4, capacity=8).dequeue()
        index = checked(index, fault)
        return tf.train.batch([index, tf.gather(tf.constant(images), index)], batch_size=4)

    def twin():
        dataset = tf2.data.Dataset.range(COUNT, output_type=tf2.int32).shuffle(COUNT, seed=4).repeat(epochs)
        return dataset.map(lambda i: (i, tf2.gather(images, i))).batch(4, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple((np.int32(i), image) for i, image in enumerate(images)),
        epochs=epochs,
        batch_size=4,
        in_flight=2 * COUNT + 40,
        hand_written_twin=twin,
    )


@entry("T18-input-producer", topology=("T18", "T22"), ordered=True)
def input_producer(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    rows = (np.arange(21) ** 2).astype(np.float32).reshape(7, 3)

    def build_fn():
        queue = tf.train.input_producer(rows, element_shape=[3], num_epochs=epochs, shuffle=False, capacity=5)
        return queue.dequeue_many(2)

    return Program(
        build_fn=build_fn,
        records=tuple(rows),
        epochs=epochs,
        batch_size=2,
        hand_written_twin=lambda: (
            tf2.data.Dataset.from_tensor_slices(rows).repeat(epochs).batch(2, drop_remainder=True)
        ),
    )


def _zipped(count: int) -> tuple[list[bytes], np.ndarray]:
    return [b"image%02d" % i for i in range(count)], np.arange(count, dtype=np.int32)


@entry("T21-two-producers", topology="T21", variants=("implicit zip",), ordered=True, stages=(ASSERTION,))
def two_producers(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    names, numbers = _zipped(COUNT)

    def build_fn():
        (name,) = tf.train.slice_input_producer([names], num_epochs=epochs, shuffle=False)
        (number,) = tf.train.slice_input_producer([numbers], num_epochs=epochs, shuffle=False)
        return tf.train.batch([name, checked(number, fault)], batch_size=4)

    return Program(
        build_fn=build_fn,
        records=tuple(zip(names, numbers, strict=True)),
        epochs=epochs,
        batch_size=4,
        hand_written_twin=lambda: tf2.data.Dataset.zip(
            (
                tf2.data.Dataset.from_tensor_slices(names).repeat(epochs),
                tf2.data.Dataset.from_tensor_slices(numbers).repeat(epochs),
            )
        ).batch(4, drop_remainder=True),
    )


@entry(
    "T21-two-producers-threads",
    topology="T21",
    variants=("implicit zip", "two producers dequeued by one enqueue, several threads: mispairs"),
    order_note="eight threads each dequeue twice, so a name can meet another name's number",
)
def two_producers_threads(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    names, numbers = _zipped(48)

    def build_fn():
        name = tf.train.slice_input_producer([names], num_epochs=epochs, shuffle=False)[0]
        number = tf.train.slice_input_producer([numbers], num_epochs=epochs, shuffle=False)[0]
        return tf.train.batch([name, number], batch_size=4, num_threads=8, capacity=32)

    return Program(
        build_fn=build_fn,
        records=tuple(zip(names, numbers, strict=True)),
        epochs=epochs,
        batch_size=4,
        in_flight=64,
        threads=8,
        independent_columns=True,
    )


@entry(
    "T21-same-seed-shuffles",
    topology="T21",
    variants=("implicit zip", "two equal shuffles"),
    order_note="both producers shuffle with one seed, so pairs stay together; the seed gives the order",
    stages=(ASSERTION,),
    style="SfMLearner: jpg and csv names in two producers of the same seed, zipped by one batch",
)
def same_seed_shuffles(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    names, numbers = _zipped(COUNT)

    def build_fn():
        seed = 8964
        name_queue = tf.train.string_input_producer(names, num_epochs=epochs, seed=seed, shuffle=True)
        number_queue = tf.train.input_producer(numbers, num_epochs=epochs, seed=seed, shuffle=True)
        return tf.train.batch([name_queue.dequeue(), checked(number_queue.dequeue(), fault)], batch_size=3)

    def twin():
        dataset = tf2.data.Dataset.from_tensor_slices((names, numbers))
        return dataset.shuffle(COUNT, seed=8964).repeat(epochs).batch(3, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple(zip(names, numbers, strict=True)),
        epochs=epochs,
        batch_size=3,
        in_flight=2 * COUNT + 40,
        hand_written_twin=twin,
    )


@entry("T5-limit-epochs", topology=("T5", "T17"), variants=("enqueue_many",), ordered=True)
def limit_epochs(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """limit_epochs by hand: the whole array passes three times, then the data ends."""
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)

    def build_fn():
        limited = tf.train.limit_epochs(tf.constant(rows), num_epochs=3)
        return tf.train.batch([limited, tf.range(5)], batch_size=4, enqueue_many=True, allow_smaller_final_batch=True)

    def twin():
        dataset = tf2.data.Dataset.from_tensor_slices((rows, np.arange(5, dtype=np.int32)))
        return dataset.repeat(3).batch(4)

    return Program(
        build_fn=build_fn,
        records=tuple((row, np.int32(i)) for i, row in enumerate(rows)),
        epochs=3,
        batch_size=4,
        keep_remainder=True,
        hand_written_twin=twin,
    )
