"""The shuffle check: how far records move, on real queues and Datasets, and by simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tfqueue.equivalence.digest import fmix
from tfqueue.equivalence.mixing import buffered, expected_reach, reach, source_numbers

tf1 = tf.compat.v1
COUNT, LEAST, CAPACITY, BATCH = 2000, 200, 260, 20


def legacy(epochs: int = 1) -> Any:
    def build() -> Any:
        number = tf1.train.range_input_producer(COUNT, num_epochs=epochs, shuffle=False).dequeue()
        return {"n": tf1.train.shuffle_batch([number], BATCH, CAPACITY, LEAST)}

    return build


def modern(size: int | None, epochs: int = 1) -> Any:
    def build() -> tf.data.Dataset:
        dataset = tf.data.Dataset.range(COUNT).repeat(epochs).map(lambda n: {"n": tf.cast(n, tf.int32)})
        return (dataset if size is None else dataset.shuffle(size)).batch(BATCH)

    return build


@pytest.mark.parametrize("epochs", [1, 2])
def test_the_same_buffer_is_the_same(epochs: int) -> None:
    report = tfqueue.compare(legacy(epochs), modern(LEAST, epochs))
    assert report.equivalent, str(report)
    assert report.check("shuffle").status == "same"


@pytest.mark.parametrize(
    ("size", "cause"),
    [(LEAST // 2, "buffer-too-small"), (4 * CAPACITY, "buffer-too-large"), (None, "not-shuffled")],
)
def test_another_buffer_is_different(size: int | None, cause: str) -> None:
    report = tfqueue.compare(legacy(), modern(size))
    assert [r.name for r in report.checks if r.counts and r.status == "different"] == ["shuffle"]
    assert [c.name for c in report.causes] == [cause]
    assert tfqueue.compare(legacy(), modern(size), order="any").equivalent


def test_a_queue_has_the_expected_reach() -> None:
    """A real RandomShuffleQueue against the simulation that the check rests on."""
    with tfqueue.QueuePipeline(legacy()) as pipeline:
        delivered = np.concatenate([batch["n"] for batch in pipeline]).astype(np.uint64)
    source = np.arange(COUNT, dtype=np.uint64)
    found = reach(source, delivered, COUNT)
    assert expected_reach(source, LEAST, COUNT).low <= found <= expected_reach(source, CAPACITY, COUNT).high


def test_a_buffer_delivers_every_record_once_and_none_too_early() -> None:
    order = buffered(500, 40, np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(500))
    assert (np.arange(500) - order).min() > -40


def test_equal_records_are_told_apart_by_their_order() -> None:
    source = fmix(np.array([1, 2, 1, 3], dtype=np.uint64))
    delivered = source[[3, 0, 2, 1]]
    numbers, places = source_numbers(source, delivered)
    assert dict(zip(places.tolist(), numbers.tolist(), strict=True)) == {0: 3, 1: 0, 2: 2, 3: 1}


def data(size: int) -> tf.data.Dataset:
    return tf.data.Dataset.range(12_000).shuffle(size).batch(100)


def test_without_a_known_source_two_runs_of_the_reference_are_the_measure() -> None:
    report = tfqueue.compare(data(400), data(400))
    assert report.equivalent, str(report)
    assert report.check("shuffle").status == "same"
    for size, cause in ((200, "buffer-too-small"), (900, "buffer-too-large")):
        report = tfqueue.compare(data(400), data(size))
        assert [r.name for r in report.checks if r.counts and r.status == "different"] == ["shuffle"]
        assert [c.name for c in report.causes] == [cause]
