"""Sides: everything that delivers batches is recognised, and what does not is named."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tfqueue.equivalence.ordering import of_dataset
from tfqueue.equivalence.streams import side_of
from tfqueue.errors import InvalidArgument, InvalidBuildFunction, InvalidStream

tf1 = tf.compat.v1
COUNT = 24


def legacy(shuffle: bool = False, threads: int = 1) -> Any:
    def build() -> Any:
        number = tf1.train.range_input_producer(COUNT, num_epochs=1, shuffle=False).dequeue()
        if shuffle:
            return {"n": tf1.train.shuffle_batch([number], 6, 20, 8)}
        return {"n": tf1.train.batch([number], 6, num_threads=threads)}

    return build


def modern() -> tf.data.Dataset:
    return tf.data.Dataset.range(COUNT).map(lambda n: {"n": tf.cast(n, tf.int32)}).batch(6)


def numbers() -> list[Any]:
    return [{"n": np.arange(i, i + 6, dtype=np.int32)} for i in range(0, COUNT, 6)]


@pytest.mark.parametrize(
    "reference",
    [legacy(), tfqueue.QueuePipeline(legacy()), modern(), numbers()],
    ids=["build", "queue", "data", "list"],
)
@pytest.mark.parametrize(
    "candidate",
    [tfqueue.QueuePipeline(legacy()), modern(), modern, numbers(), numbers, lambda: iter(numbers())],
    ids=["queue", "data", "function", "list", "to list", "to iterator"],
)
def test_every_kind_of_side(reference: Any, candidate: Any) -> None:
    assert tfqueue.compare(reference, candidate).equivalent


def test_sides_work_inside_a_graph() -> None:
    with tf.Graph().as_default():
        report = tfqueue.compare(legacy(), modern)
    assert report.equivalent, str(report)


def test_sides_work_where_eager_execution_is_off() -> None:
    code = """
        import tensorflow as tf
        tf.compat.v1.disable_eager_execution()
        import tfqueue
        from tests.equivalence.test_streams import legacy, modern
        print(tfqueue.compare(legacy(), modern).verdict)
    """
    # The module makes eager Datasets when it is imported, so the sides are defined anew here.
    code = textwrap.dedent(code).replace(
        "from tests.equivalence.test_streams import legacy, modern",
        textwrap.dedent("""
        def legacy():
            def build():
                n = tf.compat.v1.train.range_input_producer(24, num_epochs=1, shuffle=False).dequeue()
                return {"n": tf.compat.v1.train.batch([n], 6)}
            return build
        def modern():
            return tf.data.Dataset.range(24).map(lambda n: {"n": tf.cast(n, tf.int32)}).batch(6)
        """),
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "equivalent\n", done.stderr[-2000:]


def test_what_is_known_about_the_order() -> None:
    for build, defined in ((legacy(), True), (legacy(shuffle=True), False)):
        with side_of(build, "reference").open() as run:
            assert run.ordering.defined is defined
    with tfqueue.QueuePipeline(legacy(shuffle=True)) as pipeline:
        from tfqueue.equivalence.ordering import of_graph

        known = of_graph(pipeline.graph)
    assert (known.capacity, known.min_after_dequeue, known.shuffled) == (20, 8, True)
    known = of_dataset(modern().shuffle(7).prefetch(1))
    assert (known.defined, known.min_after_dequeue, known.shuffled) == (False, 7, True)
    assert of_dataset(modern()).defined is None


def test_several_threads_leave_the_order_free() -> None:
    with pytest.warns(tfqueue.errors.TFQueueWarning, match="4 threads"):
        report = tfqueue.compare(legacy(threads=4), modern())
    assert report.equivalent, str(report)


class NotIterable:
    pass


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (3, "the candidate is an int, which is no stream of batches"),
        (NotIterable(), "the candidate is a NotIterable"),
        (None, "the candidate is a NoneType"),
        (b"bytes", "the candidate is a bytes object"),
        ({"x": np.zeros(3)}, "the candidate is a dict, which is one batch at most"),
        (np.zeros((3, 2)), "the candidate is a ndarray, which is one batch at most"),
        (tf.zeros([3]), "which is one batch at most"),
        (lambda: None, "returned None"),
        (lambda: {"x": np.zeros(3)}, "returned a dict, not a stream of batches"),
        (lambda: 5, "the candidate is an int"),
        (lambda: modern, "returned a function; call it"),
        (legacy(), "is TF1 graph code, which a plain call cannot run"),
        ([object()], "feature value is an object, not a tensor"),
    ],
)
def test_what_is_no_stream(candidate: Any, words: str) -> None:
    with pytest.raises(InvalidStream, match=words):
        tfqueue.compare(numbers(), candidate)


def test_calls_that_cannot_work() -> None:
    with pytest.raises(InvalidArgument, match="cannot be called without arguments"):
        tfqueue.compare(numbers(), lambda x: x)
    with pytest.raises(InvalidArgument, match="same iterator"):
        tfqueue.compare(iterator := iter(numbers()), iterator)
    with pytest.raises(InvalidArgument, match="both sides never end"):
        tfqueue.compare(modern().repeat(), modern().repeat())
    with pytest.raises(InvalidBuildFunction):
        tfqueue.compare(lambda: None, modern())


def test_a_reference_that_cannot_start_is_reported() -> None:
    def build() -> Any:
        queue = tf1.train.string_input_producer(["/no/such/file.tfrecord"], num_epochs=1)
        return tf1.train.batch([tf1.TFRecordReader().read(queue)[1]], 2)

    report = tfqueue.compare(build, modern())
    assert report.verdict == "different"
    assert "the reference failed after 0 batches" in report.check("end").summary
    assert "/no/such/file.tfrecord" in report.check("end").summary


def test_static_shapes_are_told_but_do_not_count() -> None:
    report = tfqueue.compare(legacy(), modern())
    shape = report.check("shape")
    assert shape.status == "same"
    assert "static shapes differ: n [6] in the reference, [?] in the candidate" in shape.summary
    assert shape.evidence["n"]["static_candidate"] == "[?]"


def test_batches_that_overtake_each_other_are_the_same_where_the_order_is_free() -> None:
    def build() -> Any:
        queue = tf1.FIFOQueue(4, tf.int32)
        number = tf1.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
        enqueue = queue.enqueue([tf.range(1 + number % 3)])
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [enqueue] * 2))
        return queue.dequeue()

    sizes = [2, 1, 3, 1, 3, 2]
    with pytest.warns(tfqueue.errors.TFQueueWarning):
        report = tfqueue.compare(build, [np.arange(size, dtype=np.int32) for size in sizes])
    assert report.check("batches").status == "same"
    with pytest.warns(tfqueue.errors.TFQueueWarning):
        report = tfqueue.compare(build, [np.arange(size, dtype=np.int32) for size in [3, 1, 2, 3, 3, 0]])
    assert report.check("batches").status == "different"
