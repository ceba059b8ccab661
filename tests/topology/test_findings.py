"""What is worth a warning in a pipeline, and what is not."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.topology import builders
from tfqueue.topology.findings import findings, order_is_defined
from tfqueue.topology.trace import trace

tf1 = tf.compat.v1


def kinds(build_fn):
    return [finding.kind for finding in findings(trace(build_fn))]


def numbers(count, **options):
    return tf1.train.range_input_producer(count, **{"shuffle": False, **options}).dequeue()


def two_streams(threads, **options):
    def build():
        return tf1.train.batch([numbers(6, **options), numbers(6, **options)], 3, num_threads=threads)

    return build


def test_a_plain_pipeline_has_none():
    def build():
        return tf1.train.batch([numbers(6, num_epochs=2)], 3)

    topology = trace(build)
    assert findings(topology) == ()
    assert order_is_defined(topology)


def test_a_dead_queue():
    (found,) = [f for f in findings(trace(builders.branches)) if f.kind == "dead-queue"]
    assert found.node == "dead/random_shuffle_queue"
    assert str(found).endswith(f"({found.source})")
    assert "no fetch depends on it" in str(found)


def test_streams_zipped_by_one_thread():
    assert kinds(two_streams(1)) == []


def test_streams_zipped_by_several_threads():
    assert kinds(two_streams(3)) == ["implicit-zip", "order"]


def test_streams_zipped_after_equal_shuffles():
    assert kinds(two_streams(1, shuffle=True, seed=4)) == []


def test_streams_zipped_after_unseeded_shuffles():
    assert kinds(two_streams(1, shuffle=True)) == ["implicit-zip", "order", "order"]


def test_streams_zipped_after_unequal_shuffles():
    def build():
        return numbers(6, shuffle=True, seed=1), numbers(6, shuffle=True, seed=2)

    assert kinds(build) == ["implicit-zip"]


@pytest.mark.parametrize(
    ("count", "epochs", "batch", "smaller", "words"),
    [
        (10, 1, 4, False, "the last 2 of 10 records are dropped"),
        (9, 1, 4, False, "the last of 9 is dropped"),
        (10, 2, 4, False, None),
        (10, 1, 4, True, None),
        (10, None, 4, False, None),
        (10, 1, 1, False, None),
    ],
)
def test_records_dropped_at_the_end(count, epochs, batch, smaller, words):
    def build():
        return tf1.train.batch([numbers(count, num_epochs=epochs)], batch, allow_smaller_final_batch=smaller)

    dropped = [f.message for f in findings(trace(build)) if f.kind == "records-dropped"]
    assert len(dropped) == (words is not None)
    assert words is None or dropped[0].startswith(words)


def test_records_dropped_by_batches_of_batches():
    def build():
        rows = tf1.train.batch([numbers(41, num_epochs=1)], 4)
        pairs = tf1.train.batch([rows], 3, allow_smaller_final_batch=False)
        return tf1.train.batch([tf.reshape(pairs, [12])], 5, enqueue_many=True)

    dropped = [f.message for f in findings(trace(build)) if f.kind == "records-dropped"]
    # 10 batches of 4, of which 3 threes, 36 numbers.
    assert [words.partition(" dropped")[0] for words in dropped] == [
        "the last of 41 is",
        "the last of 10 is",
        "the last of 36 is",
    ]


def test_two_batches_of_one_step_may_belong_together_or_not():
    def build():
        left = tf1.train.batch([numbers(6, shuffle=True, seed=1)], 2)
        return left, tf1.train.batch([numbers(6)], 2)

    (found,) = findings(trace(build))
    assert "side by side" in found.message
    assert "where their records belong together" in found.message


def test_records_dropped_after_a_filter_are_not_counted():
    (dropped,) = [f.message for f in findings(trace(builders.filtered)) if f.kind == "records-dropped"]
    assert dropped.startswith("up to 3 records")


def test_one_dequeue_shared_by_branches():
    def build():
        number = numbers(6)
        return tf1.train.batch_join([[number + 1], [number + 2]], 3)

    found = findings(trace(build))
    assert [f.kind for f in found] == ["shared-dequeue", "order"]
    assert "shared by 2 enqueue ops" in found[0].message


@pytest.mark.parametrize(
    ("seed", "capacity", "threads", "reasons"),
    [
        (None, 20, 1, ["has no seed"]),
        (3, 20, 1, ["depends on thread timing"]),
        (3, 11, 1, []),
        (3, 11, 2, ["2 threads fill"]),
    ],
)
def test_what_makes_the_order_undefined(seed, capacity, threads, reasons):
    def build():
        return tf1.train.shuffle_batch([numbers(6)], 2, capacity, min_after_dequeue=10, seed=seed, num_threads=threads)

    topology = trace(build)
    order = [f.message for f in findings(topology) if f.kind == "order"]
    assert len(order) == len(reasons)
    assert all(reason in message for reason, message in zip(reasons, order, strict=True))
    assert order_is_defined(topology) == (not reasons)


def test_queues_that_python_fills():
    found = findings(trace(builders.fed))
    assert [f.kind for f in found] == ["fed-from-outside"] * 2
    assert "Python code must run feed_first" in found[0].message


def test_a_queue_that_nothing_fills():
    def build():
        return tf1.FIFOQueue(3, tf.float32, [[]]).dequeue()

    (found,) = findings(trace(build))
    assert "nothing in the graph fills it" in found.message


def test_what_was_not_understood_is_said():
    def build():
        return tf.raw_ops.Unstage(dtypes=[tf.float32])[0]

    assert kinds(build) == ["not-understood"]
