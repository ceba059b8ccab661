"""Wrong twins with more than one mistake, and with rounding on top of a mistake: each mistake is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

import tfqueue
from tests.mutants.catalogue import ALL, KEPT, files, on, resized, stream
from tests.mutants.tiles import BATCH, HEIGHT, WIDTH, source, write

pytestmark = pytest.mark.filterwarnings("ignore::tfqueue.errors.TFQueueWarning")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write(tmp_path_factory.mktemp("tiles"))


def both(*changes: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        for one in changes:
            record = one(record)
        return record

    return change


# A graph in a session multiplies by the reciprocal, a Dataset divides: they differ in the last digit.
DIVIDED = on("image", lambda i: i / 255.0)
LATER = on("label", lambda n: n + 1)
SHUFFLED = {"shuffle": True}


def divided(*, old: dict[str, Any] | None = None, change: Any = None, **wrong: Any) -> Any:
    more = DIVIDED if change is None else both(DIVIDED, change)
    return stream(old={"change": DIVIDED} | KEPT | (old or {}), change=more, **(ALL | wrong))


COMBINED: dict[str, tuple[Any, set[str]]] = {
    "rounding, remainder dropped": (
        divided(batch=lambda d: d.batch(BATCH, drop_remainder=True)),
        {"rounding", "remainder-dropped"},
    ),
    "rounding, file missing": (divided(read=files(lambda p: p[:1] + p[2:])), {"rounding", "file-missing"}),
    "rounding, file in another's place": (divided(read=files(lambda p: [p[0], p[0], p[2]])), {"file-missing"}),
    "rounding, files in another order": (divided(read=files(lambda p: p[::-1])), {"rounding", "file-order"}),
    "rounding, batch size": (divided(batch=lambda d: d.batch(12)), {"rounding", "batch-size"}),
    "rounding, labels from 1, shuffled": (
        stream(both=SHUFFLED, old={"change": DIVIDED}, change=both(DIVIDED, LATER)),
        {"label-off-by-one"},
    ),
    "rounding, float16, shuffled": (
        stream(
            both=SHUFFLED,
            old={"change": DIVIDED},
            change=both(DIVIDED, on("image", lambda i: tf.cast(tf.cast(i, tf.float16), tf.float32))),
        ),
        {"float-narrowing"},
    ),
    "channels swapped, not divided": (
        stream(change=on("image", lambda i: i[..., ::-1] * 255.0)),
        {"channels-swapped", "scale-255"},
    ),
    "flipped, labels from 1": (
        stream(change=both(on("image", lambda i: i[:, ::-1]), LATER)),
        {"flipped", "label-off-by-one"},
    ),
    "resize, remainder kept": (
        stream(shape=resized(), batch=lambda d: d.batch(BATCH)),
        {"resize-half-pixel", "remainder-kept"},
    ),
    "resize, labels from 1, shuffled": (
        stream(both=SHUFFLED, shape=resized(), change=LATER),
        {"resize-half-pixel", "label-off-by-one"},
    ),
    "another kernel with antialiasing": (stream(shape=resized(method="lanczos3")), {"resize-kernel"}),
    "whole grey levels": (
        stream(change=on("image", lambda i: tf.cast(tf.cast(i * 255.0, tf.uint8), tf.float32) / 255.0)),
        {"truncated-to-int"},
    ),
    "crop and mean": (
        stream(
            both={"shape": lambda i: i[8 : 8 + HEIGHT, 6 : 6 + WIDTH]},
            shape=lambda i: i[10 : 10 + HEIGHT, 7 : 7 + WIDTH] * 0.5 + 3.0,
        ),
        {"cropped"},
    ),
    "random numbers with a seed": (
        stream(change=on("number", lambda n: n + tf.random.normal([5], seed=3)), both={"keep": ("number", "name")}),
        {"random-values"},
    ),
    "random numbers without a seed": (
        stream(change=on("number", lambda n: n + tf.random.normal([5])), both={"keep": ("number", "name")}),
        {"random-values"},
    ),
}


@pytest.mark.parametrize("name", COMBINED)
def test_every_mistake_is_named(name: str, paths: list[str]) -> None:
    sides, expected = COMBINED[name]
    report = tfqueue.compare(*sides(paths))
    assert not report.equivalent
    assert expected <= {cause.name for cause in report.causes}, str(report)


def test_the_candidate_is_blamed_for_its_own_random_numbers(paths: list[str]) -> None:
    report = tfqueue.compare(*COMBINED["random numbers without a seed"][0](paths))
    cause = next(cause for cause in report.causes if cause.name == "random-values")
    assert cause.side == "candidate"
    assert "two runs of the candidate deliver other values of number" in report.check("determinism").summary


def test_planes_read_as_pixels_are_found_behind_a_crop_and_a_standardisation(tmp_path: Any) -> None:
    """The usual CIFAR program: what was read in the wrong layout is cut and normalised before it is compared."""
    path = str(tmp_path / "planes.bin")
    original = list(source(write(tmp_path)).take(40).as_numpy_iterator())
    images = [
        tf.image.resize(
            tf.image.decode_jpeg(
                tf.io.parse_single_example(r, {"image": tf.io.FixedLenFeature([], tf.string)})["image"]
            ),
            [32, 32],
        )
        for r in original
    ]
    with open(path, "wb") as file:
        for number, image in enumerate(images):
            planes = tf.cast(tf.transpose(image, [2, 0, 1]), tf.uint8).numpy()
            file.write(bytes([number % 10]) + planes.tobytes())

    def record(value: Any, image: Callable[[Any], Any]) -> tuple[Any, Any]:
        data = tf.io.decode_raw(value, tf.uint8)
        cut = tf.image.resize_with_crop_or_pad(tf.cast(image(data[1:3073]), tf.float32), 24, 24)
        cut.set_shape([24, 24, 3])
        return tf.image.per_image_standardization(cut), tf.cast(data[0], tf.int32)

    def legacy() -> Any:
        queue = tf.compat.v1.train.string_input_producer([path], num_epochs=1, shuffle=False)
        value = tf.compat.v1.FixedLengthRecordReader(3073).read(queue)[1]
        one = record(value, lambda data: tf.transpose(tf.reshape(data, [3, 32, 32]), [1, 2, 0]))
        return tf.compat.v1.train.batch(one, 10)

    def twin() -> tf.data.Dataset:
        return (
            tf.data.FixedLengthRecordDataset(path, 3073)
            .map(lambda value: record(value, lambda data: tf.reshape(data, [32, 32, 3])))
            .batch(10)
        )

    assert [cause.name for cause in tfqueue.compare(legacy, twin).causes] == ["channels-first"]
