"""Causes that the catalogue of wrong twins does not hold, and that no cause is named without reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.equivalence.batches import changed, cut, records, taken
from tfqueue.equivalence.causes import CATALOGUE, NAMES
from tfqueue.equivalence.report import Report

tf1 = tf.compat.v1


def names(report: Report) -> list[str]:
    assert not report.equivalent
    return [cause.name for cause in report.causes]


def test_every_cause_is_said_and_advised() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 45
    assert all(entry.summary and entry.advice for entry in CATALOGUE.values())


def test_one_changed_record_has_no_systematic_cause() -> None:
    assert names(tfqueue.compare(cut(records()), cut(changed(records(), "label", (9,), 3)))) == []
    assert names(tfqueue.compare(cut(records()), cut(changed(records(), "image", (9, 0, 0, 0), 7)))) == []


def test_records_doubled() -> None:
    order = np.concatenate([np.arange(40), [3, 17, 30]])
    assert names(tfqueue.compare(cut(records()), cut(taken(records(), order)))) == ["records-doubled"]


def test_random_values_blame_the_reference() -> None:
    def fixed() -> Any:
        number = tf1.train.range_input_producer(40, num_epochs=1, shuffle=False).dequeue()
        batch = tf1.train.batch([number, tf1.random_uniform([4])], 8)
        return {"n": batch[0], "noise": batch[1]}

    def modern() -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(40).map(lambda n: tf.cast(n, tf.int32))
        return numbers.map(lambda n: {"n": n, "noise": tf.random.uniform([4])}).batch(8)

    report = tfqueue.compare(fixed, modern)
    assert report.verdict == "undecided"
    (cause,) = report.causes
    assert (cause.name, cause.side, cause.feature) == ("random-values", "reference", "noise")
    wrong = tfqueue.compare(fixed, lambda: modern().map(lambda b: b | {"n": b["n"] * 2}))
    assert wrong.verdict == "different"


def test_repeat_before_shuffle() -> None:
    def build() -> Any:
        number = tf1.train.range_input_producer(64, num_epochs=4, shuffle=True).dequeue()
        return {"n": tf1.train.batch([number], 8)}

    def modern() -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(64).map(lambda n: {"n": tf.cast(n, tf.int32)})
        return numbers.repeat(4).shuffle(64).batch(8)

    assert names(tfqueue.compare(build, modern)) == ["repeat-before-shuffle"]


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (lambda x: x[..., ::-1], "channels-swapped"),
        (lambda x: x[:, :, ::-1], "flipped"),
        (lambda x: (x.astype(np.float32) / 255).astype(np.float32), "scale-255"),
        (lambda x: x.astype(np.int64) - 300, "label-off-by-one"),
    ],
)
def test_lists_of_arrays_do_as_well(wrong: Any, cause: str) -> None:
    data = records()
    other = dict(data, image=wrong(data["image"]))
    assert cause in names(tfqueue.compare(cut(data), cut(other)))
    assert cause in names(tfqueue.compare(cut(data), cut(taken(other, np.random.default_rng(0).permutation(40)))))


def test_consumers_of_one_queue_race() -> None:
    left = [((np.arange(i, i + 4),), (np.arange(i + 4, i + 8),)) for i in range(0, 80, 8)]
    right = [(b, a) if n % 3 == 0 else (a, b) for n, (a, b) in enumerate(left)]
    report = tfqueue.compare(left, right)
    assert report.verdict == "undecided"
    assert names(report) == ["consumers-race"]


def test_labels_do_not_lead_to_wrong_pairs() -> None:
    rng = np.random.default_rng(0)
    data = {"image": rng.integers(0, 256, (400, 12, 12, 3)).astype(np.uint8), "label": np.arange(400) % 10}
    twice = np.concatenate([rng.permutation(400), rng.permutation(400)])
    other = dict(data, image=data["image"][..., ::-1])
    report = tfqueue.compare(cut(taken(data, twice), 16), cut(taken(other, rng.permutation(twice)), 16), order="any")
    assert names(report) == ["channels-swapped"]


@pytest.mark.parametrize("epochs", [1, 2])
def test_labels_shifted_over_several_passes(epochs: int) -> None:
    data = {"image": records(60)["image"], "label": np.random.default_rng(0).integers(0, 9, 60)}
    order = np.tile(np.arange(60), epochs)
    other = dict(data, label=np.roll(data["label"], 1))
    assert names(tfqueue.compare(cut(taken(data, order)), cut(taken(other, order)))) == ["label-shifted"]


def test_noise_is_not_taken_for_a_jpeg_where_there_is_none() -> None:
    images = np.random.default_rng(0).integers(0, 256, (64, 8, 8, 3)).astype(np.float32)

    def build() -> Any:
        image = tf1.train.slice_input_producer([images], num_epochs=1, shuffle=False)[0]
        return {"image": tf1.train.batch([image], 8)}

    noisy = images + np.random.default_rng(1).normal(size=images.shape).astype(np.float32)
    assert names(tfqueue.compare(build, cut({"image": noisy}))) == []
