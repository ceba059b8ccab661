"""T2: file names -> FixedLengthRecordReader -> decode_raw -> slices."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import crop_free, paths, pixels, write_fixed
from .registry import CUT_FILE, MISSING_FILE, NO_FAULT, DataFile, Fault, Program, entry

COUNT = 20
HEIGHT, WIDTH, DEPTH = 6, 6, 3


def cifar_records(count: int) -> tuple[list[bytes], list[np.ndarray]]:
    """CIFAR's layout: one byte of label, then the image by planes (depth, height, width)."""
    images = [pixels(i, HEIGHT, WIDTH, DEPTH) for i in range(count)]
    return [bytes([i]) + image.transpose(2, 0, 1).tobytes() for i, image in enumerate(images)], images


def decode_cifar(value: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    numbers = tf.decode_raw(value, tf.uint8)
    label = tf.to_int32(numbers[0:1])
    label.set_shape([1])
    planes = tf.reshape(numbers[1:], [DEPTH, HEIGHT, WIDTH])
    return tf.transpose(planes, perm=[1, 2, 0]), label


def read_cifar(names) -> tuple[tf.Tensor, tf.Tensor]:
    _, value = tf.FixedLengthRecordReader(record_bytes=1 + HEIGHT * WIDTH * DEPTH).read(names)
    return decode_cifar(value)


@entry(
    "T2-cifar-distorted",
    topology="T2",
    variants=("random image ops with op seeds",),
    order_note="shuffled by shuffle_batch",
    random_ops=True,
    stages=(MISSING_FILE, CUT_FILE),
    style="CIFAR-10 tutorial, training: crop, flip, many threads, shuffle_batch",
)
def cifar_distorted(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    contents, images = cifar_records(COUNT)
    files = write_fixed(folder, contents, files=4, fault=fault)

    def build_fn():
        image, label = read_cifar(tf.train.string_input_producer(paths(files), num_epochs=epochs, seed=5))
        with tf.name_scope("distort"):
            image = tf.random_crop(tf.to_float(image), [4, 4, 3], seed=5)
            image = tf.image.random_flip_left_right(image, seed=6)
        images, labels = tf.train.shuffle_batch(
            [image, label], batch_size=4, num_threads=4, capacity=20, min_after_dequeue=8, seed=7
        )
        return images, tf.squeeze(labels, [1])

    def normal(record):
        return crop_free(record[0]), record[1]

    def twin():
        size = 1 + HEIGHT * WIDTH * DEPTH
        names = tf2.data.Dataset.from_tensor_slices(paths(files)).shuffle(4, seed=5).repeat(epochs)
        dataset = names.flat_map(lambda name: tf2.data.FixedLengthRecordDataset(name, size)).map(decode_cifar)

        def distort(image, label):
            image = tf2.image.random_crop(tf2.cast(image, tf2.float32), [4, 4, 3], seed=5)
            return tf2.image.random_flip_left_right(image, seed=6), label[0]

        return dataset.map(distort).shuffle(8, seed=7).batch(4, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple(normal((image[:4, :4], np.int32(i))) for i, image in enumerate(images)),
        epochs=epochs,
        batch_size=4,
        in_flight=2 * COUNT + 24,
        files=files,
        threads=4,
        invariant=normal,
        hand_written_twin=twin,
        twin_note="another stream of random numbers",
    )


@entry(
    "T2-cifar-eval",
    topology="T2",
    ordered=True,
    stages=(MISSING_FILE, CUT_FILE),
    style="CIFAR-10 tutorial, evaluation: central crop, batch",
)
def cifar_eval(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    contents, images = cifar_records(18)
    files = write_fixed(folder, contents, files=1, fault=fault)

    def build_fn():
        image, label = read_cifar(tf.train.string_input_producer(paths(files), num_epochs=epochs))
        centre = tf.image.resize_image_with_crop_or_pad(image, 4, 4)
        images, labels = tf.train.batch([centre, label], batch_size=6, num_threads=1, capacity=24)
        return images, tf.squeeze(labels, [1])

    def twin():
        dataset = tf2.data.FixedLengthRecordDataset(paths(files), 1 + HEIGHT * WIDTH * DEPTH).repeat(epochs)
        dataset = dataset.map(decode_cifar).map(lambda image, label: (image[1:5, 1:5], label[0]))
        return dataset.batch(6, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple((image[1:5, 1:5], np.int32(i)) for i, image in enumerate(images)),
        epochs=epochs,
        batch_size=6,
        files=files,
        hand_written_twin=twin,
    )


@entry(
    "T2-header-footer",
    topology="T2",
    ordered=True,
    stages=(MISSING_FILE, CUT_FILE),
)
def header_footer(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """MNIST's own files: a header before the records; key and value are both fetched."""
    rows = [np.array([i, 1000 - i, -i], dtype="<i4") for i in range(11)]
    files = write_fixed(
        folder,
        [row.tobytes() for row in rows],
        fault=fault,
        header=b"\x00\x00\x08\x03head",
        footer=b"end",
    )

    def build_fn():
        reader = tf.FixedLengthRecordReader(record_bytes=12, header_bytes=8, footer_bytes=3)
        key, value = reader.read(tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False))
        row = tf.decode_raw(value, tf.int32)
        row.set_shape([3])
        return tf.train.batch({"key": key, "row": row}, batch_size=3, allow_smaller_final_batch=True)

    # The key of a fixed-length record is "<file>:<number of the record in the file>".
    keys = [f"{file.path}:{n}".encode() for file in files for n in range(file.records)]
    return Program(
        build_fn=build_fn,
        records=tuple({"key": key, "row": row} for key, row in zip(keys, rows, strict=True)),
        epochs=epochs,
        batch_size=3,
        keep_remainder=True,
        files=files,
    )


@entry(
    "T2-cifar-handmade-queue",
    topology=("T2", "T17"),
    order_note="a hand-made RandomShuffleQueue",
    stages=(MISSING_FILE, CUT_FILE),
    style="resnet's CIFAR input: hand-made example queue, QueueRunner([op] * n), one-hot labels",
)
def cifar_handmade_queue(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    contents, images = cifar_records(COUNT)
    files = write_fixed(folder, contents, fault=fault)

    def build_fn():
        names = tf.train.string_input_producer(paths(files), shuffle=False, num_epochs=epochs)
        image, label = read_cifar(names)
        pool = tf.RandomShuffleQueue(
            capacity=16,
            min_after_dequeue=8,
            dtypes=[tf.uint8, tf.int32],
            shapes=[[HEIGHT, WIDTH, DEPTH], [1]],
            seed=10,
        )
        tf.train.add_queue_runner(tf.train.QueueRunner(pool, [pool.enqueue([image, label])] * 3))
        images, labels = pool.dequeue_many(4)
        places = tf.stack([tf.range(4), tf.squeeze(labels, [1])], axis=1)
        return {"images": images, "labels": tf.sparse_to_dense(places, [4, COUNT], 1.0, 0.0)}

    def twin():
        dataset = tf2.data.FixedLengthRecordDataset(paths(files), 1 + HEIGHT * WIDTH * DEPTH).repeat(epochs)
        dataset = dataset.map(decode_cifar).shuffle(8, seed=10).batch(4, drop_remainder=True)
        return dataset.map(lambda image, label: {"images": image, "labels": tf2.one_hot(label[:, 0], COUNT)})

    return Program(
        build_fn=build_fn,
        records=tuple(
            {"images": image, "labels": np.eye(COUNT, dtype=np.float32)[i]} for i, image in enumerate(images)
        ),
        epochs=epochs,
        batch_size=4,
        in_flight=COUNT + 24,
        files=files,
        threads=3,
        hand_written_twin=twin,
    )


@entry(
    "T2-hop-bytes",
    topology="T2",
    variants=("overlapping records",),
    ordered=True,
    stages=(MISSING_FILE,),
)
def hop_bytes(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Windows of eight bytes, four bytes apart, as for a signal."""
    # Twelve pieces of four bytes a file make eleven windows.
    of_piece = Fault(fault.stage, fault.record + fault.record // 11)
    files = write_fixed(folder, [bytes(range(4 * i, 4 * i + 4)) for i in range(24)], files=2, fault=of_piece)

    def build_fn():
        reader = tf.FixedLengthRecordReader(record_bytes=8, hop_bytes=4)
        _, value = reader.read(tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False))
        return tf.train.batch([value], batch_size=4)

    def windows_of(name):
        whole = tf2.io.read_file(name)
        return tf2.data.Dataset.range(11).map(lambda i: tf2.strings.substr(whole, tf2.cast(4 * i, tf2.int32), 8))

    windows = [bytes(range(4 * (start + i), 4 * (start + i) + 8)) for start in (0, 12) for i in range(11)]
    return Program(
        build_fn=build_fn,
        records=tuple(windows),
        epochs=epochs,
        batch_size=4,
        files=tuple(DataFile(file.path, 11) for file in files),
        hand_written_twin=lambda: (
            tf2.data.Dataset.from_tensor_slices(paths(files))
            .repeat(epochs)
            .flat_map(windows_of)
            .batch(4, drop_remainder=True)
        ),
    )


@entry("T2-zlib", topology="T2", ordered=True, stages=(MISSING_FILE,))
def fixed_zlib(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    contents = [bytes([i, 255 - i, 7]) for i in range(COUNT)]
    files = write_fixed(folder, contents, fault=fault)
    for file in files:
        path = Path(file.path)
        if path.exists():
            path.write_bytes(zlib.compress(path.read_bytes()))

    def decode(value):
        row = tf.decode_raw(value, tf.uint8)
        row.set_shape([3])
        return row

    def build_fn():
        reader = tf.FixedLengthRecordReader(record_bytes=3, encoding="ZLIB")
        _, value = reader.read(tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False))
        return tf.train.batch([decode(value)], batch_size=6, allow_smaller_final_batch=True)

    def twin():
        dataset = tf2.data.FixedLengthRecordDataset(paths(files), 3, compression_type="ZLIB")
        return dataset.repeat(epochs).map(decode).batch(6)

    return Program(
        build_fn=build_fn,
        records=tuple(np.frombuffer(content, np.uint8) for content in contents),
        epochs=epochs,
        batch_size=6,
        keep_remainder=True,
        files=files,
        hand_written_twin=twin,
    )
