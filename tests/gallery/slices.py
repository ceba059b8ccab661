"""T4, T5, T18: slice_input_producer and range_input_producer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import image_bytes, paths, pixels, png, write_each
from .registry import MISSING_FILE, NO_FAULT, NOT_AN_IMAGE, Fault, Program, entry

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
