"""tf.estimator.inputs: rows of arrays through a queue, under every engine, against numpy."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf2

import tfqueue
import tfqueue.compat.v1 as tf
from tfqueue.errors import InvalidArgument

A = np.arange(22, dtype=np.float32).reshape(11, 2)
B = np.array([f"row {i}" for i in range(11)])
Y = np.arange(11, dtype=np.int64)


def batches(build, engine="threads") -> list:
    with tfqueue.QueuePipeline(build, engine=engine, stall_timeout=60) as pipeline:
        return list(pipeline)


@pytest.mark.parametrize("engine", ["threads", "lockstep", "tfdata"])
def test_rows_in_order(engine: str) -> None:
    inputs = tf.estimator.inputs.numpy_input_fn({"b": B, "a": A}, Y, 4, 2, False, 8)
    found = batches(inputs, engine)
    assert [len(labels) for _, labels in found] == [4, 4, 4, 4, 4, 2]  # over the end of the pass, and what is left
    numbers = np.concatenate([labels for _, labels in found])
    np.testing.assert_array_equal(numbers, np.tile(Y, 2))
    np.testing.assert_array_equal(np.concatenate([features["a"] for features, _ in found]), A[numbers])
    names = np.concatenate([features["b"] for features, _ in found])
    assert [name.decode() for name in names] == B[numbers].tolist()


@pytest.mark.parametrize("engine", ["threads", "lockstep", "tfdata"])
def test_shuffled_rows_are_all_there(engine: str) -> None:
    x = np.arange(100, dtype=np.float64)

    def build():
        tf.set_random_seed(3)
        return tf.estimator.inputs.numpy_input_fn(x=x, batch_size=10, num_epochs=2, shuffle=True, queue_capacity=40)()

    found = np.concatenate(batches(build, engine))
    assert Counter(found.tolist()) == Counter(x.tolist() * 2)
    first = found[:5]
    # The queue holds 40 rows from where the reading begins: with the seed above, not at row 0.
    begin = np.random.default_rng([3, 0]).integers(100)
    assert begin > 40
    assert not np.array_equal(found, (begin + np.arange(200)) % 100)
    assert set(first.tolist()) <= {float((begin + i) % 100) for i in range(50)}


def test_it_needs_no_initialiser_and_goes_on_without_end() -> None:
    with tf2.Graph().as_default(), tf.Session() as session:
        features, labels = tf.estimator.inputs.numpy_input_fn({"a": A}, {"y": Y, "z": Y * 2}, 4, None, shuffle=False)()
        assert features["a"].shape.as_list() == [4, 2]
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        for step in range(13):  # the rows are a circle, which eleven blocks of four close
            values = session.run([features, labels])
            rows = (np.arange(4) + 4 * step) % 11
            np.testing.assert_array_equal(values[0]["a"], A[rows])
            np.testing.assert_array_equal(values[1]["z"], 2 * Y[rows])
        coord.request_stop()
        session.run([runner.cancel_op for runner in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)])
        coord.join(threads)


def test_each_session_and_each_pass_of_the_dataset_begins_anew() -> None:
    inputs = tf.estimator.inputs.numpy_input_fn(Y, batch_size=4, num_epochs=1, shuffle=False)
    dataset = tfqueue.to_dataset(inputs)
    for _ in range(2):
        assert [batch.numpy().tolist() for batch in dataset] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    with tf2.Graph().as_default():
        features = inputs()
        for _ in range(2):
            with tf.Session() as session, tfqueue.queue_runners(session):
                assert [session.run(features).tolist() for _ in range(3)][-1] == [8, 9, 10]


def test_arrays_of_another_byte_order_keep_their_values() -> None:
    inputs = tf.estimator.inputs.numpy_input_fn(Y.astype(">i8"), batch_size=11, num_epochs=1, shuffle=False)
    np.testing.assert_array_equal(np.concatenate(batches(inputs)), Y)


def test_each_thread_makes_all_passes() -> None:
    inputs = tf.estimator.inputs.numpy_input_fn(Y, num_epochs=1, batch_size=4, shuffle=False, num_threads=3)
    assert Counter(np.concatenate(batches(inputs)).tolist()) == Counter(Y.tolist() * 3)


class Frame:
    """What pandas_input_fn asks of a data frame."""

    def __init__(self, **columns) -> None:
        self.columns = list(columns)
        self.index = np.arange(len(next(iter(columns.values()))))
        self._values = columns

    def __getitem__(self, name):
        return self._values[name]


class Series(list):
    index = np.arange(11)


def test_columns_of_a_data_frame() -> None:
    frame = Frame(a=Y, b=B.astype(object))
    inputs = tf.estimator.inputs.pandas_input_fn(frame, Series(Y), batch_size=11, shuffle=False)
    ((features, labels),) = batches(inputs)
    np.testing.assert_array_equal(features["a"], Y)
    assert features["b"][10] == b"row 10"
    np.testing.assert_array_equal(labels, Y)
    ((features, labels),) = batches(
        tf.contrib.learn.io.pandas_input_fn(frame, Frame(y=Y), batch_size=11, shuffle=False)
    )
    assert set(features) == {"a", "b"}
    assert set(labels) == {"y"}
    with pytest.raises(InvalidArgument, match=r"must be a pandas\.DataFrame; got list"):
        tf.estimator.inputs.pandas_input_fn([1], shuffle=False)
    with pytest.raises(InvalidArgument, match="different indices"):
        tf.estimator.inputs.pandas_input_fn(Frame(a=Y[:3]), Series(Y), shuffle=False)
    with pytest.raises(InvalidArgument, match="x has a column 'a'"):
        tf.estimator.inputs.pandas_input_fn(frame, Series(Y), shuffle=False, target_column="a")


def test_a_real_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": Y, "b": B})
    inputs = tf.estimator.inputs.pandas_input_fn(frame, frame["a"], batch_size=11, shuffle=False)
    ((features, labels),) = batches(inputs)
    assert features["b"].tolist() == [name.encode() for name in B]
    np.testing.assert_array_equal(labels, Y)


def test_what_cannot_work_is_said() -> None:
    make = tf.estimator.inputs.numpy_input_fn
    with pytest.raises(InvalidArgument, match="shuffle must be True or False"):
        make({"a": A}, Y)
    with pytest.raises(InvalidArgument, match=r"same number of rows; got \{'a': 11, 'y': 3\}"):
        make({"a": A}, Y[:3], shuffle=False)
    with pytest.raises(InvalidArgument, match="x is an empty dictionary"):
        make({}, Y, shuffle=False)
    with pytest.raises(InvalidArgument, match=r"x and y both have \['a'\]"):
        make({"a": A}, {"a": Y}, shuffle=False)
    with pytest.raises(InvalidArgument, match=r"'x' has no rows: its shape is \(0, 2\)"):
        make(A[:0], shuffle=False)
    with pytest.raises(InvalidArgument, match="dtype that TensorFlow lacks: datetime64"):
        make(np.array(["2020-01-01"], "datetime64[D]"), shuffle=False)
    with pytest.raises(InvalidArgument, match="'x' is an array of objects that are not all strings"):
        make(np.array([1, None], object), shuffle=False)
    with pytest.raises(InvalidArgument, match="num_epochs must be at least 1"):
        make(A, num_epochs=0, shuffle=False)
    with pytest.raises(InvalidArgument, match="batch_size must be at least 1"):
        make(A, batch_size=0, shuffle=False)
