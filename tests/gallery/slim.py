"""T11: tf_slim's parallel_reader, DatasetDataProvider and prefetch_queue."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from tf_slim.data import dataset as slim_dataset
from tf_slim.data import dataset_data_provider, parallel_reader, prefetch_queue, tfexample_decoder

from tfqueue.compat.contrib import slim as mended

from .data import broken, example, image_bytes, paths, pixels, png, write_tfrecords
from .registry import NO_FAULT, NOT_AN_IMAGE, Fault, Program, entry
from .tfrecords import PARSING, READING, WRONG_LENGTH, parse_raw, raw_data, raw_twin

COUNT = 24
HEIGHT, WIDTH = 4, 5
READERS = "several readers fill the common queue"


def png_handler() -> tfexample_decoder.ItemHandler:
    """Decodes the picture; slim's own handler runs only as tfqueue mends it (see T11-slim-image-handler)."""

    def decode_image(features):
        image = tf.image.decode_png(features["image/encoded"], channels=3)
        image.set_shape([HEIGHT, WIDTH, 3])
        return image

    return tfexample_decoder.ItemHandlerCallback(["image/encoded", "image/format"], decode_image)


def slim_data(folder: Path, fault: Fault, image_handler=png_handler):
    """Flower-like records (encoded, format, label), a slim Dataset of them, and their (image, label) pairs."""
    images = [pixels(i, HEIGHT, WIDTH, 3) for i in range(COUNT)]
    serialized = []
    for i, image in enumerate(images):
        values = {
            "image/encoded": image_bytes(fault, i, png(image)),
            "image/format": b"png",
            "image/class/label": i,
        }
        serialized.append(example(**broken(fault, i, values, key="image/class/label")))
    written = write_tfrecords(folder, serialized, files=3, fault=fault)

    def get_split():
        spec = {
            "image/encoded": tf.FixedLenFeature([], tf.string),
            "image/format": tf.FixedLenFeature([], tf.string, default_value="png"),
            "image/class/label": tf.FixedLenFeature([], tf.int64),
        }
        items = {"image": image_handler(), "label": tfexample_decoder.Tensor("image/class/label", shape=[])}
        return slim_dataset.Dataset(
            data_sources=paths(written),
            reader=tf.TFRecordReader,
            decoder=tfexample_decoder.TFExampleDecoder(spec, items),
            num_samples=COUNT,
            items_to_descriptions={"image": "pixels", "label": "a number"},
        )

    records = tuple((image, np.int64(i)) for i, image in enumerate(images))
    return written, get_split, records


def decode(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """What the slim decoder does, by hand."""
    features = tf.parse_single_example(
        serialized,
        {
            "image/encoded": tf.FixedLenFeature((), tf.string),
            "image/class/label": tf.FixedLenFeature([], tf.int64),
        },
    )
    return tf.image.decode_png(features["image/encoded"], channels=3), features["image/class/label"]


def slim_twin(files: list[str], epochs: int | None) -> tf2.data.Dataset:
    return tf2.data.TFRecordDataset(files).repeat(epochs).map(decode)


@entry("T11-parallel-read", topology="T11", order_note=READERS, stages=(*READING, *PARSING, WRONG_LENGTH))
def parallel_read(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, files=3, fault=fault)

    def build_fn():
        _, value = parallel_reader.parallel_read(
            paths(files),
            tf.TFRecordReader,
            num_epochs=epochs,
            num_readers=3,
            shuffle=True,
            capacity=14,
            min_after_dequeue=6,
            seed=2,
        )
        return tf.train.batch(list(parse_raw(value)), batch_size=4, num_threads=2)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        in_flight=5 * COUNT,
        files=files,
        threads=3,
        hand_written_twin=lambda: raw_twin(paths(files), epochs).shuffle(6, seed=2).batch(4, drop_remainder=True),
    )


@entry("T11-single-pass", topology=("T11", "T22"), ordered=True, stages=(*READING, *PARSING, WRONG_LENGTH))
def single_pass(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, files=3, fault=fault)

    def build_fn():
        _, value = parallel_reader.single_pass_read(paths(files), tf.TFRecordReader)
        return parse_raw(value)

    return Program(
        build_fn=build_fn,
        records=records,
        files=files,
        hand_written_twin=lambda: raw_twin(paths(files), 1),
    )


def _provided(folder: Path, epochs: int | None, fault: Fault, image_handler=png_handler) -> Program:
    files, get_split, records = slim_data(folder, fault, image_handler)

    def build_fn():
        provider = dataset_data_provider.DatasetDataProvider(
            get_split(), num_readers=1, shuffle=False, num_epochs=epochs, common_queue_capacity=8
        )
        image, label = provider.get(["image", "label"])
        return tf.train.batch([image, label], batch_size=5, capacity=10)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=5,
        files=files,
        hand_written_twin=lambda: slim_twin(paths(files), epochs).batch(5, drop_remainder=True),
    )


@entry(
    "T11-provider-ordered",
    topology="T11",
    ordered=True,
    stages=(*READING, *PARSING, NOT_AN_IMAGE),
)
def provider_ordered(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """One reader and no shuffle: the common queue is a FIFOQueue."""
    return _provided(folder, epochs, fault)


@entry(
    "T11-slim-image-handler",
    topology="T11",
    ordered=True,
    stages=(*READING, *PARSING, NOT_AN_IMAGE),
)
def slim_image_handler(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    return _provided(
        folder, epochs, fault, lambda: mended.tfexample_decoder.Image(shape=[HEIGHT, WIDTH, 3], channels=3)
    )


@entry(
    "T11-provider-clones",
    topology="T11",
    variants=("several consumers of one queue (one dequeue per tower)", "one-hot after the batch op"),
    order_note=f"{READERS}; shuffled; two clones dequeue from one prefetch queue",
    stages=(*READING, *PARSING, NOT_AN_IMAGE),
    style="slim image classification: provider -> batch -> prefetch_queue -> a dequeue per clone",
)
def provider_clones(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    files, get_split, records = slim_data(folder, fault)
    size = 3

    def build_fn():
        provider = dataset_data_provider.DatasetDataProvider(
            get_split(),
            num_readers=2,
            shuffle=True,
            num_epochs=epochs,
            common_queue_capacity=14,
            common_queue_min=6,
            seed=5,
        )
        image, label = provider.get(["image", "label"])
        image = tf.image.convert_image_dtype(image, tf.float32)
        images, labels = tf.train.batch([image, label], batch_size=size, num_threads=2, capacity=5 * size)
        labels = tf.one_hot(labels, COUNT)
        batch_queue = prefetch_queue.prefetch_queue([images, labels], capacity=2 * 2)
        return [batch_queue.dequeue() for _ in range(2)]

    def unbatch(step):
        return [(np.round(images[i] * 255).astype(np.uint8), labels[i]) for images, labels in step for i in range(size)]

    def twin():
        dataset = slim_twin(paths(files), epochs).map(
            lambda image, label: (tf2.image.convert_image_dtype(image, tf2.float32), tf2.one_hot(label, COUNT))
        )
        dataset = dataset.shuffle(6, seed=5).batch(size, drop_remainder=True).batch(2, drop_remainder=True)
        return dataset.map(lambda images, labels: [(images[0], labels[0]), (images[1], labels[1])])

    return Program(
        build_fn=build_fn,
        records=tuple((image, np.eye(COUNT, dtype=np.float32)[label]) for image, label in records),
        epochs=epochs,
        batch_size=2 * size,
        in_flight=5 * COUNT,
        files=files,
        threads=2,
        unbatch=unbatch,
        hand_written_twin=twin,
    )


@entry(
    "T11-deeplab-dict",
    topology=("T11", "T13"),
    variants=("dictionary", "dynamic_pad"),
    ordered=True,
    stages=(*READING, *PARSING, NOT_AN_IMAGE),
    style="DeepLab, evaluation: provider -> preprocessing -> dict batch, dynamic_pad, smaller final batch",
)
def deeplab_dict(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    files, get_split, records = slim_data(folder, fault)

    def build_fn():
        provider = dataset_data_provider.DatasetDataProvider(
            get_split(), num_readers=1, num_epochs=1, shuffle=False, common_queue_capacity=10
        )
        image, label = provider.get(["image", "label"])
        # The picture is cut to a width that depends on its label, so the batch has to pad it.
        image = image[:, : 2 + tf.cast(label, tf.int32) % 4, :]
        sample = {"image": image, "width": tf.shape(image)[1], "label": tf.expand_dims(label, 0)}
        return tf.train.batch(
            sample, batch_size=5, num_threads=1, capacity=32 * 5, allow_smaller_final_batch=True, dynamic_pad=True
        )

    def unbatch(batch):
        rows = zip(batch["image"], batch["width"], batch["label"], strict=True)
        return [{"image": image[:, :width], "width": width, "label": label} for image, width, label in rows]

    def cut(image, label):
        width = 2 + tf2.cast(label, tf2.int32) % 4
        return {"image": image[:, :width], "width": width, "label": label[tf2.newaxis]}

    shapes = {"image": [HEIGHT, None, 3], "width": [], "label": [1]}
    return Program(
        build_fn=build_fn,
        records=tuple(
            {
                "image": image[:, : 2 + label % 4],
                "width": np.int32(2 + label % 4),
                "label": np.array([label]),
            }
            for image, label in records
        ),
        batch_size=5,
        keep_remainder=True,
        files=files,
        unbatch=unbatch,
        hand_written_twin=lambda: slim_twin(paths(files), 1).map(cut).padded_batch(5, padded_shapes=shapes),
    )
