"""T1: file names -> TFRecordReader -> parse -> decode -> batch or shuffle_batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import (
    broken,
    eager,
    example,
    flip_free,
    image_bytes,
    jpeg,
    paths,
    pixels,
    png,
    raw_bytes,
    write_tfrecords,
)
from .registry import (
    DAMAGED_RECORD,
    MISSING_FEATURE,
    MISSING_FILE,
    NO_FAULT,
    NOT_AN_IMAGE,
    WRONG_LENGTH,
    WRONG_TYPE,
    Fault,
    Program,
    entry,
)

COUNT = 22
HEIGHT, WIDTH = 4, 5
READING = (MISSING_FILE, DAMAGED_RECORD)
PARSING = (MISSING_FEATURE, WRONG_TYPE)
RAW_SPEC = {
    "image_raw": tf.FixedLenFeature([], tf.string),
    "label": tf.FixedLenFeature([], tf.int64),
}
ENCODED_SPEC = {
    "image/encoded": tf.FixedLenFeature([], tf.string),
    "image/class/label": tf.FixedLenFeature([], tf.int64),
}


def raw_data(count: int, fault: Fault) -> tuple[list[bytes], tuple[tuple[np.ndarray, np.int32], ...]]:
    """Serialized examples with raw pixels, and the (image, label) pairs that are in them."""
    images = [pixels(i, HEIGHT, WIDTH, 3) for i in range(count)]
    serialized = [
        example(**broken(fault, i, {"image_raw": raw_bytes(fault, i, image), "label": i}))
        for i, image in enumerate(images)
    ]
    return serialized, tuple((image, np.int32(i)) for i, image in enumerate(images))


def parse_raw(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The usual parse function of a MNIST-like data set."""
    features = tf.parse_single_example(serialized, features=RAW_SPEC)
    image = tf.decode_raw(features["image_raw"], tf.uint8)
    image = tf.reshape(image, [HEIGHT, WIDTH, 3])
    return image, tf.cast(features["label"], tf.int32)


def raw_twin(files: list[str], epochs: int | None) -> tf2.data.Dataset:
    """The records of `raw_data` in file order, not batched."""
    return tf2.data.TFRecordDataset(files).repeat(epochs).map(parse_raw)


@entry(
    "T1-tfrecord-shuffle",
    topology="T1",
    variants=("the queue is fed without pause over epoch ends",),
    order_note="shuffled by shuffle_batch",
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def tfrecord_shuffle(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        reader = tf.TFRecordReader()
        _, value = reader.read(filename_queue)
        image, label = parse_raw(value)
        return tf.train.shuffle_batch([image, label], batch_size=4, capacity=14, min_after_dequeue=8, seed=7)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        in_flight=24,
        files=files,
        hand_written_twin=lambda: raw_twin(paths(files), epochs).shuffle(8, seed=7).batch(4, drop_remainder=True),
    )


@entry("T1-tfrecord-batch", topology="T1", ordered=True, stages=(*READING, *PARSING, WRONG_LENGTH))
def tfrecord_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, files=3, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        reader = tf.TFRecordReader()
        _, value = reader.read(filename_queue)
        image, label = parse_raw(value)
        images, labels = tf.train.batch([image, label], batch_size=4)
        return images, labels

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=lambda: raw_twin(paths(files), epochs).batch(4, drop_remainder=True),
    )


@entry("T1-tfrecord-threads", topology="T1", order_note="four enqueuing threads", stages=READING)
def tfrecord_threads(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, value = tf.TFRecordReader().read(filename_queue)
        image, label = parse_raw(value)
        return tf.train.batch(
            {"image": image, "label": label},
            batch_size=4,
            num_threads=4,
            capacity=16,
            allow_smaller_final_batch=True,
        )

    def twin():
        dataset = raw_twin(paths(files), epochs).map(lambda image, label: {"image": image, "label": label})
        return dataset.batch(4)

    return Program(
        build_fn=build_fn,
        records=tuple({"image": image, "label": label} for image, label in records),
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        in_flight=24,
        files=files,
        threads=4,
        hand_written_twin=twin,
    )


@entry(
    "T1-tfrecord-shuffled-twice",
    topology="T1",
    order_note="file names and examples are shuffled",
    stages=(*READING, *PARSING),
)
def tfrecord_shuffled_twice(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(30, fault)
    files = write_tfrecords(folder, serialized, files=6, fault=fault)

    def build_fn():
        tf.set_random_seed(2016)
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=True)
        reader = tf.TFRecordReader()
        _, value = reader.read(filename_queue)
        image, label = parse_raw(value)
        return tf.train.shuffle_batch(
            [image, label],
            batch_size=8,
            num_threads=2,
            capacity=24,
            min_after_dequeue=8,
            allow_smaller_final_batch=True,
        )

    def twin():
        names = tf2.data.Dataset.from_tensor_slices(paths(files)).shuffle(6, seed=1).repeat(epochs)
        return names.flat_map(tf2.data.TFRecordDataset).map(parse_raw).shuffle(8, seed=2).batch(8)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=8,
        keep_remainder=True,
        # A file of a second epoch can come before the last of the first, so whole files count as waiting.
        in_flight=2 * 30 + 24,
        files=files,
        threads=2,
        hand_written_twin=twin,
    )


def encoded_data(encode, count: int, fault: Fault) -> tuple[list[bytes], list[bytes]]:
    """Serialized examples with encoded images, and the encoded images."""
    encoded = [encode(pixels(i, HEIGHT, WIDTH, 3)) for i in range(count)]
    serialized = [
        example(
            **broken(
                fault,
                i,
                {"image/encoded": image_bytes(fault, i, content), "image/class/label": i % 10},
                key="image/class/label",
            )
        )
        for i, content in enumerate(encoded)
    ]
    return serialized, encoded


def parse_png(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    features = tf.parse_single_example(serialized, ENCODED_SPEC)
    image = tf.image.decode_png(features["image/encoded"], channels=3)
    image.set_shape([HEIGHT, WIDTH, 3])
    return image, features["image/class/label"]


def decode_and_resize(encoded: tf.Tensor) -> tf.Tensor:
    image = tf.image.decode_jpeg(encoded, channels=3)
    return tf.image.resize_images(tf.cast(image, tf.float32), [6, 6])


def parse_jpeg(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    features = tf.parse_single_example(serialized, ENCODED_SPEC)
    return decode_and_resize(features["image/encoded"]), features["image/class/label"]


@entry(
    "T1-tfrecord-png-flip",
    topology="T1",
    variants=("random image ops with op seeds",),
    ordered=True,
    random_ops=True,
    stages=(*READING, *PARSING, NOT_AN_IMAGE),
)
def tfrecord_png_flip(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, _ = encoded_data(png, COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def preprocess(value):
        image, label = parse_png(value)
        return tf.image.random_flip_left_right(image, seed=11), label

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, value = tf.TFRecordReader().read(filename_queue)
        image, label = preprocess(value)
        images, labels = tf.train.batch([image, label], batch_size=3, num_threads=1, capacity=9)
        return {"images": images, "labels": labels}

    def twin():
        dataset = tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(preprocess)
        dataset = dataset.batch(3, drop_remainder=True)
        return dataset.map(lambda images, labels: {"images": images, "labels": labels})

    return Program(
        build_fn=build_fn,
        records=tuple(
            {"images": flip_free(pixels(i, HEIGHT, WIDTH, 3)), "labels": np.int64(i % 10)} for i in range(COUNT)
        ),
        epochs=epochs,
        batch_size=3,
        files=files,
        invariant=lambda record: {**record, "images": flip_free(record["images"])},
        hand_written_twin=twin,
        twin_note="another stream of random numbers, so other images are flipped",
    )


@entry("T1-tfrecord-jpeg-resize", topology="T1", ordered=True, stages=(*READING, MISSING_FEATURE, NOT_AN_IMAGE))
def tfrecord_jpeg_resize(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, encoded = encoded_data(jpeg, 12, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, value = tf.TFRecordReader().read(filename_queue)
        return tf.train.batch(list(parse_jpeg(value)), batch_size=4, allow_smaller_final_batch=True)

    return Program(
        build_fn=build_fn,
        records=tuple((eager(decode_and_resize, content), np.int64(i % 10)) for i, content in enumerate(encoded)),
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        files=files,
        hand_written_twin=lambda: tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(parse_jpeg).batch(4),
    )


@entry(
    "T1-tfrecord-jpeg-divided",
    topology="T1",
    variants=("division by a constant",),
    ordered=True,
    stages=(*READING, MISSING_FEATURE, NOT_AN_IMAGE),
)
def tfrecord_jpeg_divided(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, encoded = encoded_data(jpeg, 12, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def scale(value):
        image, label = parse_jpeg(value)
        return image / 255.0, label

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, value = tf.TFRecordReader().read(filename_queue)
        return tf.train.batch(list(scale(value)), batch_size=4)

    # A session's graph optimiser turns x / c into x * (1 / c), eager execution and Dataset.map do not: the
    # last bit of the same line differs between them, so this entry promises two decimals of the grey level.
    return Program(
        build_fn=build_fn,
        records=tuple(
            (np.round(eager(decode_and_resize, content), 2), np.int64(i % 10)) for i, content in enumerate(encoded)
        ),
        epochs=epochs,
        batch_size=4,
        files=files,
        invariant=lambda record: (np.round(record[0] * 255, 2), record[1]),
        hand_written_twin=lambda: (
            tf2.data.TFRecordDataset(paths(files)).repeat(epochs).map(scale).batch(4, drop_remainder=True)
        ),
        twin_note="the last bit of a division by a constant depends on the graph optimiser",
    )


def _compressed(folder: Path, epochs: int | None, fault: Fault, kind: str, code) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault, compression=kind)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        options = tf.python_io.TFRecordOptions(code)
        _, value = tf.TFRecordReader(options=options).read(filename_queue)
        return tf.train.batch(list(parse_raw(value)), 4, allow_smaller_final_batch=True)

    def twin():
        dataset = tf2.data.TFRecordDataset(paths(files), compression_type=kind).repeat(epochs)
        return dataset.map(parse_raw).batch(4)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        files=files,
        hand_written_twin=twin,
    )


@entry("T1-tfrecord-zlib", topology="T1", ordered=True, stages=(MISSING_FILE, *PARSING))
def tfrecord_zlib(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    return _compressed(folder, epochs, fault, "ZLIB", tf.python_io.TFRecordCompressionType.ZLIB)


@entry("T1-tfrecord-gzip", topology="T1", ordered=True, stages=(MISSING_FILE, *PARSING))
def tfrecord_gzip(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    return _compressed(folder, epochs, fault, "GZIP", tf.python_io.TFRecordCompressionType.GZIP)


def _matched(folder: Path, epochs: int | None, fault: Fault, wrap) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, files=3, fault=fault)

    def build_fn():
        matched = wrap(tf.train.match_filenames_once(str(folder / "data-*.tfrecord")))
        filename_queue = tf.train.string_input_producer(matched, num_epochs=epochs, shuffle=False)
        _, value = tf.TFRecordReader().read(filename_queue)
        return tf.train.batch(list(parse_raw(value)), batch_size=4)

    def twin():
        return raw_twin(sorted(paths(files)), epochs).batch(4, drop_remainder=True)

    return Program(build_fn=build_fn, records=records, epochs=epochs, batch_size=4, files=files, hand_written_twin=twin)


@entry(
    "T1-match-filenames-once",
    topology="T1",
    ordered=True,
    stages=(DAMAGED_RECORD, *PARSING),
    needs="string_input_producer tests `not string_tensor`, which a resource variable refuses",
)
def match_filenames_once(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    return _matched(folder, epochs, fault, lambda names: names)


@entry("T1-match-filenames-identity", topology="T1", ordered=True, stages=(DAMAGED_RECORD, *PARSING))
def match_filenames_identity(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    return _matched(folder, epochs, fault, tf.identity)


@entry("T22-reader-key-value", topology=("T22", "T1"), ordered=True, stages=READING)
def reader_key_value(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, _ = raw_data(9, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        key, value = tf.TFRecordReader(name="reader").read(filename_queue)
        return key, value

    # The key of a TFRecord is "<file>:<offset of the byte that follows the previous record>".
    records = []
    for file in files:
        offset = 0
        for _ in range(file.records):
            content = serialized[len(records)]
            records.append((f"{file.path}:{offset}".encode(), content))
            offset += len(content) + 16
    return Program(build_fn=build_fn, records=tuple(records), epochs=epochs, files=files)


@entry("T22-parsed-single", topology="T22", ordered=True, stages=(*READING, *PARSING, WRONG_LENGTH))
def parsed_single(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(9, fault)
    files = write_tfrecords(folder, serialized, files=1, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs)
        _, value = tf.TFRecordReader().read(filename_queue)
        image, label = parse_raw(value)
        return [image, label]

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        files=files,
        hand_written_twin=lambda: raw_twin(paths(files), epochs),
    )
