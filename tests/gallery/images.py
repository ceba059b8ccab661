"""T3, T7: image files read whole, or named by the lines of a list file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import crop_free, image_bytes, paths, pixels, png, write_each, write_lines
from .registry import FEW_FIELDS, MISSING_FILE, NO_FAULT, NOT_AN_IMAGE, Fault, Program, entry

HEIGHT, WIDTH = 4, 6


@entry("T3-whole-file-batch", topology="T3", ordered=True, stages=(MISSING_FILE, NOT_AN_IMAGE))
def whole_file_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images = [pixels(i, HEIGHT, WIDTH, 3) for i in range(13)]
    files = write_each(
        folder,
        [image_bytes(fault, i, png(image)) for i, image in enumerate(images)],
        suffix=".png",
        fault=fault,
    )

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), shuffle=False, num_epochs=epochs)
        _, content = tf.WholeFileReader().read(filename_queue)
        image = tf.image.decode_png(content, channels=3)
        image.set_shape([HEIGHT, WIDTH, 3])
        return tf.train.batch([image], 4, dynamic_pad=False)

    def twin():
        dataset = tf2.data.Dataset.from_tensor_slices(paths(files)).repeat(epochs)
        dataset = dataset.map(lambda name: tf2.io.decode_png(tf2.io.read_file(name), channels=3))
        return dataset.batch(4, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple(images),
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=twin,
    )


@entry(
    "T3-whole-file-shuffle",
    topology="T3",
    order_note="shuffled by shuffle_batch",
    stages=(MISSING_FILE, NOT_AN_IMAGE),
)
def whole_file_shuffle(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images = [pixels(i, HEIGHT, WIDTH, 3) for i in range(16)]
    files = write_each(
        folder,
        [image_bytes(fault, i, png(image)) for i, image in enumerate(images)],
        suffix=".png",
        fault=fault,
    )

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), shuffle=True, seed=3, num_epochs=epochs)
        key, content = tf.WholeFileReader().read(filename_queue)
        image = tf.to_float(tf.image.decode_png(content, channels=3))
        image = tf.image.resize_image_with_crop_or_pad(image, 4, 4)
        names, images = tf.train.shuffle_batch(
            [key, image], batch_size=3, capacity=13, min_after_dequeue=6, num_threads=2, seed=3
        )
        return {"names": names, "images": images}

    def twin():
        dataset = tf2.data.Dataset.from_tensor_slices(paths(files)).shuffle(16, seed=3).repeat(epochs)
        dataset = dataset.map(
            lambda name: {
                "names": name,
                "images": tf2.cast(tf2.io.decode_png(tf2.io.read_file(name), channels=3), tf2.float32)[:, 1:5],
            }
        )
        return dataset.shuffle(6, seed=3).batch(3, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple(
            {"names": file.path.encode(), "images": image[:, 1:5].astype(np.float32)}
            for file, image in zip(files, images, strict=True)
        ),
        epochs=epochs,
        batch_size=3,
        in_flight=2 * 16 + 13,
        files=files,
        threads=2,
        hand_written_twin=twin,
    )


@entry(
    "T3-pix2pix-pairs",
    topology="T3",
    variants=("random image ops with op seeds", "the same random op on both images"),
    ordered=True,
    random_ops=True,
    stages=(MISSING_FILE, NOT_AN_IMAGE),
    style="pix2pix: one file holds two images side by side; flip and crop both alike; the key in the batch",
)
def pix2pix_pairs(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    doubles = [pixels(i, 6, 12, 3) for i in range(11)]
    files = write_each(
        folder,
        [image_bytes(fault, i, png(image)) for i, image in enumerate(doubles)],
        suffix=".png",
        fault=fault,
    )
    seed = 31

    def distort(half):
        # Equal op seeds make both halves take the same decision.
        half = tf.image.random_flip_left_right(half, seed=seed)
        corner = tf.to_int32(tf.random_uniform([2], 0, 3, seed=seed))
        return tf.image.crop_to_bounding_box(half, corner[0], corner[1], 4, 4)

    def build_fn():
        names = tf.train.string_input_producer(paths(files), shuffle=False, num_epochs=epochs)
        name, content = tf.WholeFileReader().read(names)
        double = tf.image.decode_png(content)
        with tf.control_dependencies([tf.assert_equal(tf.shape(double)[2], 3, message="no colours")]):
            double = tf.identity(double)
        double.set_shape([None, None, 3])
        middle = tf.shape(double)[1] // 2
        with tf.name_scope("left"):
            left = distort(double[:, :middle])
        with tf.name_scope("right"):
            right = distort(double[:, middle:])
        batch = tf.train.batch([name, left, right], batch_size=2)
        return dict(zip(("paths", "inputs", "targets"), batch, strict=True))

    def together(record):
        # The halves are cut at the same place: their difference is the same for every crop.
        difference = record["targets"].astype(np.int64) - record["inputs"]
        return {
            "paths": record["paths"],
            "inputs": crop_free(record["inputs"]),
            "difference": np.unique(difference % 256),
        }

    def expected(file, double):
        crop = {"paths": file.path.encode(), "inputs": double[:4, :4], "targets": double[:4, 6:10]}
        return together(crop)

    return Program(
        build_fn=build_fn,
        records=tuple(expected(file, double) for file, double in zip(files, doubles, strict=True)),
        epochs=epochs,
        batch_size=2,
        files=files,
        invariant=together,
    )


def _stereo(folder: Path, fault: Fault) -> tuple[list, list, tuple, str]:
    """Left and right images, their files, and the list file that names one pair a line."""
    left = [pixels(i, HEIGHT, WIDTH, 3) for i in range(12)]
    right = [pixels(i + 12, HEIGHT, WIDTH, 3) for i in range(12)]
    files = write_each(
        folder,
        [image_bytes(fault, i, png(v)) for i, v in enumerate(left)],
        suffix=".png",
        fault=fault,
        name="left",
    )
    others = write_each(folder, [png(v) for v in right], suffix=".png", name="right")
    lines = [
        f"{Path(a.path).name} {Path(b.path).name}" if not fault.at(FEW_FIELDS, i) else Path(a.path).name
        for i, (a, b) in enumerate(zip(files, others, strict=True))
    ]
    (listed,) = write_lines(folder, lines, name="pairs", suffix=".txt")
    return left, right, files, listed.path


@entry(
    "T7-monodepth-list",
    topology="T7",
    variants=("tf.cond", "random image ops with op seeds"),
    order_note="shuffled by shuffle_batch",
    random_ops=True,
    stages=(MISSING_FILE, NOT_AN_IMAGE),
    style="monodepth: lines of a list file -> two read_file -> joint flip by tf.cond -> shuffle_batch",
)
def monodepth_list(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    left, right, files, listed = _stereo(folder, fault)

    def load(name):
        picture = tf.image.decode_png(tf.read_file(tf.string_join([str(folder), name], "/")), channels=3)
        picture.set_shape([HEIGHT, WIDTH, 3])
        return tf.image.convert_image_dtype(picture, tf.float32)

    def build_fn():
        lists = tf.train.string_input_producer([listed], shuffle=False, num_epochs=epochs)
        _, line = tf.TextLineReader().read(lists)
        words = tf.string_split([line]).values
        pair = [load(words[0]), load(words[1])]
        mirrored = tf.random_uniform([], seed=5) > 0.5
        # A mirrored pair also swaps its sides.
        first = tf.cond(mirrored, lambda: tf.image.flip_left_right(pair[1]), lambda: pair[0])
        second = tf.cond(mirrored, lambda: tf.image.flip_left_right(pair[0]), lambda: pair[1])
        for side in (first, second):
            side.set_shape([HEIGHT, WIDTH, 3])
        return tf.train.shuffle_batch(
            [first, second], batch_size=4, capacity=14, min_after_dequeue=6, num_threads=1, seed=5
        )

    def unswapped(record):
        a, b = (np.round(image * 255).astype(np.uint8) for image in record)
        return min((a, b), (b[:, ::-1], a[:, ::-1]), key=lambda pair: (pair[0].tobytes(), pair[1].tobytes()))

    return Program(
        build_fn=build_fn,
        records=tuple(unswapped((a / np.float32(255), b / np.float32(255))) for a, b in zip(left, right, strict=True)),
        epochs=epochs,
        batch_size=4,
        in_flight=20,
        files=files,
        invariant=unswapped,
    )


@entry(
    "T7-list-csv",
    topology="T7",
    ordered=True,
    stages=(MISSING_FILE, NOT_AN_IMAGE, FEW_FIELDS),
)
def list_csv(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images = [pixels(i, HEIGHT, WIDTH, 3) for i in range(12)]
    files = write_each(
        folder, [image_bytes(fault, i, png(v)) for i, v in enumerate(images)], suffix=".png", fault=fault
    )
    lines = [f"{f.path},{i}" if not fault.at(FEW_FIELDS, i) else f.path for i, f in enumerate(files)]
    (listed,) = write_lines(folder, lines, name="train", suffix=".txt")

    def read(line):
        name, label = tf.decode_csv(line, record_defaults=[[""], [0]])
        image = tf.image.decode_image(tf.read_file(name), channels=3)
        image.set_shape([HEIGHT, WIDTH, 3])
        return image, label

    def build_fn():
        queue = tf.train.string_input_producer([listed.path], num_epochs=epochs)
        _, line = tf.TextLineReader().read(queue)
        return tf.train.batch(list(read(line)), batch_size=5, allow_smaller_final_batch=True)

    return Program(
        build_fn=build_fn,
        records=tuple((image, np.int32(i)) for i, image in enumerate(images)),
        epochs=epochs,
        batch_size=5,
        keep_remainder=True,
        files=files,
        hand_written_twin=lambda: tf2.data.TextLineDataset([listed.path]).repeat(epochs).map(read).batch(5),
    )


@entry(
    "T7-walked-list",
    topology="T7",
    variants=("code that relies on order",),
    ordered=True,
    stages=(MISSING_FILE, NOT_AN_IMAGE),
)
def walked_list(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """The batch holds images only: the program walks its own list of names beside the queue."""
    left, _, files, _ = _stereo(folder, fault)

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), shuffle=False, num_epochs=epochs)
        _, content = tf.WholeFileReader().read(queue)
        image = tf.image.decode_png(content, channels=3)
        image.set_shape([HEIGHT, WIDTH, 3])
        return tf.train.batch([tf.image.flip_left_right(image)], batch_size=1, num_threads=1)

    def twin():
        dataset = tf2.data.Dataset.from_tensor_slices(paths(files)).repeat(epochs)
        dataset = dataset.map(lambda name: tf2.io.decode_png(tf2.io.read_file(name), channels=3)[:, ::-1])
        return dataset.batch(1)

    return Program(
        build_fn=build_fn,
        records=tuple(image[:, ::-1] for image in left),
        epochs=epochs,
        batch_size=1,
        files=files,
        hand_written_twin=twin,
    )
