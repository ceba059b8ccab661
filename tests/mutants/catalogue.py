"""Wrong twins: each with one mistake that people make, and the cause that compare should name for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from tests.mutants.tiles import (
    BATCH,
    CLASSES,
    HEIGHT,
    PER_FILE,
    WIDTH,
    crop,
    decode,
    legacy,
    source,
    twin,
)

tf1 = tf.compat.v1
COUNTED = 2000
Both = tuple[Any, Any]


@dataclass(frozen=True)
class Mutant:
    """A reference and a wrong candidate.

    Attributes:
        name: What is wrong with the candidate.
        causes: Names of causes of which one must be named.
        sides: From the paths of the data to (reference, candidate).
        options: Options of compare.
        slow: True for one that repeats another on shuffled records.
    """

    name: str
    causes: tuple[str, ...]
    sides: Callable[[list[str]], Both]
    options: dict[str, Any] = field(default_factory=dict)
    slow: bool = False

    def __str__(self) -> str:
        return self.name


def on(name: str, function: Callable[[Any], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Change one feature of a record."""
    return lambda record: record | {name: function(record[name])}


def resized(**options: Any) -> Callable[[Any], Any]:
    return lambda image: tf.image.resize(image, [HEIGHT, WIDTH], **options)


def kernel(function: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda image: function(image[tf.newaxis], [HEIGHT, WIDTH], **options)[0]


def reencoded(encoded: Any) -> Any:
    again = tf.io.encode_jpeg(tf.io.decode_jpeg(encoded, channels=3), quality=60)
    return decode(again)


def wrap(dtype: Any) -> Callable[[Any], Any]:
    return lambda values: tf.cast(tf.cast(values, dtype), values.dtype)


def byteswapped(values: Any) -> Any:
    data = tf.reshape(tf.bitcast(values, tf.uint8), [-1, 4])[:, ::-1]
    return tf.reshape(tf.bitcast(data, tf.float32), tf.shape(values))


# name: (expected causes, the features, arguments of the twin, arguments of both, options)
VALUES: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]] = {
    "channels swapped": (("channels-swapped",), {"change": on("image", lambda i: i[..., ::-1])}, {}),
    "channels rotated": (
        ("channels-swapped",),
        {"change": on("image", lambda i: tf.gather(i, [1, 2, 0], axis=-1))},
        {},
    ),
    "no colour": (
        ("grayscale",),
        {"decoder": lambda e: tf.image.grayscale_to_rgb(tf.cast(tf.image.decode_jpeg(e, channels=1), tf.float32))},
        {},
    ),
    "flipped left to right": (("flipped",), {"change": on("image", lambda i: i[:, ::-1])}, {}),
    "flipped upside down": (("flipped",), {"change": on("image", lambda i: i[::-1])}, {}),
    "rotated by 180": (("flipped",), {"change": on("image", lambda i: i[::-1, ::-1])}, {}),
    "transposed": (("transposed",), {"change": on("image", lambda i: tf.transpose(i, [1, 0, 2]))}, {}),
    "channels first": (("channels-first",), {"change": on("image", lambda i: tf.transpose(i, [2, 0, 1]))}, {}),
    "v2 resize": (("resize-half-pixel",), {"shape": resized()}, {}),
    "v2 resize antialias": (("resize-antialias",), {"shape": resized(antialias=True)}, {}),
    "v2 resize bicubic": (("resize-kernel",), {"shape": resized(method="bicubic")}, {}),
    "v2 resize nearest": (("resize-kernel",), {"shape": resized(method="nearest")}, {}),
    "area resize": (("resize-kernel",), {"shape": resized(method="area")}, {}),
    "align_corners": (("resize-align-corners",), {"shape": kernel(tf1.image.resize_bilinear, align_corners=True)}, {}),
    "half_pixel_centers": (
        ("resize-half-pixel",),
        {"shape": kernel(tf1.image.resize_bilinear, half_pixel_centers=True)},
        {},
    ),
    "v1 nearest": (("resize-kernel",), {"shape": kernel(tf1.image.resize_nearest_neighbor)}, {}),
    "v1 bicubic": (("resize-kernel",), {"shape": kernel(tf1.image.resize_bicubic)}, {}),
    "accurate DCT": (("jpeg-dct",), {"decoder": lambda e: decode(e, dct_method="INTEGER_ACCURATE")}, {}),
    "plain upscaling": (("jpeg-upscaling",), {"decoder": lambda e: decode(e, fancy_upscaling=False)}, {}),
    "encoded anew": (("re-encoded",), {"decoder": reencoded}, {}),
    "crop one pixel lower": (("cropped",), {"shape": lambda i: i[9 : 9 + HEIGHT, 6 : 6 + WIDTH]}, {"shape": crop}),
    "crop from the corner": (("cropped",), {"shape": lambda i: i[:HEIGHT, :WIDTH]}, {"shape": crop}),
    "scaled by 255": (("scale-255",), {"change": on("image", lambda i: i * 255.0)}, {}),
    "divided by 255": (("scale-255",), {"change": on("image", lambda i: i / 255.0)}, {}),
    "scaled to -1..1": (("scale-127",), {"change": on("image", lambda i: i * 2.0 - 1.0)}, {}),
    "scaled by a tenth": (("scaled",), {"change": on("image", lambda i: i * 0.1 + 3)}, {}),
    "mean subtracted": (("mean-subtracted",), {"change": on("image", lambda i: i - [0.4, 0.35, 0.3])}, {}),
    "standardised": (("standardised",), {"change": on("image", tf.image.per_image_standardization)}, {}),
    "each image divided by its largest value": (
        ("normalised",),
        {"change": on("image", lambda i: i / tf.reduce_max(i))},
        {},
    ),
    "contrast by image": (
        ("normalised",),
        {"change": on("image", lambda i: (i - tf.reduce_mean(i)) * 1.5 + tf.reduce_mean(i))},
        {},
    ),
    "clipped": (("clipped",), {"change": on("image", lambda i: tf.clip_by_value(i, 0.25, 0.75))}, {}),
    "gamma": (("function-applied",), {"change": on("image", lambda i: tf.image.adjust_gamma(i, 2.2))}, {}),
    "squares": (("function-applied",), {"change": on("number", tf.square)}, {"keep": ("number", "name")}),
    "hyperbolic tangents": (("function-applied",), {"change": on("number", tf.tanh)}, {"keep": ("number", "name")}),
    "through float16": (("float-narrowing",), {"change": on("image", wrap(tf.float16))}, {}),
    "through bfloat16": (("float-narrowing",), {"change": on("image", wrap(tf.bfloat16))}, {}),
    "as float16": (("float-narrowing",), {"change": on("image", lambda i: tf.cast(i, tf.float16))}, {}),
    "as float64": (("dtype-changed",), {"change": on("image", lambda i: tf.cast(i, tf.float64))}, {}),
    "fractions cut off": (
        ("truncated-to-int",),
        {"change": on("number", wrap(tf.int32))},
        {"keep": ("number", "name")},
    ),
    "numbers divided by 255": (
        ("rounding",),
        {"change": on("number", lambda n: n * np.float32(1.0000001))},
        {"keep": ("number", "name")},
    ),
    "big as int32": (
        ("int-narrowing",),
        {"change": on("big", lambda b: tf.cast(b, tf.int32))},
        {"keep": ("big", "name")},
    ),
    "big through int16": (("int-narrowing",), {"change": on("big", wrap(tf.int16))}, {"keep": ("big", "name")}),
    "big through uint8": (("int-narrowing",), {"change": on("big", wrap(tf.uint8))}, {"keep": ("big", "name")}),
    "bytes reversed": (("byte-order",), {"change": on("raw", byteswapped)}, {"keep": ("raw", "name")}),
    "raw read as int32": (
        ("decode-dtype",),
        {"change": on("raw", lambda r: tf.cast(tf.bitcast(r, tf.int32), tf.float32))},
        {"keep": ("raw", "name")},
    ),
    "raw left as int32": (
        ("decode-dtype",),
        {"change": on("raw", lambda r: tf.bitcast(r, tf.int32))},
        {"keep": ("raw", "name")},
    ),
    "labels from 1": (("label-off-by-one",), {"change": on("label", lambda n: n + 1)}, {}),
    "labels from -1": (("label-off-by-one",), {"change": on("label", lambda n: n - 1)}, {}),
    "classes in another order": (("labels-mapped",), {"change": on("label", lambda n: (n * 3 + 2) % CLASSES)}, {}),
    "one-hot labels": (("one-hot",), {"change": on("label", lambda n: tf.one_hot(n, CLASSES, dtype=tf.int64))}, {}),
    "name renamed": (
        ("key-renamed",),
        {"change": lambda r: {"file" if k == "name" else k: v for k, v in r.items()}},
        {},
    ),
    "name missing": (("feature-missing",), {"keep": ("image", "label")}, {}),
    "number added": (("feature-added",), {"keep": ("image", "label", "name", "number")}, {}),
}


def _values() -> Iterator[Mutant]:
    for number, (name, (causes, wrong, both)) in enumerate(VALUES.items()):
        for shuffle in (False, True):

            def sides(paths: list[str], wrong: Any = wrong, both: Any = both, shuffle: bool = shuffle) -> Both:
                return legacy(paths, shuffle=shuffle, **both), twin(paths, shuffle=shuffle, **(both | wrong))

            slow = shuffle and number % 4 != 0
            yield Mutant(f"{name}, {'shuffled' if shuffle else 'in order'}", causes, sides, slow=slow)


def zipped(step: int) -> Callable[[list[str], int], tf.data.Dataset]:
    return lambda paths, epochs: tf.data.Dataset.zip((source(paths), source(paths).skip(step)))


def pairs(change_labels: Callable[[tf.data.Dataset], tf.data.Dataset], shuffle: bool) -> Callable[[list[str]], Both]:
    """Labels that come through a Dataset of their own."""

    def sides(paths: list[str]) -> Both:
        def build() -> tf.data.Dataset:
            right = twin(paths, batch=lambda d: d)()
            labels = change_labels(right.map(lambda record: record["label"]))
            both = tf.data.Dataset.zip((right, labels)).map(lambda record, label: record | {"label": label})
            return (both.shuffle(20) if shuffle else both).batch(BATCH, drop_remainder=True)

        return legacy(paths, shuffle=shuffle), build

    return sides


def stream(
    *, both: dict[str, Any] | None = None, old: dict[str, Any] | None = None, **wrong: Any
) -> Callable[[list[str]], Both]:
    shared = both or {}
    return lambda paths: (legacy(paths, **shared, **(old or {})), twin(paths, **(shared | wrong)))


def files(change: Callable[[list[str]], list[str]]) -> Callable[[list[str], int], tf.data.Dataset]:
    return lambda paths, epochs: source(change(paths), epochs)


def of_each_file(change: Callable[[tf.data.Dataset], tf.data.Dataset]) -> Callable[[list[str], int], tf.data.Dataset]:
    def read(paths: list[str], epochs: int) -> tf.data.Dataset:
        parts = [change(tf.data.TFRecordDataset(path)) for path in paths]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.concatenate(part)
        return whole.repeat(epochs)

    return read


def once(paths: list[str], epochs: int) -> tf.data.Dataset:
    return source(paths, 1)


KEPT = {"keep_remainder": True}
ALL = {"batch": lambda d: d.batch(BATCH)}
SHUFFLED = {"shuffle": True}

STREAMS = (
    Mutant("remainder kept", ("remainder-kept",), stream(batch=lambda d: d.batch(BATCH))),
    Mutant("remainder kept, shuffled", ("remainder-kept",), stream(both=SHUFFLED, batch=lambda d: d.batch(BATCH))),
    Mutant("remainder dropped", ("remainder-dropped",), stream(old=KEPT)),
    Mutant("remainder dropped, shuffled", ("remainder-dropped",), stream(both=SHUFFLED, old=KEPT)),
    Mutant("batches of 12", ("batch-size",), stream(old=KEPT, batch=lambda d: d.batch(12))),
    Mutant("batches of 5", ("batch-size",), stream(both=SHUFFLED, old=KEPT, batch=lambda d: d.batch(5))),
    Mutant(
        "batch before repeat",
        ("batch-before-repeat",),
        stream(both={"epochs": 3}, old=KEPT, read=once, batch=lambda d: d.batch(BATCH).repeat(3)),
    ),
    Mutant(
        "batch before repeat, dropping",
        ("batch-before-repeat",),
        stream(both={"epochs": 3}, read=once, batch=lambda d: d.batch(BATCH, drop_remainder=True).repeat(3)),
    ),
    Mutant(
        "batch before repeat, shuffled",
        ("batch-before-repeat",),
        stream(both={"epochs": 3, "shuffle": True}, old=KEPT, read=once, batch=lambda d: d.batch(BATCH).repeat(3)),
    ),
    Mutant(
        "shuffle before repeat",
        ("shuffle-before-repeat",),
        stream(
            both={"epochs": 3, "shuffle": True}, old=KEPT, read=once, order=lambda d: d.shuffle(96).repeat(3), **ALL
        ),
    ),
    Mutant(
        "no reshuffle",
        ("no-reshuffle",),
        stream(
            both={"epochs": 3, "shuffle": True},
            old=KEPT,
            read=once,
            order=lambda d: d.shuffle(96, reshuffle_each_iteration=False).repeat(3),
            **ALL,
        ),
    ),
    Mutant("not shuffled", ("not-shuffled",), stream(both=SHUFFLED, old=KEPT, order=lambda d: d, **ALL)),
    Mutant("shuffled", ("not-shuffled",), stream(old={"shuffle": False, **KEPT}, shuffle=True, **ALL)),
    Mutant(
        "one epoch less",
        ("epochs-differ",),
        stream(both={"epochs": 3}, old=KEPT, read=lambda p, e: source(p, 2), **ALL),
    ),
    Mutant("one epoch more", ("epochs-differ",), stream(old=KEPT, read=lambda p, e: source(p, 2), **ALL)),
    Mutant(
        "one epoch more, shuffled",
        ("epochs-differ",),
        stream(both=SHUFFLED, old=KEPT, read=lambda p, e: source(p, 2), **ALL),
    ),
    Mutant("file missing", ("file-missing",), stream(old=KEPT, read=files(lambda p: p[:1] + p[2:]), **ALL)),
    Mutant(
        "file missing, shuffled",
        ("file-missing",),
        stream(both=SHUFFLED, old=KEPT, read=files(lambda p: p[:1] + p[2:]), **ALL),
    ),
    Mutant("file twice", ("file-twice",), stream(old=KEPT, read=files(lambda p: [*p, p[1]]), **ALL)),
    Mutant(
        "file twice, shuffled",
        ("file-twice",),
        stream(both=SHUFFLED, old=KEPT, read=files(lambda p: [*p, p[1]]), **ALL),
    ),
    Mutant(
        "files in another order", ("file-order",), stream(old=KEPT, read=files(lambda p: [p[2], p[0], p[1]]), **ALL)
    ),
    Mutant(
        "first record of each file lost",
        ("first-record-lost",),
        stream(old=KEPT, read=of_each_file(lambda d: d.skip(1)), **ALL),
    ),
    Mutant(
        "first record of each file lost, shuffled",
        ("first-record-lost",),
        stream(both=SHUFFLED, old=KEPT, read=of_each_file(lambda d: d.skip(1)), **ALL),
    ),
    Mutant(
        "last record of each file lost",
        ("last-record-lost",),
        stream(old=KEPT, read=of_each_file(lambda d: d.take(PER_FILE - 1)), **ALL),
    ),
    Mutant(
        "last record of each file lost, shuffled",
        ("last-record-lost",),
        stream(both=SHUFFLED, old=KEPT, read=of_each_file(lambda d: d.take(PER_FILE - 1)), **ALL),
    ),
    Mutant(
        "records filtered",
        ("records-lost",),
        stream(old=KEPT, batch=lambda d: d.filter(lambda r: r["label"] != 3).batch(BATCH)),
    ),
    Mutant(
        "files interleaved",
        ("order-changed", "file-order", "not-shuffled"),
        stream(
            old=KEPT,
            read=lambda p, e: tf.data.Dataset.from_tensor_slices(p).interleave(tf.data.TFRecordDataset, cycle_length=3),
            **ALL,
        ),
    ),
    Mutant("labels one record early", ("label-shifted",), pairs(lambda d: d.skip(1).concatenate(d.take(1)), False)),
    Mutant("labels one record late", ("label-shifted",), pairs(lambda d: d.skip(95).concatenate(d.take(95)), False)),
    Mutant(
        "labels one record early, shuffled", ("label-shifted",), pairs(lambda d: d.skip(1).concatenate(d.take(1)), True)
    ),
    Mutant("labels shuffled apart", ("mispaired",), pairs(lambda d: d.shuffle(96, seed=1), False)),
    Mutant("not batched", ("not-batched",), stream(old=KEPT, batch=lambda d: d)),
    Mutant(
        "features in another order",
        ("features-reordered",),
        stream(
            old=KEPT | {"change": lambda r: (r["image"], r["label"])}, change=lambda r: (r["label"], r["image"]), **ALL
        ),
    ),
    Mutant(
        "one-hot of another depth",
        ("one-hot-depth",),
        stream(
            old=KEPT | {"change": on("label", lambda n: tf.one_hot(n, CLASSES))},
            change=on("label", lambda n: tf.one_hot(n, CLASSES + 3)),
            **ALL,
        ),
    ),
)


def _padded(shapes: Any = None, values: Any = None, change: Any = lambda t: t) -> Callable[[list[str]], Both]:
    def sides(paths: list[str]) -> Both:
        from tests.mutants.tiles import SPEC

        def tokens(serialized: Any) -> dict[str, Any]:
            record = tf.io.parse_single_example(serialized, SPEC)
            return {"name": record["name"], "tokens": change(record["tokens"])}

        def build() -> tf.data.Dataset:
            dataset = source(paths).map(tokens)
            if isinstance(shapes, str):
                return dataset.batch(BATCH) if shapes == "batch" else dataset.ragged_batch(BATCH)
            return dataset.padded_batch(
                BATCH,
                padded_shapes={"name": [], "tokens": shapes or [None]},
                padding_values=None if values is None else {"name": "", "tokens": tf.constant(values, tf.int64)},
            )

        return legacy(paths, keep=("name",), pad=True, keep_remainder=True), build

    return sides


PADDING = (
    Mutant("padded with -1", ("padding-value",), _padded(values=-1)),
    Mutant("padded to 12", ("padding-length",), _padded([12])),
    Mutant("sequences cut at 3", ("truncated",), _padded([3], change=lambda t: t[:3])),
    Mutant("ragged instead of padded", ("sparse-dense",), _padded("ragged")),
    Mutant("sparse instead of padded", ("sparse-dense",), _padded("batch", change=tf.sparse.from_dense)),
)


def _racing(paths: list[str]) -> Both:
    """A reference that mispairs by itself: two producers, dequeued by several threads."""

    def both() -> Any:
        left = tf1.train.range_input_producer(COUNTED, num_epochs=1, shuffle=False, capacity=8).dequeue()
        right = tf1.train.range_input_producer(COUNTED, num_epochs=1, shuffle=False, capacity=8).dequeue()
        # Threads wait for the interpreter between the two dequeues, so that they overtake each other.
        left = tf1.py_func(lambda n: n, [left], tf.int32)
        left.set_shape([])
        batch = tf1.train.batch([left, right], 10, num_threads=8)
        return {"a": batch[0], "b": batch[1]}

    def right() -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(COUNTED)
        return numbers.map(lambda n: {"a": tf.cast(n, tf.int32), "b": tf.cast(n, tf.int32)}).batch(10)

    return both, right


RACES = (Mutant("the reference mispairs", ("mispaired-reference",), _racing),)

MUTANTS: tuple[Mutant, ...] = (*_values(), *STREAMS, *PADDING, *RACES)
