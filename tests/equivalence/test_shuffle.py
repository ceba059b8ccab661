"""The shuffle check: how far records move, on real queues and Datasets, and by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from benchmarks.shuffle_power import Case, differs
from tfqueue.equivalence.digest import fmix
from tfqueue.equivalence.mixing import (
    buffered,
    earliest,
    expected_reach,
    least_earliness,
    reach,
    source_numbers,
)
from tfqueue.equivalence.ordering import Ordering

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


def shuffling(count: int, *, queue: int | None = None, threads: int = 1) -> Any:
    """A producer that shuffles, with a shuffling queue behind it or without."""

    def build() -> Any:
        number = tf1.train.range_input_producer(count, num_epochs=1, shuffle=True).dequeue()
        if queue is None:
            return {"n": tf1.train.batch([number], BATCH)}
        return {"n": tf1.train.shuffle_batch([number], BATCH, queue + 60, queue, num_threads=threads)}

    return build


def passes_of(count: int, size: int | None, then: int | None = None) -> Any:
    def build() -> tf.data.Dataset:
        dataset = tf.data.Dataset.range(count).map(lambda n: {"n": tf.cast(n, tf.int32)})
        dataset = dataset if size is None else dataset.shuffle(size)
        return (dataset if then is None else dataset.shuffle(then)).batch(BATCH)

    return build


@pytest.mark.parametrize("count", [160, COUNT])
@pytest.mark.parametrize("queue", [None, 50])
def test_a_producer_that_shuffles(count: int, queue: int | None) -> None:
    reference = shuffling(count, queue=queue)
    report = tfqueue.compare(reference, passes_of(count, count, queue))
    assert report.equivalent, str(report)
    assert report.check("shuffle").status == "same"
    for size, cause in ((count // 2, "buffer-too-small"), (None, "not-shuffled")):
        report = tfqueue.compare(reference, passes_of(count, size))
        assert [c.name for c in report.causes] == [cause], str(report)


def test_several_threads_before_the_queue() -> None:
    def build() -> Any:
        number = tf1.train.range_input_producer(COUNT, num_epochs=1, shuffle=False).dequeue()
        return {"n": tf1.train.shuffle_batch([number], BATCH, CAPACITY, LEAST, num_threads=4)}

    assert tfqueue.compare(build, modern(LEAST)).check("shuffle").status == "same"
    assert [c.name for c in tfqueue.compare(build, modern(LEAST // 2)).causes] == ["buffer-too-small"]


def test_files_in_any_order_and_a_queue_behind(tmp_path: Path) -> None:
    paths = []
    for file in range(20):
        paths.append(str(tmp_path / f"{file:02d}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for i in range(100):
                writer.write(np.int32(100 * file + i).tobytes())

    def decode(serialized: Any) -> dict[str, Any]:
        return {"n": tf.reshape(tf.io.decode_raw(serialized, tf.int32), [])}

    def build() -> Any:
        queue = tf1.train.string_input_producer(paths, num_epochs=1, shuffle=True)
        record = decode(tf1.TFRecordReader().read(queue)[1])
        return tf1.train.shuffle_batch(record, BATCH, CAPACITY, LEAST)

    def twin(size: int) -> Any:
        files = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths))
        return lambda: files.flat_map(tf.data.TFRecordDataset).map(decode).shuffle(size).batch(BATCH)

    report = tfqueue.compare(build, twin(LEAST))
    assert report.equivalent, str(report)
    assert report.check("shuffle").status == "same"
    assert [c.name for c in tfqueue.compare(build, twin(LEAST // 2)).causes] == ["buffer-too-small"]


def test_what_a_queue_cannot_do_is_told_of_few_records_too() -> None:
    def build() -> Any:
        number = tf1.train.range_input_producer(300, num_epochs=1, shuffle=False).dequeue()
        return {"n": tf1.train.shuffle_batch([number], BATCH, 100, 60)}

    assert tfqueue.compare(build, passes_of(300, 60)).equivalent
    for size, cause in ((30, "buffer-too-small"), (300, "buffer-too-large")):
        assert [c.name for c in tfqueue.compare(build, passes_of(300, size)).causes] == [cause]


@pytest.mark.parametrize(("count", "size"), [(160, 160), (300, 60), (2000, 200), (2000, 1900)])
def test_the_bound_of_earliness_holds(count: int, size: int) -> None:
    rng = np.random.default_rng(0)
    source = np.arange(count, dtype=np.uint64)
    found = [earliest(source, source[buffered(count, size, rng)]) for _ in range(300)]
    assert max(found) < size
    assert min(found) >= least_earliness(size, count)


def test_a_buffer_that_holds_everything_is_told_from_half_of_it_by_its_own_runs() -> None:
    def data(size: int) -> tf.data.Dataset:
        return tf.data.Dataset.range(10_000).shuffle(size).batch(100)

    assert tfqueue.compare(data(10_000), data(10_000)).equivalent
    assert [c.name for c in tfqueue.compare(data(10_000), data(5_000)).causes] == ["buffer-too-small"]


def test_what_a_training_run_feels_is_in_the_evidence() -> None:
    def build() -> Any:
        number = tf1.train.range_input_producer(COUNT, num_epochs=2, shuffle=False).dequeue()
        return dict(
            zip(("n", "label"), tf1.train.shuffle_batch([number, number // 100], BATCH, CAPACITY, LEAST), strict=True)
        )

    def twin() -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(COUNT).repeat(2).map(lambda n: tf.cast(n, tf.int32)).shuffle(LEAST)
        return numbers.map(lambda n: {"n": n, "label": n // 100}).batch(BATCH)

    evidence = tfqueue.compare(build, twin).check("shuffle").evidence
    for role in ("reference", "candidate"):
        assert evidence[f"{role}_labels_a_batch"]["feature"] == "label"
        assert 2 < evidence[f"{role}_labels_a_batch"]["mean"] < 8
        assert 0.5 * COUNT < evidence[f"{role}_repeat_distance"]["median"] < 1.5 * COUNT
        assert evidence[f"{role}_neighbours_kept"] < 0.1


@pytest.mark.parametrize("count", [640, 4000])
def test_whole_batches_that_are_shuffled_are_told_from_single_records(count: int) -> None:
    """Records move as far as they should, but those of a batch together."""

    def build() -> Any:
        number = tf1.train.range_input_producer(count, num_epochs=1, shuffle=False).dequeue()
        return {"n": tf1.train.shuffle_batch([number], BATCH, CAPACITY, LEAST)}

    def twin() -> tf.data.Dataset:
        dataset = tf.data.Dataset.range(count).map(lambda n: {"n": tf.cast(n, tf.int32)})
        return dataset.batch(BATCH).shuffle(LEAST // BATCH)

    report = tfqueue.compare(build, twin)
    assert [r.name for r in report.checks if r.counts and r.status == "different"] == ["shuffle"]
    assert [c.name for c in report.causes] == ["batch-before-shuffle"], str(report)


def test_whole_batches_are_told_by_second_runs_too() -> None:
    def data(first: int, then: int) -> tf.data.Dataset:
        return tf.data.Dataset.range(8000).batch(first).shuffle(400 // first).unbatch().batch(then)

    report = tfqueue.compare(data(1, 20), data(20, 20))
    assert [c.name for c in report.causes] == ["batch-before-shuffle"], str(report)
    assert tfqueue.compare(data(20, 20), data(20, 20)).equivalent


def test_a_small_buffer_keeps_passes_apart_by_chance() -> None:
    """Where the queue of the reference holds more than it must, and the candidate just as much as it must."""
    ordering = Ordering(False, "", 300, 4, True)
    source = np.tile(fmix(np.arange(1, 335, dtype=np.uint64)), 3)
    rng = np.random.default_rng(0)
    whole = np.concatenate([buffered(334, 4, rng) for _ in range(3)]) + np.repeat([0, 334, 668], 334)
    case = Case(ordering, source, source[buffered(1002, 250, rng)], source[whole], None)
    assert not differs(case, case.equal, None)
    larger = Case(Ordering(False, "", 300, 40, True), source, case.reference, case.equal, None)
    assert differs(larger, larger.equal, None)
